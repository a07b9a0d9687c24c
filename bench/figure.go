package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// figure is one thing that is measured, of Dispatch and of whoever else can do it.
type figure struct {
	name, unit, suite string
	n, quick          int     // tasks in a full and in a quick run
	entries           []entry // the first is Dispatch
}

// entry is one contestant's way of getting a figure.
type entry struct {
	peer string // as in -json: "" is Dispatch; asynq, asynq-best, river, bullmq, limit
	how  string // for the table; of several entries of one peer the best median counts
	run  func(ctx context.Context, env *env, n int) (float64, error)
}

const payloadBytes = 128

// payload is what every task of every contestant carries.
var payload = make([]byte, payloadBytes)

// errSkipped, wrapped with the reason, leaves an entry out visibly: the table and stderr say so.
var errSkipped = errors.New("skipped")

// peers are asked for their entries of each figure; each answers nil where it has none. Their files register them.
var peers []func(figureName string) []entry

// withPeers completes the figures with the entries of all peers.
func withPeers(figures []figure) []figure {
	for i := range figures {
		for _, of := range peers {
			figures[i].entries = append(figures[i].entries, of(figures[i].name)...)
		}
	}
	return figures
}

// env is what entries run on: it is made once per program.
type env struct {
	redisURL string // one server, whose database is flushed before each entry
	quick    bool
	client   *redis.Client
	// round holds what one repeat has measured beside the value it returned; it is emptied before each repeat.
	round map[string]any
}

// redis is a connection for the bench's own questions: INFO, MEMORY, counts of what is left.
func (e *env) redis() *redis.Client { return e.client }

// flush empties the database and the server's statistics.
func (e *env) flush(ctx context.Context) error {
	if err := e.client.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return e.client.ConfigResetStat(ctx).Err()
}

// oncePerRepeat lets several figures come from one run, such as the percentiles of one histogram: the first figure
// that asks measures, the others of the same repeat and key get the same result. A peer puts its name into the key.
func oncePerRepeat[T any](e *env, key string, measure func() (T, error)) (T, error) {
	if v, ok := e.round[key]; ok {
		return v.(T), nil
	}
	v, err := measure()
	if err == nil {
		e.round[key] = v
	}
	return v, err
}
