package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// defaultLength is how long scenarios go on whose length is arbitrary.
const defaultLength = 5 * time.Minute

// settings are the flags.
type settings struct {
	all, list, quick, asJSON, planted bool
	only, keep                        string
	seed                              uint64
	length                            time.Duration
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		if err := childMain(os.Args[2], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(2)
		}
		return
	}
	var s settings
	flag.BoolVar(&s.all, "all", false, "run every scenario")
	flag.StringVar(&s.only, "run", "", "regular expression: run the scenarios whose names match")
	flag.BoolVar(&s.list, "list", false, "print the scenarios that would run, and what they hold")
	flag.BoolVar(&s.quick, "quick", false, "the short forms, 10 to 15 s each")
	flag.Uint64Var(&s.seed, "seed", 0, "decides faults and load; 0 draws one, which the output names")
	flag.DurationVar(&s.length, "for", defaultLength, "how long random-mix goes on, but with -quick")
	flag.BoolVar(&s.asJSON, "json", false, "a line of JSON per scenario instead of a table")
	flag.StringVar(&s.keep, "keep", "", "directory for what failed runs leave; empty leaves it in that for temporary files")
	flag.BoolVar(&s.planted, "planted", false, "plant bugs one by one, and fail unless a scenario finds each; with -run only those whose names match")
	flag.Parse()
	os.Exit(run(s, os.Stdout, os.Stderr))
}

// run is main with its exit code: 0 when all passed, 1 when something failed, 2 when it was called wrongly.
func run(s settings, out, complaints io.Writer) int {
	wrong := func(format string, args ...any) int {
		fmt.Fprintf(complaints, format+"\n", args...)
		return 2
	}
	if flag.NArg() > 0 {
		return wrong("%q is no flag; -h lists them", flag.Arg(0))
	}
	pattern, err := regexp.Compile(s.only)
	if err != nil {
		return wrong("-run: %v", err)
	}
	for s.seed == 0 {
		s.seed = rand.Uint64N(1 << 32)
	}
	redis.SetLogger(quiet{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.planted {
		return runPlanted(ctx, pattern, s, out, complaints)
	}
	scenarios := slices.DeleteFunc(catalogue(), func(sc Scenario) bool { return !pattern.MatchString(sc.Name) })
	switch {
	case !s.all && s.only == "" && !s.list:
		return wrong("say -all, -run, -planted or -list; -h lists all flags")
	case len(scenarios) == 0:
		return wrong("-run: no scenario matches %q", s.only)
	case s.list:
		for _, sc := range scenarios {
			fmt.Fprintf(out, "%-28s %s\n", sc.Name, sc.Doc)
		}
		return 0
	}
	fmt.Fprintf(complaints, "seed %d\n", s.seed)
	p := &reporter{out: out, asJSON: s.asJSON}
	for _, sc := range scenarios {
		if ctx.Err() != nil {
			return 1
		}
		p.print(play(ctx, sc, s))
	}
	if p.failed > 0 {
		fmt.Fprintf(complaints, "%d of %d failed; seed %d\n", p.failed, p.rows, s.seed)
		return 1
	}
	return 0
}

// quiet takes in what the Redis client says of every connection that a fault has ended.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
