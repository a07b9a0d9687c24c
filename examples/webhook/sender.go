package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/worker"
)

const queue = "webhooks"

// vault keeps the secrets of the sender. Dispatch asks it at every attempt; Redis holds the name "shop" alone.
type vault struct {
	mu      sync.Mutex
	secrets []string
}

// find is Options.Secrets. While a secret is being replaced it returns both, the new one first.
func (v *vault) find(_ context.Context, name string) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if name != "shop" {
		return nil, fmt.Errorf("there is no such secret")
	}
	return v.secrets, nil
}

func (v *vault) set(secrets ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secrets = secrets
}

func makeSecret() string {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// sender tells a receiver of orders, one after the other.
type sender struct {
	client *dispatch.Client
	target string
	vault  vault
	ended  chan dispatch.Event // of tasks that are done with
}

func startSender(ctx context.Context, store dispatch.Store, target string) (*sender, func() error, error) {
	s := &sender{target: target, ended: make(chan dispatch.Event, 1)}
	d, err := dispatch.New(store, dispatch.Options{
		Secrets:  s.vault.find,
		Observer: s.observe,
		Egress:   worker.Egress{AllowPrivate: true}, // the receiver is on this machine
	})
	if err != nil {
		return nil, nil, err
	}
	s.client = d.Client
	_, err = d.EnsureQueue(ctx, dispatch.Queue{
		Name: queue, Secret: "shop",
		Retry:      dispatch.RetryConfig{MaxAttempts: 3, MinBackoff: 100 * time.Millisecond},
		NoThrottle: true, // one answer of 503 should not slow down the four deliveries of an example
	})
	if err != nil {
		return nil, nil, err
	}
	return s, d.Stop, d.Start(ctx)
}

func (s *sender) observe(e dispatch.Event) {
	if e.Outcome == dispatch.Succeeded || e.Outcome == dispatch.Dead {
		s.ended <- e
	}
}

// deliver sends an order, and returns when it was accepted at the attempt at which it should be.
func (s *sender) deliver(ctx context.Context, order, wantAttempt int) error {
	id, err := s.client.Enqueue(ctx, dispatch.Task{
		Queue: queue, URL: s.target, Payload: fmt.Appendf(nil, `{"order":%d}`, order),
	})
	if err != nil {
		return err
	}
	select {
	case e := <-s.ended:
		if e.ID != id || e.Outcome != dispatch.Succeeded || e.Attempt.Number != wantAttempt {
			return fmt.Errorf("order %d: %s at attempt %d, want succeeded at attempt %d: %v",
				order, e.Outcome, e.Attempt.Number, wantAttempt, e.Err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("order %d: %w", order, ctx.Err())
	}
}
