package signup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// A day and two retries pass in milliseconds, and nothing sleeps.
func TestSignUp(t *testing.T) {
	store := dispatchtest.NewStore(t)
	receiver := dispatchtest.NewReceiver(t, 503, 200) // fails once
	d := dispatchtest.NewDispatcher(t, store, dispatch.Options{})
	var reminded []string
	dispatch.HandleFunc(d, "remind", func(ctx context.Context, user string) error {
		if attempt, _ := dispatch.AttemptFrom(ctx); attempt.Number == 1 {
			return errors.New("mail server is down")
		}
		reminded = append(reminded, user)
		return nil
	})

	// snippet test
	service := &Service{Tasks: d.Client, Hook: receiver.URL}
	hook, err := service.SignUp(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	dispatchtest.RequireEnqueued(t, store, dispatch.Task{Kind: "remind", Payload: []byte(`"ann"`)})

	dispatchtest.RunUntilIdle(t, d) // the hook answers 503
	store.Advance(time.Second)      // the backoff
	dispatchtest.RunUntilIdle(t, d)
	dispatchtest.RequireDelivered(t, receiver, hook, 2)
	// end snippet

	store.Advance(24 * time.Hour)
	dispatchtest.RunUntilIdle(t, d) // the reminder fails
	store.Advance(time.Second)
	dispatchtest.RunUntilIdle(t, d)
	if len(reminded) != 1 || reminded[0] != "ann" {
		t.Fatalf("reminded %v, want ann once", reminded)
	}
}
