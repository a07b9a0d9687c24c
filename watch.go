package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// waitHub is what the Waits of one client share. It holds a watch while there is any.
type waitHub struct {
	store Awaiter
	log   *logger
	clock clockwork.Clock

	mu    sync.Mutex
	watch *watch // nil while nobody waits
}

// watch is one subscription and those who wait for what it tells. It owns two goroutines, listen and lookNowAndThen,
// and one for each queue that it is looking at. They end soon after the last waiter has left.
//
// Nothing that ends is missed: a waiter is there before the look at its task, the look is not before the subscription
// stands, and from the look on the store tells.
type watch struct {
	hub   *waitHub
	ctx   context.Context // ends when the last waiter leaves
	end   context.CancelFunc
	looks groupCommit[*waiter]

	// hub.mu guards what follows.
	joined  bool // the subscription has stood once
	waiters map[waitedTask]map[*waiter]struct{}
}

type waitedTask struct {
	queue string
	id    TaskID
}

// waiter is one call of Wait.
type waiter struct {
	watch *watch
	task  waitedTask
	ended chan struct{} // holds one signal: the task may have ended
	asked bool          // a look at the task is to begin; hub.mu guards it
}

// tell says that the task may have ended.
func (w *waiter) tell() {
	select {
	case w.ended <- struct{}{}:
	default:
	}
}

func (h *waitHub) enter(queue string, id TaskID) *waiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch == nil {
		h.watch = h.begin()
	}
	w := &waiter{watch: h.watch, task: waitedTask{queue, id}, ended: make(chan struct{}, 1)}
	all := w.watch.waiters[w.task]
	if all == nil {
		all = make(map[*waiter]struct{})
		w.watch.waiters[w.task] = all
	}
	all[w] = struct{}{}
	if w.watch.joined {
		w.watch.ask(w)
	}
	return w
}

func (h *waitHub) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := w.watch.waiters[w.task]
	delete(all, w)
	if len(all) == 0 {
		delete(w.watch.waiters, w.task)
	}
	if len(w.watch.waiters) == 0 {
		w.watch.end()
		h.watch = nil
	}
}

// begin makes a watch, which starts at once. h.mu is held.
func (h *waitHub) begin() *watch {
	s := &watch{hub: h, waiters: make(map[waitedTask]map[*waiter]struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.looks = groupCommit[*waiter]{
		send: s.look, maxItems: waitBatchTasks, maxBytes: 1, size: func(*waiter) int { return 0 },
	}
	go s.listen()
	go s.lookNowAndThen()
	return s
}

// listen hears of tasks that have ended.
func (s *watch) listen() {
	for failures := 1; s.ctx.Err() == nil; failures++ {
		err := s.hub.store.ListenEnded(s.ctx, func() {
			failures = 0
			s.hub.log.recovered("listen for ended tasks")
			s.askAll(true) // messages may have been missed
		}, s.heard)
		if s.ctx.Err() == nil {
			s.hub.log.failing("listen for ended tasks", err)
			s.hub.pause(s.ctx, backoffAfter(failures))
		}
	}
}

// lookNowAndThen looks at all tasks now and then, which also renews that somebody waits.
func (s *watch) lookNowAndThen() {
	for {
		s.hub.pause(s.ctx, soonerThan(waitInterval))
		if s.ctx.Err() != nil {
			return
		}
		s.askAll(false)
	}
}

// askAll asks for a look at every task.
func (s *watch) askAll(joined bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.joined = s.joined || joined
	for _, all := range s.waiters {
		for w := range all {
			s.ask(w)
		}
	}
}

// ask asks for a look at the task of a waiter that begins from now on. hub.mu is held.
func (s *watch) ask(w *waiter) {
	if !w.asked {
		w.asked = true
		s.looks.add(w.task.queue, w)
	}
}

// look finds out which tasks of a queue have ended, and sees to it that the end of the others is told. It tries until it
// has an answer or nobody waits for it.
func (s *watch) look(queue string, batch []*waiter) {
	for failures := 1; ; failures++ {
		ids := s.wanted(batch)
		if len(ids) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, waitPatience)
		ended, err := s.hub.store.Await(ctx, queue, ids)
		cancel()
		if err == nil {
			s.hub.log.recovered("look for ended tasks")
			s.heard(queue, ended)
			return
		}
		if s.ctx.Err() != nil {
			return
		}
		s.hub.log.failing("look for ended tasks", err, "queue", queue)
		s.hub.pause(s.ctx, backoffAfter(failures))
	}
}

// wanted are the tasks of a batch that somebody still waits for. A look begins with it.
func (s *watch) wanted(batch []*waiter) []TaskID {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	seen := make(map[TaskID]struct{}, len(batch))
	ids := make([]TaskID, 0, len(batch))
	for _, w := range batch {
		w.asked = false
		if _, waits := s.waiters[w.task][w]; !waits {
			continue
		}
		if _, twice := seen[w.task.id]; !twice {
			seen[w.task.id] = struct{}{}
			ids = append(ids, w.task.id)
		}
	}
	return ids
}

// heard tells those who wait for tasks of a queue.
func (s *watch) heard(queue string, ids []TaskID) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, id := range ids {
		for w := range s.waiters[waitedTask{queue, id}] {
			w.tell()
		}
	}
}

// pause waits, or less when ctx ends.
func (h *waitHub) pause(ctx context.Context, wait time.Duration) {
	timer := h.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.Chan():
	case <-ctx.Done():
	}
}
