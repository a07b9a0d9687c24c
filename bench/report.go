package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
)

// line is one line of -json: Dispatch's own, whose peer is empty, or Dispatch beside a peer. The ratio is Dispatch's value
// divided by the peer's; for all units but tasks/s less is better.
type line struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peer_value"`
	Ratio     float64 `json:"ratio"`
}

// lines are the medians of a figure, and none if Dispatch has none.
func (m measured) lines() []line {
	own := m.best("")
	if own == nil {
		return nil
	}
	lines := []line{{Name: m.name, Value: own.median(), Unit: m.unit}}
	for _, peer := range m.peerNames() {
		if other := m.best(peer); other != nil {
			lines = append(lines, line{m.name, own.median(), m.unit, peer, other.median(), ratio(own.median(), other.median())})
		}
	}
	return lines
}

// ratio is 0 where there is none, which JSON can say.
func ratio(value, of float64) float64 {
	if of == 0 {
		return 0
	}
	return value / of
}

func writeJSON(out io.Writer, all []measured) error {
	encoder := json.NewEncoder(out)
	for _, m := range all {
		for _, l := range m.lines() {
			if err := encoder.Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparisons are figures of Dispatch that are read beside another one of its own. The first entry of each counts, for those
// have the same settings.
var comparisons = [][2]string{
	{"process/noop_rate", "process/noop"},
	{"process/noop_concurrency", "process/noop"},
	{"process/noop_named", "process/noop"},
	{"process/noop_2procs", "process/noop_1proc"},
	{"process/sleep2ms_2procs", "process/sleep2ms"},
	{"process/http_signed", "process/http"},
	{"cluster/redis_us_per_task", "cpu/redis_us_per_task_30q"},
	{"scale/backlog_1M", "scale/backlog_20k"},
}

func writeReport(ctx context.Context, out io.Writer, e *env, s settings, all []measured) error {
	w := bufio.NewWriter(out)
	if err := writeMethod(ctx, w, e, s); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nfigure\t\tmedian\tmin\tmax\tunit\tDispatch is\thow\n")
	for _, m := range all {
		for _, r := range m.results {
			m.writeRow(table, r)
		}
	}
	table.Flush()
	writeComparisons(w, all)
	for _, about := range slices.Sorted(maps.Keys(e.notes)) {
		fmt.Fprintf(w, "\n%s: %s\n", about, e.notes[about])
	}
	return w.Flush()
}

// writeRow writes an entry. The ratio stands at a peer's best entry, which is the one that counts.
func (m measured) writeRow(w io.Writer, r *result) {
	if len(r.samples) == 0 || r.err != nil {
		fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t%s: %v\n", m.name, nameOf(r.peer), r.how, r.err)
		return
	}
	times := ""
	if own := m.best(""); r.peer != "" && own != nil && r == m.best(r.peer) {
		times = fmt.Sprintf("× %.3g", ratio(own.median(), r.median()))
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.name, nameOf(r.peer), format(r.median()),
		format(slices.Min(r.samples)), format(slices.Max(r.samples)), m.unit, times, r.how)
}

// format rounds to what a reader can use.
func format(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func writeComparisons(w io.Writer, all []measured) {
	medians := make(map[string]float64)
	for _, m := range all {
		if own := m.results[0]; own.err == nil && len(own.samples) > 0 {
			medians[m.name] = own.median()
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nDispatch beside itself\n")
	for _, c := range comparisons {
		value, ok := medians[c[0]]
		of, known := medians[c[1]]
		if ok && known {
			fmt.Fprintf(table, "%s\tis × %.2f of\t%s\n", c[0], ratio(value, of), c[1])
		}
	}
	table.Flush()
}

// writeMethod says what was measured where, and how.
func writeMethod(ctx context.Context, w io.Writer, e *env, s settings) error {
	server, err := info(ctx, e.redis(), "server")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %d CPUs, %s/%s, %s, Redis %s\n", cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), server["redis_version"])
	if build, ok := debug.ReadBuildInfo(); ok {
		var versions []string
		for _, module := range build.Deps {
			if slices.Contains(namedModules, module.Path) {
				versions = append(versions, module.Path+" "+module.Version)
			}
		}
		fmt.Fprintln(w, strings.Join(versions, ", "))
	}
	repeats := fmt.Sprintf("%d repeats", s.repeats)
	if s.quick {
		repeats = "one quick run, whose figures say nothing"
	}
	fmt.Fprintf(w, "%s; each repeat goes through all entries of all figures in turn. Payload %d B. One redis-server for all, on this\n"+
		"machine, without persistence, flushed before each entry. Deliveries are checked: each task is handled once, none is left.\n"+
		"A peer's best entry counts. Ratios are Dispatch's median by the peer's: less is better for all units but %s.\n",
		repeats, payloadBytes, perSecond)
	return nil
}

// namedModules are those whose versions a reader asks for.
var namedModules = []string{
	"github.com/redis/go-redis/v9", "github.com/hibiken/asynq", "github.com/riverqueue/river", "github.com/jackc/pgx/v5",
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // there is none but on Linux
	for l := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return cmp.Or(os.Getenv("PROCESSOR_IDENTIFIER"), "unknown CPU")
}
