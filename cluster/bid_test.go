package cluster

import "testing"

// Equal scores are too rare to be met with by names, and must not make two workers the first.
func TestBidsHaveAnOrder(t *testing.T) {
	a, b, better := bid{id: "a", score: 1}, bid{id: "b", score: 1}, bid{id: "c", score: 2}
	if a.before(b) >= 0 || b.before(a) <= 0 || a.before(a) != 0 || better.before(a) >= 0 || a.before(better) <= 0 {
		t.Error("bids are not ordered by score, then by ID")
	}
}
