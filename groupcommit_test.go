package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// committed collects what a groupCommit of strings sends.
type committed struct {
	mu      sync.Mutex
	batches map[string][][]string
	sending map[string]bool
	twice   bool // two sends of a key overlapped
}

func newCommitted() *committed {
	return &committed{batches: make(map[string][][]string), sending: make(map[string]bool)}
}

func (c *committed) begin(key string, batch []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.twice = c.twice || c.sending[key]
	c.sending[key] = true
	c.batches[key] = append(c.batches[key], batch)
}

func (c *committed) end(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending[key] = false
}

func lengthOf(s string) int { return len(s) }

func TestGroupCommitGathersWhileOneIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, gate := newCommitted(), make(chan struct{})
		g := groupCommit[string]{maxItems: 3, maxBytes: 100, size: lengthOf, send: func(key string, batch []string) {
			sent.begin(key, batch)
			<-gate
			sent.end(key)
		}}
		g.add("a", "1")
		synctest.Wait()
		g.add("a", "2")
		g.add("b", "1")
		for i := range 5 {
			g.add("a", fmt.Sprint(3+i))
		}
		synctest.Wait()
		if got := fmt.Sprint(sent.batches); got != "map[a:[[1]] b:[[1]]]" {
			t.Fatalf("in flight are %s, want the first of each key", got)
		}
		close(gate)
		synctest.Wait()
		if got, want := fmt.Sprint(sent.batches), "map[a:[[1] [2 3 4] [5 6 7]] b:[[1]]]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		if len(g.keys) != 0 {
			t.Errorf("%d keys are remembered with nothing to send", len(g.keys))
		}
	})
}

// An add of nothing, and an add from within send, which is how a retry might come.
func TestGroupCommitCorners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := newCommitted()
		var g groupCommit[string]
		g = groupCommit[string]{maxItems: 10, maxBytes: 10, size: lengthOf, send: func(key string, batch []string) {
			sent.begin(key, batch)
			if slices.Contains(batch, "again") {
				g.add(key, "more")
			}
			sent.end(key)
		}}
		g.add("nothing")
		g.add("a", "again")
		synctest.Wait()
		if got := fmt.Sprint(sent.batches); got != "map[a:[[again] [more]]]" {
			t.Errorf("sent %s", got)
		}
		if sent.twice || len(g.keys) != 0 {
			t.Errorf("overlap: %v; %d keys left", sent.twice, len(g.keys))
		}
	})
}

// A send that ends its goroutine does not end its key.
func TestGroupCommitGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, gate := newCommitted(), make(chan struct{})
		var g groupCommit[string]
		g = groupCommit[string]{maxItems: 2, maxBytes: 100, size: lengthOf, send: func(key string, batch []string) {
			sent.begin(key, batch)
			g.mu.Lock()
			if n := g.keys[key].sent; n != len(batch) {
				t.Errorf("%d items count as in flight, of %d", n, len(batch))
			}
			g.mu.Unlock()
			<-gate
			sent.end(key)
			runtime.Goexit()
		}}
		g.add("a", "1", "2", "3", "4")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a send that hangs: %v", err)
		}
		close(gate)
		if err := g.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(sent.batches); got != "map[a:[[1 2] [3 4]]]" || sent.twice || len(g.keys) != 0 {
			t.Errorf("sent %s; overlap: %v; %d keys left", got, sent.twice, len(g.keys))
		}
	})
}

// The batch is the sender's to keep: what is added later must not show through.
func TestGroupCommitBatchIsNotReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var batches [][]string
		g := groupCommit[string]{maxItems: 2, maxBytes: 100, size: lengthOf, send: func(_ string, batch []string) {
			batches = append(batches, append(batch, "kept"))
			<-gate
		}}
		g.add("a", "1", "2", "3", "4", "5")
		for range 3 {
			synctest.Wait()
			g.add("a", "x")
			gate <- struct{}{}
		}
		close(gate)
		synctest.Wait()
		if got, want := fmt.Sprint(batches), "[[1 2 kept] [3 4 kept] [5 x kept] [x x kept]]"; got != want {
			t.Errorf("batches are %s, want %s", got, want)
		}
	})
}

func TestCutBatch(t *testing.T) {
	for _, c := range []struct {
		items    []string
		maxItems int
		maxBytes int
		want     int
	}{
		{nil, 5, 5, 0},
		{[]string{"a"}, 5, 5, 1},
		{[]string{"a", "b", "c"}, 2, 9, 2},
		{[]string{"aa", "bb", "cc"}, 9, 4, 2},
		{[]string{"aa", "bb", "c"}, 9, 5, 3},
		{[]string{"aa", "bb", "cc"}, 9, 5, 2},
		{[]string{"larger than a batch", "b"}, 9, 5, 1},
		{[]string{"a", "larger than a batch"}, 9, 5, 1},
		{[]string{"", "", ""}, 9, 0, 3},
	} {
		if got := cutBatch(c.items, c.maxItems, c.maxBytes, lengthOf); got != c.want {
			t.Errorf("cutBatch(%q, %d, %d) = %d, want %d", c.items, c.maxItems, c.maxBytes, got, c.want)
		}
	}
}

// Every item is sent exactly once and in the order of its adder, no two sends of a key overlap, and no batch is too
// large, however many add at once.
func TestGroupCommitStress(t *testing.T) {
	const adders, each, keys, maxItems, maxBytes = 16, 2000, 5, 7, 40
	sent := newCommitted()
	var pending sync.WaitGroup
	g := groupCommit[string]{maxItems: maxItems, maxBytes: maxBytes, size: lengthOf, send: func(key string, batch []string) {
		sent.begin(key, batch)
		runtime.Gosched()
		sent.end(key)
		pending.Add(-len(batch))
	}}
	var adding sync.WaitGroup
	for a := range adders {
		adding.Go(func() {
			for i := range each {
				pending.Add(1)
				g.add(fmt.Sprint("key", (a+i)%keys), fmt.Sprintf("%02d %05d", a, i))
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	adding.Wait()
	pending.Wait()

	if sent.twice {
		t.Error("two sends of one key overlapped")
	}
	seen := make(map[string]bool)
	for key, batches := range sent.batches {
		last := make(map[string]string) // adder → its last item
		for _, batch := range batches {
			bytes := 0
			for _, item := range batch {
				bytes += len(item)
				if seen[item] {
					t.Errorf("%q is sent twice", item)
				}
				seen[item] = true
				if adder := item[:2]; item < last[adder] {
					t.Errorf("%s: %q is sent after %q", key, item, last[adder])
				} else {
					last[adder] = item
				}
			}
			if len(batch) == 0 || len(batch) > maxItems || bytes > maxBytes {
				t.Errorf("a batch has %d items and %d bytes", len(batch), bytes)
			}
		}
	}
	if len(seen) != adders*each {
		t.Errorf("%d items are sent, want %d", len(seen), adders*each)
	}
}

// Enough that gathers while a batch is in flight makes a second one, and never a third.
func TestGroupCommitSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFlight, most := 0, 0
		var mu sync.Mutex
		var sizes []int
		gate := make(chan struct{})
		g := groupCommit[string]{maxItems: 10, maxBytes: 100, size: lengthOf, second: 3, send: func(_ string, batch []string) {
			mu.Lock()
			sizes = append(sizes, len(batch))
			inFlight++
			most = max(most, inFlight)
			mu.Unlock()
			<-gate
			mu.Lock()
			inFlight--
			mu.Unlock()
		}}
		sent := func(want string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := fmt.Sprint(sizes); got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		}
		g.add("a", "1")
		sent("[1]")
		g.add("a", "2")
		g.add("a", "3")
		sent("[1]") // two are not enough
		g.add("a", "4")
		sent("[1 3]")
		g.add("a", "5", "6", "7", "8")
		sent("[1 3]") // never a third
		gate <- struct{}{}
		sent("[1 3 4]")
		g.add("a", "9")
		gate <- struct{}{}
		sent("[1 3 4]") // one alone waits for the other
		gate <- struct{}{}
		sent("[1 3 4 1]")
		gate <- struct{}{}
		if err := g.wait(t.Context()); err != nil || most != 2 || len(g.keys) != 0 {
			t.Errorf("%v; %d at once, %d keys left", err, most, len(g.keys))
		}
	})
}

// A full batch leaves beside another one, however many items there are.
func TestGroupCommitSecondIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, inFlight := make(chan struct{}), make(chan int, 100)
		g := groupCommit[string]{maxItems: 10, maxBytes: 100, size: lengthOf, second: 3, send: func(_ string, batch []string) {
			inFlight <- len(batch)
			<-gate
		}}
		for range 100 {
			g.add("a", "x")
		}
		for left := 100; left > 0; {
			synctest.Wait()
			if n := len(inFlight); n != 2 && left >= 20 { // one has 10 at the most, so 10 or more have gathered
				t.Fatalf("%d batches in flight, %d items left", n, left)
			}
			left -= <-inFlight
			gate <- struct{}{}
		}
		if err := g.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Callers that wait for their answers fill two batches of about the same size, which take turns; also when many have gone.
func TestGroupCommitHalves(t *testing.T) {
	for _, callers := range [][2]int{{16, 16}, {20, 20}, {33, 33}, {64, 64}, {100, 100}, {400, 20}} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { takeTurns(t, callers[0], callers[1]) }) })
	}
}

func takeTurns(t *testing.T, callers, stay int) {
	var sizes []int
	receiver := make(chan struct{}, 1) // takes one batch at a time, and a millisecond for each item
	g := groupCommit[chan struct{}]{
		maxItems: 150, maxBytes: 150, size: func(chan struct{}) int { return 1 }, second: 8,
		send: func(_ string, batch []chan struct{}) {
			receiver <- struct{}{}
			time.Sleep(time.Duration(len(batch)) * time.Millisecond)
			sizes = append(sizes, len(batch))
			<-receiver
			for _, answered := range batch {
				answered <- struct{}{}
			}
		},
	}
	start := time.Now()
	var all sync.WaitGroup
	for i := range callers {
		end := start.Add(time.Duration(10*callers) * time.Millisecond)
		if i < stay {
			end = end.Add(time.Duration(200*stay) * time.Millisecond)
		}
		all.Go(func() {
			answered := make(chan struct{}, 1)
			for time.Now().Before(end) {
				g.add("a", answered)
				<-answered
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	late := sizes[len(sizes)*3/4 : len(sizes)-4] // by now they have found their size; the last are what is left
	for _, n := range late {
		if n < stay*2/5 || n > stay*3/5 {
			t.Fatalf("batches of %v", sizes)
		}
	}
}
