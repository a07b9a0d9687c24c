package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// env is what entries run on: it is made once per program.
type env struct {
	redisURL string // one server, whose database is flushed before each entry
	quick    bool
	client   *redis.Client
	stops    []func()

	// round holds what one repeat has measured beside the values it returned; it is emptied before each repeat.
	round map[string]any
	// curves are the latencies by figure, of all repeats together, for the plot.
	curves map[string]*histogram
	// notes are said below the table, by what they are about: the last one counts.
	notes map[string]string
}

// newEnv starts a server of its own unless it is given one. Either way the server writes nothing to disk while it is
// measured: its own is started so, and the other one is its owner's.
func newEnv(ctx context.Context, url string, quick bool) (*env, error) {
	e := &env{redisURL: url, quick: quick, curves: map[string]*histogram{}, notes: map[string]string{}}
	if url == "" {
		server, err := redistest.Launch(redistest.Config{})
		if err != nil {
			return nil, err
		}
		e.redisURL, e.stops = server.URL(), append(e.stops, server.Stop)
	}
	options, err := redis.ParseURL(e.redisURL)
	if err != nil {
		e.close()
		return nil, err
	}
	e.client = redis.NewClient(options)
	e.stops = append(e.stops, func() { e.client.Close() })
	size, err := e.client.DBSize(ctx).Result()
	if err == nil && size > 0 {
		err = fmt.Errorf("the database of -redis holds %d keys: give an empty one, for it is flushed again and again", size)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	if url != "" { // leave it as it was found
		e.stops = append(e.stops, func() { e.client.FlushDB(context.WithoutCancel(ctx)) })
	}
	return e, nil
}

func (e *env) close() {
	for i := len(e.stops) - 1; i >= 0; i-- {
		e.stops[i]()
	}
}

// redis is a connection for the bench's own questions: INFO, and what is left.
func (e *env) redis() *redis.Client { return e.client }

// flush empties the database and the server's statistics.
func (e *env) flush(ctx context.Context) error {
	if err := e.client.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return e.client.ConfigResetStat(ctx).Err()
}

// curve adds latencies to those that are plotted under a name.
func (e *env) curve(name string, h *histogram) {
	if e.curves[name] == nil {
		e.curves[name] = newHistogram()
	}
	e.curves[name].add(h)
}

// note says something below the table.
func (e *env) note(about, format string, args ...any) { e.notes[about] = fmt.Sprintf(format, args...) }

// oncePerRepeat lets several figures come from one run, such as the percentiles of one histogram: the first figure
// that asks measures, the others of the same repeat and key get the same result or error. A peer puts its name into the
// key.
func oncePerRepeat[T any](e *env, key string, measure func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	o, ok := e.round[key].(outcome)
	if !ok {
		o.value, o.err = measure()
		e.round[key] = o
	}
	return o.value, o.err
}

// info reads one section of INFO.
func info(ctx context.Context, client *redis.Client, section string) (map[string]string, error) {
	text, err := client.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// infoNumber reads one number of INFO.
func infoNumber(ctx context.Context, client *redis.Client, section, name string) (float64, error) {
	fields, err := info(ctx, client, section)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(fields[name], 64)
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %s: %w", section, name, err)
	}
	return v, nil
}

// redisCPU is the processor time that some servers have used so far, in user and system mode, all threads together.
func redisCPU(ctx context.Context, servers ...*redis.Client) (time.Duration, error) {
	var seconds float64
	for _, server := range servers {
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			v, err := infoNumber(ctx, server, "cpu", name)
			if err != nil {
				return 0, err
			}
			seconds += v
		}
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
