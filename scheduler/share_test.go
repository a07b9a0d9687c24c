package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestShares: two queues with endless backlogs get tasks by their weights, whether tasks take longer than claims or
// not, and whether or not each may have all places.
func TestShares(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, places := range []int{8, 64} {
			for _, task := range []time.Duration{100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
				t.Run(fmt.Sprintf("shared %v, %d places, tasks of %v", shared, places, task), func(t *testing.T) {
					p := newProcess(Options{Places: places, ClaimCap: 100, Shared: shared}, task)
					p.s.SetLimits("light", Limits{Weight: 1}, p.now)
					p.s.SetLimits("heavy", Limits{Weight: 3}, p.now)
					for _, name := range []string{"light", "heavy"} {
						p.s.Due(name, p.now, p.now)
					}
					p.run(time.Second)
					if ratio := float64(p.ended["heavy"]) / float64(p.ended["light"]); ratio < 2.8 || ratio > 3.2 {
						t.Errorf("heavy has done %d tasks, light %d: %.2f times, want 3", p.ended["heavy"], p.ended["light"], ratio)
					}
				})
			}
		}
	}
}

// TestPrefetchFillsPlaces: with tasks as short as a claim, the process does nearly as much as its places can do, and
// with long ones it holds no task that it has no place for.
func TestPrefetchFillsPlaces(t *testing.T) {
	short := newProcess(Options{Places: 64, ClaimCap: 100}, time.Millisecond)
	short.s.Due("mail", short.now, short.now)
	short.run(time.Second)
	if done := short.ended["mail"]; done < 64_000*2/5 {
		t.Errorf("%d tasks of 1 ms in 1 s on 64 places", done)
	}
	if short.held <= 64 {
		t.Errorf("no more than %d tasks held, with 64 places", short.held)
	}
	long := newProcess(Options{Places: 4, ClaimCap: 100}, 100*time.Millisecond)
	long.s.Due("mail", long.now, long.now)
	long.run(time.Second)
	if long.held > 4 {
		t.Errorf("%d tasks held, with 4 places", long.held)
	}
}

// process plays the process around a scheduler, in a time of its own. Every queue has an endless backlog. A call to the
// store takes from 150 to 450 µs. Tasks that end are settled together, one call in flight per queue.
type process struct {
	s      *Scheduler
	now    time.Time
	random *rand.Rand
	task   time.Duration // tasks take from half of it to half as much again
	events []event       // by instant

	shared   bool
	idle     int
	held     int // most leases at once
	queued   []string
	running  map[string]int
	parts    map[string]int // as the scheduler tells them
	ended    map[string]int
	unsaid   map[string]int // ended, and not yet being settled
	settling map[string]bool
}

type event struct {
	at time.Time
	do func()
}

func newProcess(o Options, task time.Duration) *process {
	return &process{
		s:      New(o),
		shared: o.Shared,
		now:    time.Unix(1_700_000_000, 0),
		random: rand.New(rand.NewPCG(1, 1)),
		task:   task,
		idle:   o.Places,
		ended:  map[string]int{}, running: map[string]int{}, parts: map[string]int{}, unsaid: map[string]int{}, settling: map[string]bool{},
	}
}

func (p *process) run(d time.Duration) {
	end := p.now.Add(d)
	for p.claim(); p.now.Before(end); {
		e := p.events[0]
		p.events = p.events[1:]
		p.now = e.at
		e.do()
	}
}

func (p *process) after(d time.Duration, do func()) {
	at := p.now.Add(d)
	i, _ := slices.BinarySearchFunc(p.events, at, func(e event, at time.Time) int { return e.at.Compare(at) })
	p.events = slices.Insert(p.events, i, event{at, do})
}

func (p *process) call(do func()) {
	p.after(150*time.Microsecond+time.Duration(p.random.IntN(300))*time.Microsecond, do)
}

func (p *process) claim() {
	for {
		g, ok := p.s.Next(p.now)
		if !ok {
			return
		}
		p.call(func() {
			p.s.Claimed(g.Queue, Claim{Leased: g.Budget, Next: p.now}, p.now)
			p.held = max(p.held, p.s.InFlight())
			for range g.Budget {
				p.queued = append(p.queued, g.Queue)
			}
			p.work()
			p.claim()
		})
	}
}

func (p *process) work() {
	p.s.Bounds(func(name string, places int) { p.parts[name] = places })
	for ; p.idle > 0; p.idle-- {
		i := slices.IndexFunc(p.queued, func(name string) bool { return !p.shared || p.running[name] < p.parts[name] })
		if i < 0 {
			return
		}
		name := p.queued[i]
		p.queued = slices.Delete(p.queued, i, i+1)
		p.running[name]++
		p.after(p.task/2+time.Duration(p.random.Int64N(int64(p.task))), func() {
			p.idle++
			p.running[name]--
			p.ended[name]++
			p.unsaid[name]++
			p.settle(name)
			p.work()
		})
	}
}

func (p *process) settle(name string) {
	n := p.unsaid[name]
	if n == 0 || p.settling[name] {
		return
	}
	p.unsaid[name], p.settling[name] = 0, true
	p.call(func() {
		p.settling[name] = false
		p.s.Done(name, n, p.now)
		p.s.Working(name, p.running[name])
		p.settle(name)
		p.work()
		p.claim()
	})
}
