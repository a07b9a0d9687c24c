package main

import (
	"testing"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func TestScriptsAreKnownFromTheirFirstCall(t *testing.T) {
	text := "-- lib_clock: put before all\nlocal x\n-- settle: apply outcomes\n-- KEYS[1] due\n-- a remark: not at the beginning of a name\n"
	eval := faultproxy.Request{Name: "EVAL", SHA: "abc", Args: [][]byte{[]byte("eval"), []byte(text), []byte("0")}}
	sha := faultproxy.Request{Name: "EVALSHA", SHA: "abc"}
	var b scriptBook
	if got := b.name(sha); got != "" {
		t.Errorf("a script that was never seen is %q", got)
	}
	if got := b.name(eval); got != "settle" {
		t.Errorf("its text is that of %q", got)
	}
	if got := b.name(sha); got != "settle" {
		t.Errorf("its hash is that of %q", got)
	}
	if got := b.name(faultproxy.Request{Name: "PING"}); got != "" {
		t.Errorf("PING is script %q", got)
	}
}

func TestLossesAreCountedAndNeverTwoInARow(t *testing.T) {
	l := newScriptLosses()
	l.book.names = map[string]string{"abc": "settle", "def": "claim"}
	settle, claim := faultproxy.Request{Name: "EVALSHA", SHA: "abc"}, faultproxy.Request{Name: "EVALSHA", SHA: "def"}
	l.arm("settle", 2)
	for i, want := range []bool{true, false, true, false, false} {
		if got := l.match(settle); got != want {
			t.Errorf("call %d of settle is lost: %v", i+1, got)
		}
		if l.match(claim) {
			t.Error("a call of claim is lost, which is not armed")
		}
	}
	if left, lost := l.pending("settle"), l.disarm("settle"); left != 0 || lost != 2 {
		t.Errorf("%d left and %d lost, want 0 and 2", left, lost)
	}
}
