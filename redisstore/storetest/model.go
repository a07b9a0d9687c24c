package storetest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// model is what a store of one queue should be: plain maps, and time as a duration since the start. It decides nothing
// that dispatch.Store leaves open: which of two tasks comes first that are due at the same moment, it reads from the
// store's answer.
type model struct {
	now    time.Duration
	exists bool
	q      dispatch.Queue
	tasks  map[string]*modelTask
	names  map[string]time.Duration // tombstone: until when
	totals dispatch.Counts          // only the totals

	generation int           // number of purges
	tombstone  time.Duration // of the last purge
	tat        int64         // GCRA: when the bucket is full again, µs
	lastToken  int64
	changes    int // of the settings
	stored     int // by the last enqueue
}

// modelTask is a task. Exactly the field that goes with its state is meant to be read.
type modelTask struct {
	submission dispatch.Submission
	generation int
	created    time.Duration
	state      dispatch.TaskState
	due        time.Duration // waiting
	urgent     bool          // waiting, to be run at once; due is when that was asked for
	passed     bool          // urgent, and passed on by a worker
	leaseEnd   time.Duration // running
	lease      dispatch.Leased
	expires    time.Duration // succeeded, dead
	progress   dispatch.Progress
}

func newModel() *model {
	m := &model{}
	m.reset()
	return m
}

// reset is the queue that does not exist.
func (m *model) reset() {
	now, last := m.now, m.lastToken
	*m = model{now: now, lastToken: last, tasks: make(map[string]*modelTask), names: make(map[string]time.Duration)}
}

// head is the earliest due time, if anything waits.
func (m *model) head() (at time.Duration, ok bool) {
	for _, t := range m.tasks {
		if t.state == dispatch.TaskWaiting && (!ok || t.rank() < at) {
			at, ok = t.rank(), true
		}
	}
	return at, ok
}

// headWait is how long until the head is due, 0 for one that is to be run at once and for none.
func (m *model) headWait() time.Duration {
	if at, ok := m.head(); ok {
		return m.until(at)
	}
	return 0
}

// rank is what waiting tasks are sorted by: those to be run at once first, the last one asked for before the others.
func (t *modelTask) rank() time.Duration {
	if t.urgent {
		if t.passed {
			return -1<<61 - t.due
		}
		return -1<<62 - t.due
	}
	return t.due
}

// until is how long until a rank is due.
func (m *model) until(rank time.Duration) time.Duration {
	if rank < 0 {
		return 0
	}
	return rank - m.now
}

// moved runs f and says whether the head came nearer, and the wait until it.
func (m *model) moved(f func()) (moved bool, wait time.Duration) {
	before, waited := m.head()
	f()
	now, waits := m.head()
	if !waits {
		return false, 0
	}
	return !waited || now < before, m.until(now)
}

func (m *model) enqueue(batch []dispatch.Submission) (want dispatch.EnqueueReply) {
	if !m.exists {
		m.exists = true
		m.q = dispatch.Queue{Name: queue}
	}
	before, _ := m.head()
	repeated := false // this call put the head where it is, and nobody may have heard of it
	for _, s := range batch {
		t := m.tasks[string(s.ID)]
		repeated = repeated || t != nil && t.state == dispatch.TaskWaiting && t.rank() == before && t.is(s)
	}
	m.stored = 0
	want.Moved, want.Wait = m.moved(func() {
		for _, s := range batch {
			want.Duplicate = append(want.Duplicate, !m.store(s))
		}
	})
	want.Moved = want.Moved || repeated
	return want
}

// is says whether a task was submitted by this call, or one that cannot be told from it.
func (t *modelTask) is(s dispatch.Submission) bool {
	old := t.submission
	return old.Named == s.Named && old.Nonce == s.Nonce && len(old.Payload) == len(s.Payload)
}

// store takes one task in, or says that its name is taken.
func (m *model) store(s dispatch.Submission) bool {
	id := string(s.ID)
	if t := m.tasks[id]; t != nil && (t.is(s) || !t.ended() || t.expires > m.now) {
		return t.is(s)
	}
	if s.Named && m.names[id] > m.now {
		return false
	}
	m.stored++
	m.tasks[id] = &modelTask{
		submission: s, generation: m.generation, created: m.now, state: dispatch.TaskWaiting, due: m.now + s.Delay,
	}
	return true
}

// ready are the tasks that are due, the longest due first.
func (m *model) ready() []*modelTask {
	var ready []*modelTask
	for _, t := range m.tasks {
		if t.state == dispatch.TaskWaiting && t.due <= m.now {
			ready = append(ready, t)
		}
	}
	slices.SortFunc(ready, func(a, b *modelTask) int { return cmp.Compare(a.rank(), b.rank()) })
	return ready
}

func (m *model) count(state dispatch.TaskState) int {
	n := 0
	for _, t := range m.tasks {
		if t.state == state {
			n++
		}
	}
	return n
}

// urgent is how many tasks are to be run at once.
func (m *model) urgent() int {
	n := 0
	for _, t := range m.tasks {
		if t.state == dispatch.TaskWaiting && t.urgent {
			n++
		}
	}
	return n
}

// change replaces the settings. What was used of the bucket stays used.
func (m *model) change(q dispatch.Queue) {
	now, used := m.now.Microseconds(), int64(0)
	if old := m.interval(); old > 0 {
		used = max(int64(math.Ceil(float64(m.tat-now)/float64(old))), 0)
	}
	q.Paused = m.q.Paused
	m.q = q
	m.changes++
	m.tat = now + used*m.interval()
}

// interval is µs between two attempts, 0 without a rate.
func (m *model) interval() int64 {
	if m.q.Rate <= 0 {
		return 0
	}
	return int64(math.Round(1e6 / m.q.Rate))
}

// claim says how many tasks a claim leases and what keeps it from more.
func (m *model) claim(budget int) (n int, block dispatch.Block, wait time.Duration) {
	n = budget
	if m.q.Paused {
		n, block = 0, dispatch.BlockedByPause
	}
	if free := max(m.q.MaxConcurrent-m.count(dispatch.TaskRunning), 0); n > 0 && m.q.MaxConcurrent > 0 && free < n {
		n, block = free, dispatch.BlockedByConcurrency
	}
	limited := n > 0 && m.q.Rate > 0
	now, interval, burst := m.now.Microseconds(), int64(0), int64(0)
	if limited {
		interval, burst = m.interval(), int64(m.q.EffectiveBurst())
		m.tat = min(m.tat, now+burst*interval)
		if tokens := int((now + burst*interval - max(m.tat, now)) / interval); tokens < n {
			n, block = tokens, dispatch.BlockedByRate
		}
	}
	ready, urgent := len(m.ready()), m.urgent()
	wanted := n
	if n == 0 {
		wanted = min(budget, urgent)
	}
	open := n > 0
	n = min(ready, wanted)
	if n == ready && block != dispatch.BlockedByPause {
		block = ""
	}
	if limited && open {
		if charged := n - min(n, urgent); charged > 0 {
			m.tat = max(m.tat, now) + int64(charged)*interval
		}
	}
	if block == dispatch.BlockedByRate {
		micros := max(m.tat, now) + (1-burst)*interval - now
		wait = time.Duration(max((micros+999)/1000, 1)) * time.Millisecond
	}
	return n, block, wait
}

// leased takes over what a claim has leased.
func (m *model) leased(leased []dispatch.Leased) {
	for _, l := range leased {
		t := m.tasks[string(l.Task.ID)]
		t.state, t.lease, t.leaseEnd, t.urgent = dispatch.TaskRunning, l, m.now+timeout+grace, false
	}
}

// waits are the waits that a claim answers with, below zero for nothing.
func (m *model) waits() (next, leaseEnd time.Duration) {
	next, leaseEnd = -1, -1
	if at, ok := m.head(); ok {
		next = max(m.until(at), 0)
	}
	for _, t := range m.tasks {
		if left := max(t.leaseEnd-m.now, 0); t.state == dispatch.TaskRunning && (leaseEnd < 0 || left < leaseEnd) {
			leaseEnd = left
		}
	}
	return next, leaseEnd
}

// current says whether a lease is a task's current one.
func (m *model) current(id dispatch.TaskID, l dispatch.Lease) *modelTask {
	t := m.tasks[string(id)]
	if t == nil || t.state != dispatch.TaskRunning || t.lease.Lease != l {
		return nil
	}
	return t
}

func (m *model) settle(items []dispatch.Settlement) (want dispatch.SettleReply) {
	want.Moved, want.Wait = m.moved(func() {
		for _, s := range items {
			t := m.current(s.ID, s.Lease)
			want.Applied = append(want.Applied, t != nil)
			want.Dropped = append(want.Dropped, t != nil && m.end(t, s))
		}
	})
	return want
}

// end applies one outcome, and says whether the task was dropped instead.
func (m *model) end(t *modelTask, s dispatch.Settlement) (dropped bool) {
	if s.Progress != nil {
		t.progress = *s.Progress
	}
	back := s.Outcome == dispatch.Retry || s.Outcome == dispatch.Released
	if back && t.generation < m.generation {
		m.drop(t, m.tombstone)
		return true
	}
	switch s.Outcome {
	case dispatch.Retry:
		m.totals.TotalRetried++
	case dispatch.Succeeded:
		m.totals.TotalSucceeded++
	case dispatch.Dead:
		m.totals.TotalDead++
	}
	switch {
	case back && s.Outcome == dispatch.Released && s.GivenBack && t.lease.Urgent:
		t.state, t.urgent, t.passed, t.lease = dispatch.TaskWaiting, true, s.After > 0, dispatch.Leased{} // due is when that was asked for
	case back:
		t.state, t.due, t.lease = dispatch.TaskWaiting, m.now+s.After, dispatch.Leased{}
	case s.After == 0:
		m.drop(t, s.Tombstone)
	default:
		t.state, t.expires = dispatch.TaskDead, m.now+s.After
		if s.Outcome == dispatch.Succeeded {
			t.state = dispatch.TaskSucceeded
		}
		m.entomb(t, s.Tombstone)
	}
	return false
}

// drop removes a task; its name stays for a while.
func (m *model) drop(t *modelTask, tombstone time.Duration) {
	delete(m.tasks, string(t.submission.ID))
	m.entomb(t, tombstone)
}

func (m *model) entomb(t *modelTask, tombstone time.Duration) {
	if t.submission.Named && tombstone > 0 {
		m.names[string(t.submission.ID)] = m.now + tombstone
	}
}

// ended says whether a task has ended and is only retained.
func (t *modelTask) ended() bool {
	return t.state != dispatch.TaskWaiting && t.state != dispatch.TaskRunning
}

// expired are the leases that are over, the longest overdue first.
func (m *model) expired() []*modelTask {
	var over []*modelTask
	for _, t := range m.tasks {
		if t.state == dispatch.TaskRunning && t.leaseEnd <= m.now {
			over = append(over, t)
		}
	}
	slices.SortFunc(over, func(a, b *modelTask) int { return cmp.Compare(a.leaseEnd, b.leaseEnd) })
	return over
}

func (m *model) held(w cluster.WorkerID) []string {
	var ids []string
	for id, t := range m.tasks {
		if t.state == dispatch.TaskRunning && t.lease.Worker == w {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m *model) counts() dispatch.Counts {
	c := m.totals
	c.Ready = int64(len(m.ready()))
	c.Scheduled = int64(m.count(dispatch.TaskWaiting)) - c.Ready
	c.Running = int64(m.count(dispatch.TaskRunning))
	c.Succeeded, c.Dead = int64(m.count(dispatch.TaskSucceeded)), int64(m.count(dispatch.TaskDead))
	c.Cancelled = int64(m.count(dispatch.TaskCancelled))
	if m.q.Rate > 0 {
		c.EffectiveRate = 1e6 / float64(m.interval())
	}
	return c
}
