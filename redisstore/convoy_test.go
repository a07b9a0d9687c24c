package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// gated holds single commands until open is closed, and counts what travels.
type gated struct {
	open chan struct{}

	once      sync.Once
	mu        sync.Mutex
	alone     int
	pipelines []int // commands in each
}

func (g *gated) release() { g.once.Do(func() { close(g.open) }) }

func (g *gated) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gated) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			g.mu.Lock()
			g.alone++
			g.mu.Unlock()
			<-g.open
		}
		return next(ctx, cmd)
	}
}

func (g *gated) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.mu.Lock()
		g.pipelines = append(g.pipelines, len(cmds))
		g.mu.Unlock()
		return next(ctx, cmds)
	}
}

func (g *gated) seen() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprint(g.alone, g.pipelines)
}

// claimOf claims from a queue of its own, whose answer is that there is none; long is how many bytes its call is longer by.
func claimOf(ctx context.Context, s *testStore, i, long int) error {
	r := claimRequest(alice, 1, 1)
	r.Queue = fmt.Sprint("q", i) + strings.Repeat("x", long)
	_, err := s.Claim(ctx, r)
	if errors.Is(err, dispatch.ErrQueueNotFound) {
		return nil
	}
	return fmt.Errorf("claim %d: %w", i, err)
}

// waitingIn is how many calls wait for a pipeline.
func (s *Store) waitingIn(t *testing.T) (n int) {
	c := s.convoyOf(t.Context(), "k")
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func TestCallsTravelTogether(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		g := &gated{open: make(chan struct{})}
		s := b.open(t)
		t.Cleanup(g.release)
		s.company = time.Hour
		ok(t, claimOf(t.Context(), s, 0, 0)) // the server knows the script
		s.client.(*redis.Client).AddHook(g)
		var calls sync.WaitGroup
		call := func(ctx context.Context, i, long int, want error) {
			calls.Go(func() {
				if err := claimOf(ctx, s, i, long); !errors.Is(err, want) {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		for i := range convoyAfter {
			call(t.Context(), i, 0, nil)
		}
		eventually(t, "three calls alone", func() bool { return g.seen() == "3 []" })
		for i := range 10 {
			call(t.Context(), 10+i, 0, nil)
		}
		eventually(t, "ten that wait", func() bool { return s.waitingIn(t) == 10 })
		call(t.Context(), 30, 90, nil) // a long one does not
		eventually(t, "a long call alone", func() bool { return g.seen() == "4 []" })
		ctx, cancel := context.WithCancel(t.Context())
		call(ctx, 31, 0, context.Canceled)
		eventually(t, "eleven that wait", func() bool { return s.waitingIn(t) == 11 })
		cancel() // this one is not sent
		g.release()
		calls.Wait()
		eventually(t, "that all have arrived", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			sum := 0
			for _, n := range g.pipelines {
				sum += n
			}
			return sum == 10 && len(g.pipelines) < 5
		})
	})
}

// Calls whose connections are dead do not hold up the others.
func TestCallsDoNotWaitForTheDead(t *testing.T) {
	s := openMini(t)
	ok(t, claimOf(t.Context(), s, 0, 0))
	dead := &gated{open: make(chan struct{})}
	t.Cleanup(dead.release)
	var calls sync.WaitGroup
	defer calls.Wait()
	s.client.(*redis.Client).AddHook(hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		if script == "claim" && strings.Contains(scriptKeys(cmd)[0], "{q1") {
			<-dead.open
		}
		return next(ctx, cmd)
	}))
	for i := range convoyAfter {
		calls.Go(func() { claimOf(t.Context(), s, 10+i, 0) })
	}
	eventually(t, "three on their way", func() bool {
		c := s.convoyOf(t.Context(), "k")
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.sent == convoyAfter
	})
	ok(t, claimOf(t.Context(), s, 20, 0))
	dead.release()
}

// A server that has lost its scripts says so to each call of a pipeline.
func TestPipelineOfUnknownScripts(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		g := &gated{open: make(chan struct{})}
		s := b.open(t)
		t.Cleanup(g.release)
		s.company = time.Hour
		s.client.(*redis.Client).AddHook(g)
		var calls sync.WaitGroup
		for i := range convoyAfter + 5 {
			calls.Go(func() {
				if err := claimOf(t.Context(), s, i, 0); err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, "five that wait", func() bool { return s.waitingIn(t) == 5 })
		g.release()
		calls.Wait()
	})
}

// A caller whose context has ended may do with its memory what it likes, though its call is still on its way.
func TestConvoyKeepsNoMemoryOfItsCallers(t *testing.T) {
	s := openMini(t)
	slow := hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		time.Sleep(time.Millisecond)
		return next(ctx, cmd)
	})
	s.client.(*redis.Client).AddHook(slow)
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			tasks := []dispatch.Submission{task(fmt.Sprint("t", i))}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
			defer cancel()
			s.Enqueue(ctx, mail, tasks, dispatch.EnqueueOptions{})
			tasks[0].ID = "changed"
		})
	}
	calls.Wait()
}

// A node of a cluster that does not have the slot sends a call elsewhere.
func TestConvoyFollowsRedirections(t *testing.T) {
	s := openMini(t)
	s.company = time.Hour
	ok(t, claimOf(t.Context(), s, 0, 0))
	g := &gated{open: make(chan struct{})}
	t.Cleanup(g.release)
	client := s.client.(*redis.Client)
	client.AddHook(g)
	client.AddHook(movedInPipelines{})
	var calls sync.WaitGroup
	for i := range convoyAfter + 3 {
		calls.Go(func() {
			if err := claimOf(t.Context(), s, i, 0); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "three that wait", func() bool { return s.waitingIn(t) == 3 })
	g.release()
	calls.Wait()
	if got := g.seen(); !strings.HasPrefix(got, "6 ") {
		t.Errorf("sent %s; want three alone, and three again", got)
	}
}

// movedInPipelines answers all of a pipeline with MOVED.
type movedInPipelines struct{}

func (movedInPipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (movedInPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (movedInPipelines) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.SetErr(errMoved{})
		}
		return errMoved{}
	}
}

type errMoved struct{}

func (errMoved) Error() string { return "MOVED 1 127.0.0.1:1" }
func (errMoved) RedisError()   {}

// A hook of the caller's client may end a pipeline's goroutine, or panic on it: its calls fail, and the next ones go on.
func TestHooksThatEndAPipeline(t *testing.T) {
	for name, end := range map[string]func(){"goexit": runtime.Goexit, "panic": func() { panic("hook") }} {
		t.Run(name, func(t *testing.T) {
			s := openMini(t)
			s.company = time.Hour
			ok(t, claimOf(t.Context(), s, 0, 0))
			g := &gated{open: make(chan struct{})}
			t.Cleanup(g.release)
			s.client.(*redis.Client).AddHook(g)
			s.client.(*redis.Client).AddHook(&endsPipelines{end: end})
			var calls sync.WaitGroup
			var failed atomic.Int64
			for i := range convoyAfter + 3 {
				calls.Go(func() {
					if claimOf(t.Context(), s, i, 0) != nil {
						failed.Add(1)
					}
				})
			}
			eventually(t, "three that wait", func() bool { return s.waitingIn(t) == 3 })
			g.release()
			calls.Wait()
			if n := failed.Load(); n < 1 || n > 3 {
				t.Errorf("%d calls failed, want those of the pipeline", n)
			}
			eventually(t, "that no place is lost", func() bool {
				c := s.convoyOf(t.Context(), "k")
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.sent == 0
			})
		})
	}
}

// endsPipelines does that to every pipeline.
type endsPipelines struct {
	movedInPipelines
	end func()
}

func (e *endsPipelines) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error {
		e.end()
		return nil
	}
}
