package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestPoolRunsInOrder(t *testing.T) {
	var ran []int // by one goroutine at a time, one after another
	gate := make(chan struct{})
	p := NewPool(1, 1, func(i int) {
		<-gate
		ran = append(ran, i)
	})
	var want []int
	for i := 0; i < 100; i += 2 {
		p.Add("lane", i, i+1)
		want = append(want, i, i+1)
	}
	if p.Running() != 1 || p.Waiting() != 99 {
		t.Errorf("%d run and %d wait, want 1 and 99", p.Running(), p.Waiting())
	}
	close(gate)
	waitIdle(t, p)
	if !slices.Equal(ran, want) {
		t.Errorf("ran %v", ran)
	}
}

func TestPoolRunsAtMostSize(t *testing.T) {
	for size, want := range map[int]int{-1: 1, 0: 1, 1: 1, 3: 3, 50: 20} {
		started, gate := make(chan struct{}, 20), make(chan struct{})
		p := NewPool(size, 100, func(int) {
			started <- struct{}{}
			<-gate
		})
		p.Add("lane", make([]int, 20)...)
		for range want {
			await(t, started, "start")
		}
		if p.Running() != want || p.Waiting() != 20-want {
			t.Errorf("size %d: %d run and %d wait, want %d and %d", size, p.Running(), p.Waiting(), want, 20-want)
		}
		close(gate)
		waitIdle(t, p)
		if p.Running() != 0 || p.Waiting() != 0 {
			t.Errorf("size %d: %d run and %d wait in an idle pool", size, p.Running(), p.Waiting())
		}
	}
}

func TestPoolIdleHoldsNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	p := NewPool(8, 8, func(int) {})
	for range 10 {
		p.Add("lane", make([]int, 100)...)
		waitIdle(t, p)
	}
	goleak.VerifyNone(t, before)
}

func TestPoolWithdraw(t *testing.T) {
	gate := make(chan struct{})
	var ran []int
	p := NewPool(1, 1, func(i int) {
		<-gate
		ran = append(ran, i)
	})
	p.Add("lane", 0, 1, 2, 3, 4, 5, 6)
	if got := p.Withdraw(func(i int) bool { return i%3 == 0 }); !slices.Equal(got, []int{3, 6}) {
		t.Errorf("withdrew %v, want [3 6]: 0 has started", got)
	}
	if got := p.Withdraw(func(i int) bool { return i > 10 }); got != nil {
		t.Errorf("withdrew %v, want nothing", got)
	}
	p.Add("lane", 7)
	if got := p.Withdraw(func(i int) bool { return i == 1 }); !slices.Equal(got, []int{1}) {
		t.Errorf("withdrew %v, want [1]", got)
	}
	if got := p.Waiting(); got != 4 {
		t.Errorf("%d wait, want 4", got)
	}
	close(gate)
	waitIdle(t, p)
	if !slices.Equal(ran, []int{0, 2, 4, 5, 7}) {
		t.Errorf("ran %v, want [0 2 4 5 7]", ran)
	}
	p.Add("lane")
	if got := p.Withdraw(nil); got != nil {
		t.Errorf("withdrew %v from an idle pool", got)
	}
}

func TestPoolWaitEndsWithItsContext(t *testing.T) {
	gate := make(chan struct{})
	p := NewPool(1, 1, func(int) { <-gate })
	p.Add("lane", 1, 2)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := p.Wait(ctx); err != stop {
		t.Errorf("Wait returned %v, want the cause of its context", err)
	}
	p.Withdraw(nil)
	close(gate)
	waitIdle(t, p)
	if err := p.Wait(ctx); err != nil {
		t.Errorf("Wait of an idle pool returned %v", err)
	}
}

// TestPoolSurvivesGoexit: a test's FailNow in a handler must fail that test, not hang it.
func TestPoolSurvivesGoexit(t *testing.T) {
	var ran atomic.Int32
	p := NewPool(2, 2, func(i int) {
		ran.Add(1)
		if i%2 == 0 {
			runtime.Goexit()
		}
	})
	p.Add("lane", 0, 1, 2, 3, 4, 5, 6, 7, 8)
	waitIdle(t, p)
	if ran.Load() != 9 {
		t.Errorf("%d of 9 items ran", ran.Load())
	}
}

func TestPoolMayBeCalledByItsItems(t *testing.T) {
	var ran atomic.Int32
	var p *Pool[int]
	p = NewPool(2, 2, func(i int) {
		ran.Add(1)
		if i > 0 {
			p.Add("lane", i-1, i-1)
		}
		if p.Running() < 1 || p.Waiting() < 0 {
			t.Error("an item that runs is not counted")
		}
	})
	p.Add("lane", 10)
	waitIdle(t, p)
	if ran.Load() != 1<<11-1 {
		t.Errorf("%d items ran, want %d", ran.Load(), 1<<11-1)
	}
}

// TestPoolLosesNothing calls everything from everywhere: each item is run or withdrawn, once.
func TestPoolLosesNothing(t *testing.T) {
	const producers, perProducer, size, lanes = 4, 5000, 3, 2
	fate := make([]atomic.Int32, producers*perProducer)
	var running atomic.Int32
	var runningOf [lanes]atomic.Int32
	p := NewPool(size, 1, func(i int) {
		if running.Add(1) > size {
			t.Error("more items run than the pool allows")
		}
		if runningOf[i%lanes].Add(1) == size {
			t.Error("one lane has all places")
		}
		defer runningOf[i%lanes].Add(-1)
		fate[i].Add(1)
		if i%7 == 0 {
			runtime.Gosched()
		}
		running.Add(-1)
	})
	producing, others := sync.WaitGroup{}, sync.WaitGroup{}
	ctx, cancel := context.WithCancel(t.Context())
	for n := range producers {
		producing.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for i := 0; i < perProducer; {
				var batch [lanes][]int
				for range min(1+random.IntN(40), perProducer-i) {
					batch[i%lanes] = append(batch[i%lanes], n*perProducer+i)
					i++
				}
				for lane, items := range batch {
					p.Add(fmt.Sprint(lane), items...)
				}
			}
		})
	}
	for n := range 2 {
		others.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(n)))
			for ctx.Err() == nil {
				remainder := random.IntN(5)
				for _, i := range p.Withdraw(func(i int) bool { return i%5 == remainder }) {
					fate[i].Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	others.Go(func() {
		for bound := 0; ctx.Err() == nil; bound = (bound + 1) % size {
			if p.Bound("0", bound); bound == 0 {
				runtime.Gosched()
			}
		}
		p.Bound("0", 1)
	})
	others.Go(func() {
		for ctx.Err() == nil {
			p.Wait(ctx)
			runtime.Gosched()
		}
	})
	producing.Wait()
	cancel()
	others.Wait()
	waitIdle(t, p)
	for i := range fate {
		if n := fate[i].Load(); n != 1 {
			t.Fatalf("item %d was run or withdrawn %d times", i, n)
		}
	}
}

func waitIdle[T any](t testing.TB, p *Pool[T]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		t.Fatalf("the pool is not idle: %v", err)
	}
}

// Items that take no time are run by few goroutines, however many places there are.
func TestPoolBringsFewGoroutines(t *testing.T) {
	// On one processor the goroutine on its way comes when the one before it has run everything, or was interrupted. On several
	// it is a matter of luck how many come meanwhile.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var mu sync.Mutex
	seen := make(map[string]bool)
	p := NewPool(500, 500, func(int) {
		var buf [64]byte
		name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
		mu.Lock()
		defer mu.Unlock()
		seen[name] = true
	})
	p.Add("a", make([]int, 500)...)
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) > 250 {
		t.Errorf("%d goroutines ran 500 items that take no time", len(seen))
	}
}
