package main

import (
	"regexp"
	"sync"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

// scriptBook knows the scripts of the product by the hashes that go by. A server that does not know a script is sent its text,
// whose last header names it, so the book learns each from its first call. It is safe for concurrent use.
type scriptBook struct {
	mu    sync.Mutex
	names map[string]string // by hash
}

// scriptHeader is the first line of each .lua file. The files of libraries come first.
var scriptHeader = regexp.MustCompile(`(?m)^-- ([a-z_]+): `)

// name is the name of the script that a request runs, or empty.
func (b *scriptBook) name(r faultproxy.Request) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		b.names = map[string]string{}
	}
	if r.Name == "EVAL" && len(r.Args) > 1 && b.names[r.SHA] == "" {
		if headers := scriptHeader.FindAllSubmatch(r.Args[1], -1); len(headers) > 0 {
			b.names[r.SHA] = string(headers[len(headers)-1][1])
		}
	}
	return b.names[r.SHA]
}

// scriptLosses loses replies of scripts by their names, so many of each, and never two of one in a row: otherwise a single caller
// that tries again would use them up. It is safe for concurrent use.
type scriptLosses struct {
	book scriptBook

	mu    sync.Mutex
	left  map[string]int  // to be lost
	lost  map[string]int  // were lost
	spare map[string]bool // the next one is not
}

func newScriptLosses() *scriptLosses {
	return &scriptLosses{left: map[string]int{}, lost: map[string]int{}, spare: map[string]bool{}}
}

// arm has the next n replies of a script be lost.
func (l *scriptLosses) arm(script string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left[script], l.spare[script] = n, false
}

// disarm ends it, and says how many were lost since the beginning.
func (l *scriptLosses) disarm(script string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.left, script)
	return l.lost[script]
}

// pending is how many replies of a script are still to be lost.
func (l *scriptLosses) pending(script string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left[script]
}

// match is the Match of a faultproxy.Loss.
func (l *scriptLosses) match(r faultproxy.Request) bool {
	name := l.book.name(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "" || l.left[name] == 0 {
		return false
	}
	if l.spare[name] {
		l.spare[name] = false
		return false
	}
	l.spare[name] = true
	l.left[name]--
	l.lost[name]++
	return true
}
