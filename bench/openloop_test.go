package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoisson(t *testing.T) {
	const n, rate = 20_000, 200
	at := poisson(n, rate, 7)
	if len(at) != n || !slices.IsSorted(at) || at[0] < 0 {
		t.Fatalf("%d times, sorted %v, from %v", len(at), slices.IsSorted(at), at[0])
	}
	if got := n / at[n-1].Seconds(); got < 0.95*rate || got > 1.05*rate {
		t.Errorf("rate is %.1f/s, want about %d", got, rate)
	}
	if !slices.Equal(at, poisson(n, rate, 7)) || slices.Equal(at, poisson(n, rate, 8)) {
		t.Error("the times should depend on the seed alone")
	}
}

// A send that hangs moves none of the times that later ones are measured from.
func TestOpenLoopForgivesNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		at := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Second}
		stall := []time.Duration{10 * time.Second, 0, 0, 0}
		late := []time.Duration{0, 9 * time.Second, 8 * time.Second, 0} // the only sender is busy until the 11th second
		err := openLoop(t.Context(), at, 1, func(_ context.Context, i int, intended time.Time) error {
			if intended.Sub(begin) != at[i] {
				t.Errorf("send %d was told %v, want %v", i, intended.Sub(begin), at[i])
			}
			if got := time.Since(intended); got != late[i] {
				t.Errorf("send %d was late by %v, want %v", i, got, late[i])
			}
			time.Sleep(stall[i])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestOpenLoopSendsEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		var mu sync.Mutex
		sent := make(map[int]int)
		if err := openLoop(t.Context(), poisson(n, 50, 1), 8, func(_ context.Context, i int, _ time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			sent[i]++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(sent) != n {
			t.Errorf("%d of %d were sent", len(sent), n)
		}
		for i, times := range sent {
			if times != 1 {
				t.Errorf("%d was sent %d times", i, times)
			}
		}
	})
}

func TestOpenLoopEndsWithTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		begin := time.Now()
		err := openLoop(t.Context(), []time.Duration{time.Second, time.Hour}, 2, func(context.Context, int, time.Time) error { return broken })
		if !errors.Is(err, broken) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
}
