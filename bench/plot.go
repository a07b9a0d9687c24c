package main

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/dispatchkit/dispatch/redisstore"
)

const plotWidth, plotHeight = 18 * vg.Centimeter, 11 * vg.Centimeter

// palette is told apart by the colour-blind, too (Okabe and Ito).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
}

// throughput is a contestant's no-op throughput at a concurrency.
type throughput struct {
	name string
	run  func(ctx context.Context, e *env, n, concurrency int) (float64, error)
}

// throughputs are the curves of the plot: first Dispatch's, and then those of peers; see plot_asynq.go.
var throughputs = []throughput{{"dispatch", func(ctx context.Context, e *env, n, concurrency int) (float64, error) {
	return onStore(func(ctx context.Context, _ *env, store *redisstore.Store, n int) (float64, error) {
		w, err := backlog{n: n, options: placesFor(concurrency)}.work(ctx, store)
		return w.perSecond(), err
	})(ctx, e, n)
}}}

// writePlots draws what belongs to the figures: throughputs, which it measures, and the latencies that were measured.
func writePlots(ctx context.Context, e *env, s settings, figures []figure, progress io.Writer) error {
	if err := os.MkdirAll(s.plots, 0o755); err != nil {
		return err
	}
	if slices.ContainsFunc(figures, func(f figure) bool { return f.name == "process/noop" }) {
		curves := throughputs
		if !s.peers {
			curves = throughputs[:1]
		}
		if err := plotThroughput(ctx, e, curves, filepath.Join(s.plots, "throughput.svg"), progress); err != nil {
			return err
		}
	}
	if len(e.curves) == 0 {
		return nil // no latency was measured
	}
	return plotLatency(e, filepath.Join(s.plots, "latency.svg"))
}

func plotThroughput(ctx context.Context, e *env, throughputs []throughput, file string, progress io.Writer) error {
	n := 40_000
	concurrencies := []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	if e.quick {
		n, concurrencies = 2_000, []int{1, 16, 256}
	}
	p := plot.New()
	p.Title.Text = "No-op tasks handled per second"
	p.X.Label.Text, p.Y.Label.Text = "concurrency", perSecond
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks(concurrencies)
	p.Y.Min, p.Y.Tick.Marker = 0, plainTicks{}
	p.Legend.Top, p.Legend.Left = true, true
	for i, t := range throughputs {
		points := make(plotter.XYs, 0, len(concurrencies))
		for _, concurrency := range concurrencies {
			if err := e.flush(ctx); err != nil {
				return err
			}
			value, err := t.run(ctx, e, n, concurrency)
			if err != nil {
				return fmt.Errorf("%s at concurrency %d: %w", t.name, concurrency, err)
			}
			fmt.Fprintf(progress, "plot: %s at concurrency %d: %.5g %s\n", t.name, concurrency, value, perSecond)
			points = append(points, plotter.XY{X: float64(concurrency), Y: value})
		}
		if err := addCurve(p, t.name, points, i, true); err != nil {
			return err
		}
	}
	return p.Save(plotWidth, plotHeight, file)
}

func plotLatency(e *env, file string) error {
	p := plot.New()
	p.Title.Text = "Time until a task starts"
	p.X.Label.Text, p.Y.Label.Text = "ms", "part of the tasks that have started, %"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0, 100
	p.Legend.Top, p.Legend.Left = true, true
	for i, name := range slices.Sorted(maps.Keys(e.curves)) {
		if err := addCurve(p, name, e.curves[name].distribution(), i, false); err != nil {
			return err
		}
	}
	return p.Save(plotWidth, plotHeight, file)
}

func addCurve(p *plot.Plot, name string, points plotter.XYs, i int, dots bool) error {
	line, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color = palette[i%len(palette)]
	line.Width = vg.Points(1.5)
	scatter.Color, scatter.Shape = line.Color, draw.CircleGlyph{}
	p.Add(line)
	p.Legend.Add(name, line)
	if dots {
		p.Add(scatter)
	}
	return nil
}

// distribution is the cumulated one: of how many per cent of the durations each was the longest.
func (h *histogram) distribution() plotter.XYs {
	h.mu.Lock()
	defer h.mu.Unlock()
	var points plotter.XYs
	var seen int64
	for _, bar := range h.hdr.Distribution() {
		if seen += bar.Count; bar.Count > 0 {
			points = append(points, plotter.XY{
				X: float64(bar.To) / 1000, Y: 100 * float64(seen) / float64(h.hdr.TotalCount()),
			})
		}
	}
	return points
}

// ticks are at given values, each with its label.
type ticks []int

func (t ticks) Ticks(_, _ float64) []plot.Tick {
	var marks []plot.Tick
	for _, v := range t {
		marks = append(marks, plot.Tick{Value: float64(v), Label: strconv.Itoa(v)})
	}
	return marks
}

// plainTicks are the default ones without exponents.
type plainTicks struct{}

func (plainTicks) Ticks(low, high float64) []plot.Tick {
	marks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range marks {
		if marks[i].Label != "" {
			marks[i].Label = strconv.FormatFloat(marks[i].Value, 'f', 0, 64)
		}
	}
	return marks
}
