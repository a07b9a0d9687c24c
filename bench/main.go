// Bench measures Dispatch, its peers and the bare limits side by side, on one machine and in one run. See README.md.
//
//	go run .                        the core figures, on a redis-server of its own
//	go run . -suite all -plots DIR  everything, with plots
//	go run . -quick -suite all      a short run, to see that everything works; its figures say nothing
//	go run . -json                  a line of JSON per figure and peer
//	go run . -run noop -peers=false the figures of Dispatch and the limits whose names match
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// leastRepeats is how often each figure is measured at the least, for a median to mean something.
const leastRepeats = 3

type settings struct {
	suite, only, redisURL, plots string
	quick, asJSON, peers         bool
	repeats                      int
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		if err := childMain(os.Args[2], os.Stdin, os.Stdout); err != nil {
			log.Fatal("child: ", err)
		}
		return
	}
	var s settings
	flag.StringVar(&s.suite, "suite", "core", strings.Join(suites, ", ")+" or all; several with commas")
	flag.StringVar(&s.only, "run", "", "regular expression: only figures of the suite whose names match")
	flag.BoolVar(&s.peers, "peers", true, "measure the peers, too")
	flag.StringVar(&s.redisURL, "redis", "", "URL of a Redis server with an empty database, which is flushed; empty starts one")
	flag.StringVar(&s.plots, "plots", "", "directory for throughput.svg, with -suite core, and latency.svg, with -suite latency")
	flag.BoolVar(&s.quick, "quick", false, "few tasks, once: to see that everything works")
	flag.BoolVar(&s.asJSON, "json", false, "a line of JSON per figure and peer instead of tables; progress goes to stderr")
	flag.IntVar(&s.repeats, "repeats", leastRepeats, "how often each figure is measured, all of them in turn; at least 3")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("%q is no flag; -h lists them", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout, os.Stderr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s settings, out, progress io.Writer) (err error) {
	figures, err := figuresOf(s.suite, s.only)
	if err != nil {
		return err
	}
	if s.peers {
		figures = withPeers(figures)
	}
	switch {
	case s.quick:
		s.repeats = 1
	case s.repeats < leastRepeats:
		return fmt.Errorf("-repeats is %d; at least %d", s.repeats, leastRepeats)
	}
	e, err := newEnv(ctx, s.redisURL, s.quick)
	if err != nil {
		return err
	}
	defer e.close()
	all := measure(ctx, e, figures, s.repeats, progress)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.asJSON {
		err = writeJSON(out, all)
	} else {
		err = writeReport(ctx, out, e, s, all)
	}
	if err == nil && s.plots != "" {
		err = writePlots(ctx, e, s, figures, progress)
	}
	return errors.Join(err, failures(all))
}

// suites are the parts of the whole.
var suites = []string{"core", "http", "latency", "idle", "memory", "scale"}

// figuresOf are the figures of some suites, of which only those whose names match.
func figuresOf(names, only string) ([]figure, error) {
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if name != "all" && !slices.Contains(suites, name) {
			return nil, fmt.Errorf("-suite: there is no %q, but %s and all", name, strings.Join(suites, ", "))
		}
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	figures := slices.DeleteFunc(catalogue(), func(f figure) bool {
		return !slices.Contains(wanted, "all") && !slices.Contains(wanted, f.suite) || !pattern.MatchString(f.name)
	})
	if len(figures) == 0 {
		return nil, errors.New("-run: no figure of the suite matches")
	}
	return figures, nil
}
