package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// riverPoll is how often a client looks for tasks that it was not notified of: those whose due time has come.
const riverPoll = 5 * time.Millisecond

// riverWorkers is how many tasks River's client takes at once when latency is measured.
const riverWorkers = 100

func riverLatencyEntries(figureName string) []entry {
	how := fmt.Sprintf("FetchCooldown %v, FetchPollInterval %v (default 1 s)", river.FetchCooldownMin, riverPoll)
	return latencyEntries(figureName, "river", how, map[string]measureLatency{
		"latency/idle_pickup": riverRun(func(ctx context.Context, r *onRiver) (*histogram, error) {
			r.n = fewer(r.env, r.n, idlePeerMost)
			return riverLatency(ctx, r, riverSendIdle)
		}),
		"latency/late": riverRun(func(ctx context.Context, r *onRiver) (*histogram, error) {
			r.n = fewer(r.env, r.n, latePeerMost)
			return riverLatency(ctx, r, riverSendScheduled)
		}),
	})
}

func riverSendIdle(ctx context.Context, p *pickups, client *river.Client[pgx.Tx]) error {
	return p.sendIdle(ctx, func(ctx context.Context, intended time.Time) error {
		args, err := riverPayload(stamped(intended))
		if err != nil {
			return err
		}
		_, err = client.Insert(ctx, args, nil)
		return err
	})
}

func riverSendScheduled(ctx context.Context, p *pickups, client *river.Client[pgx.Tx]) error {
	var batch []river.InsertManyParams
	for _, due := range p.dueTimes() {
		args, err := riverPayload(stamped(due))
		if err != nil {
			return err
		}
		batch = append(batch, river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{ScheduledAt: due}})
	}
	_, err := client.InsertManyFast(ctx, batch)
	return err
}

// riverLatency runs a client while send sends tasks, and returns what they waited.
func riverLatency(ctx context.Context, r *onRiver, send func(context.Context, *pickups, *river.Client[pgx.Tx]) error) (*histogram, error) {
	p := newPickups(r.n)
	client, err := r.client(riverWorkers, func(job *river.Job[riverArgs]) error {
		at, err := json.Marshal(job.Args) // PostgreSQL has its own idea of spaces in JSON
		p.started(at)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	defer stopRiver(client)
	if err := send(ctx, p, client); err != nil {
		return nil, err
	}
	waits, err := p.histogram(ctx)
	if err != nil {
		return nil, err
	}
	stopRiver(client) // it completes in batches; a stop ends with the last
	return waits, r.require(ctx, rivertype.JobStateCompleted)
}
