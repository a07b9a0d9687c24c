package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

// mixFault is one thing that happens in random-mix, and is over when make returns.
type mixFault struct {
	name string
	make func(m *mix, ctx context.Context) error
}

// frozenOwner is the fault after which a worker reports for leases that others have by then.
const frozenOwner = 0

// mixFaults are all of them. What happens to the server happens to everybody: the ledger says so, because a worker that is cut off
// for longer than its threshold has its tasks taken away.
var mixFaults = []mixFault{
	frozenOwner: {"freeze past the leases", func(m *mix, ctx context.Context) error {
		w, err := m.burden(ctx)
		if err != nil {
			return err
		}
		return m.freeze(ctx, w, m.config.Lease(2*time.Second)+m.between(900, 1500))
	}},
	{"freeze for a moment", func(m *mix, ctx context.Context) error { return m.freeze(ctx, m.any(), m.between(50, 1000)) }},
	{"isolate a worker", func(m *mix, ctx context.Context) error {
		w := m.any()
		w.Isolate(true)
		ok := Sleep(ctx, m.between(200, 4000))
		w.Isolate(false)
		return unless(ctx, ok)
	}},
	{"step a clock", func(m *mix, ctx context.Context) error {
		step := 5 * time.Minute
		if m.Rand.IntN(2) == 0 {
			step = -step
		}
		return m.any().StepClock(step)
	}},
	onNetwork("cut", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		for range 1 + m.Rand.IntN(5) {
			p.Cut()
			if !Sleep(ctx, m.between(20, 200)) {
				return context.Cause(ctx)
			}
		}
		return nil
	}),
	onNetwork("blackhole", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		p.BlackHole(true)
		defer p.BlackHole(false)
		return unless(ctx, Sleep(ctx, m.between(200, 2500)))
	}),
	onNetwork("half-open", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		p.HalfOpen(true)
		defer p.HalfOpen(false)
		return unless(ctx, Sleep(ctx, m.between(200, 2500)))
	}),
	onNetwork("refuse", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		p.Refuse()
		p.Cut()
		ok := Sleep(ctx, m.between(200, 1500))
		if err := p.Accept(); err != nil {
			return err
		}
		return unless(ctx, ok)
	}),
	onNetwork("delay", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		p.Delay(m.between(5, 100))
		defer p.Delay(0)
		return unless(ctx, Sleep(ctx, m.between(500, 1500)))
	}),
	onNetwork("throttle", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		p.Throttle(20_000 + m.Rand.IntN(100_000))
		defer p.Throttle(0)
		return unless(ctx, Sleep(ctx, m.between(500, 1500)))
	}),
	onNetwork("lose replies", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		return m.lose(ctx, p, faultproxy.Loss{Reply: true})
	}),
	onNetwork("lose requests", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error { return m.lose(ctx, p, faultproxy.Loss{}) }),
	onNetwork("errors", func(m *mix, ctx context.Context, p *faultproxy.Proxy) error {
		refusals := []string{
			"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
			"READONLY You can't write against a read only replica.", "MISCONF Redis is configured to save RDB snapshots",
		}
		return m.lose(ctx, p, faultproxy.Loss{Error: refusals[m.Rand.IntN(len(refusals))]})
	}),
	onServer("script flush", func(m *mix, ctx context.Context) error { return m.command("SCRIPT", "FLUSH") }),
	onServer("client kill", func(m *mix, ctx context.Context) error { return m.command("CLIENT", "KILL", "TYPE", "normal") }),
	onServer("client kill pubsub", func(m *mix, ctx context.Context) error { return m.command("CLIENT", "KILL", "TYPE", "pubsub") }),
	onServer("full", func(m *mix, ctx context.Context) error {
		if err := m.command("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction"); err != nil {
			return err
		}
		ok := Sleep(ctx, m.between(300, 1500))
		if err := m.command("CONFIG", "SET", "maxmemory", "0"); err != nil {
			return err
		}
		return unless(ctx, ok)
	}),
	onServer("pause the server", func(m *mix, ctx context.Context) error {
		node := m.Set.Primary()
		if err := node.Pause(); err != nil {
			return err
		}
		ok := Sleep(ctx, m.between(200, 2500))
		if err := node.Resume(); err != nil {
			return err
		}
		return unless(ctx, ok)
	}),
	onServer("kill the server", func(m *mix, ctx context.Context) error {
		node := m.Set.Primary()
		node.Kill()
		ok := Sleep(ctx, m.between(0, 1500))
		if err := node.Restart(); err != nil {
			return err
		}
		return unless(ctx, ok)
	}),
}

// onNetwork is a fault between the server and everybody.
func onNetwork(name string, do func(m *mix, ctx context.Context, p *faultproxy.Proxy) error) mixFault {
	return onServer(name, func(m *mix, ctx context.Context) error { return do(m, ctx, m.Set.Primary().Proxy()) })
}

// onServer is a fault of the server, which everybody sees.
func onServer(name string, do func(m *mix, ctx context.Context) error) mixFault {
	return mixFault{name, func(m *mix, ctx context.Context) error {
		m.Log.Append(audit.Event{Kind: audit.KindFault, Fault: "loss", Target: audit.AnyWorker, Text: name})
		defer m.Fault("heal", audit.AnyWorker)
		return do(m, ctx)
	}}
}

// between is a random time in ms.
func (m *mix) between(least, most int) time.Duration {
	return time.Duration(least+m.Rand.IntN(most-least)) * time.Millisecond
}

// any is a random worker.
func (m *mix) any() *Process { return m.workers[m.Rand.IntN(len(m.workers))] }

// burden enqueues long tasks and returns the worker that holds the most of them.
func (m *mix) burden(ctx context.Context) (*Process, error) {
	long := make([]dispatch.Task, 20)
	for i := range long {
		long[i] = Work{For: longWork, Stubborn: true}.Task("report")
	}
	if _, err := m.Client().EnqueueMany(ctx, long); err != nil {
		return nil, err
	}
	if !Sleep(ctx, 200*time.Millisecond) {
		return nil, context.Cause(ctx)
	}
	most, holder := -1, m.any()
	for _, w := range m.workers {
		held, err := m.Held(ctx, w)
		if err != nil {
			return nil, err
		}
		if len(held) > most {
			most, holder = len(held), w
		}
	}
	return holder, nil
}

// freeze stops a worker for a while.
func (m *mix) freeze(ctx context.Context, w *Process, d time.Duration) error {
	if err := w.Stop(); err != nil {
		return err
	}
	ok := Sleep(ctx, d)
	if err := w.Cont(); err != nil {
		return err
	}
	return unless(ctx, ok)
}

// lose has a random part of all commands fail for a while.
func (m *mix) lose(ctx context.Context, p *faultproxy.Proxy, l faultproxy.Loss) error {
	share, random := 0.05+0.5*m.Rand.Float64(), rand.New(rand.NewPCG(m.Rand.Uint64(), 0))
	l.Match = func(faultproxy.Request) bool { return random.Float64() < share }
	p.Lose(l)
	defer p.Lose(faultproxy.Loss{})
	return unless(ctx, Sleep(ctx, m.between(500, 2000)))
}

// command tells the server to do something to itself, behind the proxy's back.
func (m *mix) command(args ...string) error {
	if reply, err := m.Set.Primary().Command(args...); err != nil {
		return fmt.Errorf("%v: %s: %w", args, reply, err)
	}
	return nil
}

// unless is the reason why a sleep was cut short, if it was.
func unless(ctx context.Context, slept bool) error {
	if slept {
		return nil
	}
	return context.Cause(ctx)
}
