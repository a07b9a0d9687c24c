package dispatch

import (
	"testing"
	"time"
)

// A clock that is set back while an attempt runs makes it a short one, and not one of less than no time.
func TestRecordOfAnAttemptDuringWhichTheClockWasSetBack(t *testing.T) {
	r := &running{leased: &Leased{At: start}, claimedAt: start, startedAt: start}
	if d := r.record(start.Add(-time.Hour)).Duration; d != 0 {
		t.Errorf("it took %v", d)
	}
	if d := r.record(start.Add(time.Second)).Duration; d != time.Second {
		t.Errorf("it took %v", d)
	}
}
