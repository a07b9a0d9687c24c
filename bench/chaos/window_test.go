package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func TestWindowsNameTheirQueues(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{Log: log}
	now := time.Now()
	r.MayForget(now, now.Add(time.Second), true, nil)
	r.MayForget(now, now.Add(time.Second), true, []string{"mail", "report"})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := audit.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"what all queues were told", "what [mail report] were told"} {
		if len(h.Events) != 2 || !strings.HasPrefix(h.Events[i].Text, want) {
			t.Errorf("%+v, want %q", h.Events, want)
		}
	}
}
