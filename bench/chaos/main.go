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

	"github.com/dispatchkit/dispatch/internal/redistest"
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
	flag.BoolVar(&s.list, "list", false,
		"print the scenarios that would run, and what they hold; with -planted the bugs, each with its scenario")
	flag.BoolVar(&s.quick, "quick", false, "the short forms, of about 10 s each: 4 to 5 minutes in all")
	flag.Uint64Var(&s.seed, "seed", 0, "decides faults and load; 0 draws one, which the output names")
	flag.DurationVar(&s.length, "for", defaultLength,
		"the length of the long form of random-mix; no other scenario, and nothing with -quick, goes by it")
	flag.BoolVar(&s.asJSON, "json", false, "a line of JSON per scenario or planted bug instead of a table")
	flag.StringVar(&s.keep, "keep", "",
		"directory for what failed runs leave; empty leaves it in that for temporary files, and with -planted nowhere")
	flag.BoolVar(&s.planted, "planted", false,
		"plant bugs one by one, and fail unless a scenario finds each; with -run only those whose own names match")
	flag.Parse()
	os.Exit(run(s, os.Stdout, os.Stderr))
}

// run is main with its exit code: 0 when all passed, 1 when something failed or was interrupted, 2 when it was called wrongly or there
// is no Redis.
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
	scenarios := slices.DeleteFunc(catalogue(), func(sc Scenario) bool { return !pattern.MatchString(sc.Name) })
	bugs := slices.DeleteFunc(slices.Clone(plants), func(p plant) bool { return !pattern.MatchString(p.name) })
	switch {
	case s.length <= 0:
		return wrong("-for: %v is not above 0", s.length)
	case !s.all && s.only == "" && !s.list && !s.planted:
		return wrong("say -all, -run, -planted or -list; -h lists all flags")
	case s.planted && len(bugs) == 0:
		return wrong("-run: no planted bug matches %q", s.only)
	case !s.planted && len(scenarios) == 0:
		return wrong("-run: no scenario matches %q", s.only)
	case s.list && s.planted:
		listPlants(out, bugs)
		return 0
	case s.list:
		listScenarios(out, scenarios)
		return 0
	}
	if err := redistest.Installed(); err != nil {
		return wrong("%v", err)
	}
	for s.seed == 0 {
		s.seed = rand.Uint64N(1 << 32)
	}
	fmt.Fprintf(complaints, "seed %d\n", s.seed)
	redis.SetLogger(quiet{})
	ctx, stop := interruptible()
	defer stop()
	if s.planted {
		return runPlanted(ctx, bugs, s, out, complaints)
	}
	return runScenarios(ctx, scenarios, s, out, complaints)
}

// interruptible is a context that the signals end by which people, service managers and terminals that are closed end a program.
// SIGHUP stays without effect where it was before, as with nohup.
func interruptible() (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// runScenarios runs them one after the other and prints their rows. The code is 1 when one failed or was interrupted.
func runScenarios(ctx context.Context, scenarios []Scenario, s settings, out, complaints io.Writer) (code int) {
	p := &reporter{out: out, asJSON: s.asJSON}
	for i, sc := range scenarios {
		row, err := play(ctx, sc, s)
		if err != nil {
			fmt.Fprintf(complaints, "interrupted in %s; %d scenarios not run\n", sc.Name, len(scenarios)-i-1)
			code = 1
			break
		}
		p.print(row)
	}
	if p.failed > 0 {
		fmt.Fprintf(complaints, "%d of %d failed; seed %d\n", p.failed, p.rows, s.seed)
		code = 1
	}
	return code
}

// quiet takes in what the Redis client says of every connection that a fault has ended.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
