package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

const (
	riverMost  = 40_000 // tasks of a run that processes them
	riverBatch = 10_000 // tasks of a call that inserts many
	riverConns = 16
)

func init() { peers = append(peers, riverEntries) }

// riverEntries are River's ways of getting a figure, on a PostgreSQL that writes nothing to disk before it answers.
func riverEntries(figureName string) []entry {
	const how = "PostgreSQL without fsync"
	switch figureName {
	case "enqueue/single64":
		return []entry{{"river", "Insert from 64 goroutines, " + how, riverRun(riverInsert)}}
	case "enqueue/many":
		var entries []entry
		for _, goroutines := range []int{1, 2, 4} {
			how := fmt.Sprintf("InsertManyFast of %d, %d at a time, %s", riverBatch, goroutines, how)
			entries = append(entries, entry{"river", how, riverRun(riverInsertMany(goroutines))})
		}
		return entries
	case "process/noop":
		var entries []entry
		for _, workers := range []int{100, 500, 2000} {
			how := fmt.Sprintf("MaxWorkers %d, FetchCooldown %v, %s", workers, river.FetchCooldownMin, how)
			entries = append(entries, entry{"river", how, riverRun(riverNoop(workers))})
		}
		return entries
	}
	return riverLatencyEntries(figureName)
}

// riverArgs make the payload of all contestants, as JSON.
type riverArgs struct {
	Data string `json:"data"`
}

func (riverArgs) Kind() string { return "noop" }

// riverPayload are the arguments that payload is the JSON of.
func riverPayload(payload []byte) (args riverArgs, err error) {
	return args, json.Unmarshal(payload, &args)
}

// onRiver is a River that a figure is taken of: its database, and how many tasks.
type onRiver struct {
	pool *pgxpool.Pool
	env  *env
	n    int
}

// riverRun measures on a database of its own, which has River's tables and nothing in them.
func riverRun[T any](measure func(context.Context, *onRiver) (T, error)) func(context.Context, *env, int) (T, error) {
	return func(ctx context.Context, env *env, n int) (none T, err error) {
		server, err := startPostgres(ctx)
		if err != nil {
			return none, err
		}
		defer server.stop()
		pool, err := pgxpool.New(ctx, fmt.Sprintf("%s pool_max_conns=%d", server.dsn(), riverConns))
		if err != nil {
			return none, err
		}
		defer pool.Close()
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return none, err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return none, err
		}
		var version string
		if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
			return none, err
		}
		env.note("river", "PostgreSQL %s over a socket, with %s", version, strings.Join(postgresSettings, " "))
		return measure(ctx, &onRiver{pool: pool, env: env, n: n})
	}
}

// client is a client of River; work, if there is any, is what it does with each task, on so many workers.
func (r *onRiver) client(workers int, work func(*river.Job[riverArgs]) error) (*river.Client[pgx.Tx], error) {
	config := &river.Config{Logger: slog.New(slog.DiscardHandler), JobTimeout: -1}
	if work != nil {
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverArgs]) error { return work(job) }))
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
		config.FetchCooldown, config.FetchPollInterval = river.FetchCooldownMin, riverPoll
	}
	return river.NewClient(riverpgxv5.New(r.pool), config)
}

// riverInsert stores tasks one by one from 64 goroutines.
func riverInsert(ctx context.Context, r *onRiver) (float64, error) {
	client, err := r.client(0, nil)
	if err != nil {
		return 0, err
	}
	args, err := riverPayload(payload)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := concurrently(ctx, callers, r.n, func(ctx context.Context, _ int) error {
		_, err := client.Insert(ctx, args, nil)
		return err
	}); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(r.n) / elapsed.Seconds(), r.require(ctx, rivertype.JobStateAvailable)
}

// riverInsertMany stores tasks in batches from some goroutines.
func riverInsertMany(goroutines int) func(context.Context, *onRiver) (float64, error) {
	return func(ctx context.Context, r *onRiver) (float64, error) {
		client, err := r.client(0, nil)
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := r.fill(ctx, client, goroutines); err != nil {
			return 0, err
		}
		elapsed := time.Since(begin)
		return float64(r.n) / elapsed.Seconds(), r.require(ctx, rivertype.JobStateAvailable)
	}
}

func (r *onRiver) fill(ctx context.Context, client *river.Client[pgx.Tx], goroutines int) error {
	args, err := riverPayload(payload)
	if err != nil {
		return err
	}
	batch := make([]river.InsertManyParams, riverBatch)
	for i := range batch {
		batch[i].Args = args
	}
	return concurrently(ctx, goroutines, (r.n+riverBatch-1)/riverBatch, func(ctx context.Context, i int) error {
		_, err := client.InsertManyFast(ctx, batch[:min(riverBatch, r.n-i*riverBatch)])
		return err
	})
}

// riverNoop is how many waiting tasks a second are handled, from the start of the client to the last completion that
// River reports.
func riverNoop(workers int) func(context.Context, *onRiver) (float64, error) {
	return func(ctx context.Context, r *onRiver) (float64, error) {
		r.n = fewer(r.env, r.n, riverMost)
		handled := newCountdown(r.n)
		client, err := r.client(workers, func(*river.Job[riverArgs]) error {
			handled.add()
			return nil
		})
		if err != nil {
			return 0, err
		}
		if err := r.fill(ctx, client, 1); err != nil {
			return 0, err
		}
		// The channel has room for all: River drops what does not fit.
		completed, cancel := client.SubscribeConfig(&river.SubscribeConfig{
			ChanSize: r.n, Kinds: []river.EventKind{river.EventKindJobCompleted},
		})
		defer cancel()
		begin := time.Now()
		if err := client.Start(ctx); err != nil {
			return 0, err
		}
		defer stopRiver(client)
		for i := range r.n {
			select {
			case <-completed:
			case <-ctx.Done():
				return 0, fmt.Errorf("%d of %d tasks completed: %w", i, r.n, context.Cause(ctx))
			}
		}
		elapsed := time.Since(begin)
		return float64(r.n) / elapsed.Seconds(), errors.Join(handled.exact(), r.require(ctx, rivertype.JobStateCompleted))
	}
}

func stopRiver(client *river.Client[pgx.Tx]) {
	ctx, cancel := context.WithTimeout(context.Background(), childStopLimit)
	defer cancel()
	client.StopAndCancel(ctx)
}

// require is nil if the database holds all tasks in one state, and no others.
func (r *onRiver) require(ctx context.Context, state rivertype.JobState) error {
	var all, right int
	err := r.pool.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE state = $1::river_job_state) FROM river_job", state).
		Scan(&all, &right)
	if err == nil && (all != r.n || right != r.n) {
		err = fmt.Errorf("of %d tasks %d are there, and %d are %s", r.n, all, right, state)
	}
	return err
}
