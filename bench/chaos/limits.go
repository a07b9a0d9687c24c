package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// limits are those of a queue from one change of its settings to the next. 0 is none.
type limits struct {
	// The change came into force between these two, in µs: its call and its return.
	from, to   int64
	perSecond  float64
	burst      int
	concurrent int
}

// limitLog is what an operator did to the limits of a queue, in order. The first limits hold before the first attempt.
type limitLog []limits

// attemptSpan is when an attempt was leased and when its handler ran, in µs.
type attemptSpan struct{ token, claimed, started, over int64 }

// rateCurve is the highest rate that may have been in force, as a function of time.
type rateCurve []ratePiece

// ratePiece is a rate from an instant on, in µs, and how many attempts all earlier ones allow.
type ratePiece struct {
	from      int64
	perSecond float64
	before    float64
}

// limitUse is how far the attempts of a queue went to its limits.
type limitUse struct {
	attempts int
	most     int     // that ran at once
	full     int     // times that as many ran as were allowed
	allowed  float64 // attempts that the rate allowed while it was in force
}

// judge compares the attempts of a queue with its limits. A token tells when its lease was given out, by the clock of Redis, which
// is that of the ledger. No lease of such a run ends before its handler does.
func (l limitLog) judge(queue string, ledger ledgerView) (limitUse, error) {
	spans := ledger.spansOf(queue)
	use := limitUse{attempts: len(spans)}
	if len(spans) == 0 {
		return use, nil
	}
	last := slices.MaxFunc(spans, func(a, b attemptSpan) int { return cmp.Compare(a.claimed, b.claimed) })
	use.allowed = l.curve().integral(spans[0].claimed, last.claimed)
	if err := l.judgeConcurrency(queue, spans, &use); err != nil {
		return use, err
	}
	return use, l.judgeRate(queue, spans)
}

// spansOf are the attempts of a queue by their tokens. One that was killed was over then; one without an end is not over.
func (l ledgerView) spansOf(queue string) []attemptSpan {
	byToken := map[int64]*attemptSpan{}
	who, kills := map[int64]string{}, l.kills()
	for _, e := range l.Events {
		switch {
		case e.Queue != queue || e.Token == 0:
		case e.Kind == audit.KindStart:
			claimed := e.Token / 1000 * 1000 // whole ms, and within one a number for each
			byToken[e.Token] = &attemptSpan{token: e.Token, claimed: claimed, started: e.At, over: math.MaxInt64}
			who[e.Token] = e.Who
		case e.Kind == audit.KindEnd && byToken[e.Token] != nil:
			byToken[e.Token].over = e.At
		}
	}
	var spans []attemptSpan
	for token, s := range byToken {
		if at, killed := kills[who[token]]; killed {
			s.over = min(s.over, max(at, s.started))
		}
		spans = append(spans, *s)
	}
	slices.SortFunc(spans, func(a, b attemptSpan) int { return cmp.Compare(a.token, b.token) })
	return spans
}

// judgeConcurrency looks at each start. Of the attempts that run then all but the one that was leased last were under a lease when
// that was given out: so they are no more than the limit of that moment.
func (l limitLog) judgeConcurrency(queue string, spans []attemptSpan, use *limitUse) error {
	byStart := slices.Clone(spans)
	slices.SortFunc(byStart, func(a, b attemptSpan) int { return cmp.Compare(a.started, b.started) })
	var running []attemptSpan
	for _, s := range byStart {
		running = slices.DeleteFunc(running, func(r attemptSpan) bool { return r.over <= s.started })
		running = append(running, s)
		youngest := slices.MaxFunc(running, func(a, b attemptSpan) int { return cmp.Compare(a.token, b.token) })
		most := l.concurrencyAt(youngest.claimed)
		use.most = max(use.most, len(running))
		switch {
		case most == 0:
		case len(running) > most:
			return fmt.Errorf("limits: %d attempts of queue %s ran at once, and %d were allowed when token %d was given out", len(running),
				queue, most, youngest.token)
		case len(running) == most:
			use.full++
		}
	}
	return nil
}

// concurrencyAt is the highest limit that may have been in force in a millisecond; 0 is none.
func (l limitLog) concurrencyAt(at int64) int {
	most := 0
	for i, e := range l {
		if e.from > at+1000 || i+1 < len(l) && l[i+1].to < at {
			continue
		}
		if e.concurrent == 0 {
			return 0
		}
		most = max(most, e.concurrent)
	}
	return most
}

// judgeRate looks at every window that begins and ends with an attempt and has at most one change of the settings in it. A
// bucket that is made smaller and larger again may be emptied twice, so longer windows say less.
func (l limitLog) judgeRate(queue string, spans []attemptSpan) error {
	curve := l.curve()
	for i := range spans {
		from := spans[i].claimed
		for j := i + 1; j < len(spans); j++ {
			to := spans[j].claimed + 1000
			burst, changes := l.burstIn(from, to)
			if changes > 1 || burst == 0 {
				break
			}
			allowed := float64(burst) + curve.integral(from, to)
			if n := j - i + 1; float64(n) > allowed+1e-6 {
				return fmt.Errorf("limits: %d attempts of queue %s were leased within %.1f ms, and %.1f were allowed, from token %d on",
					n, queue, float64(to-from)/1000, allowed, spans[i].token)
			}
		}
	}
	return nil
}

// burstIn is the largest burst that may have been in force in a window, 0 if there was no rate, and how many changes came into
// force in it or may have.
func (l limitLog) burstIn(from, to int64) (burst, changes int) {
	first := sort.Search(len(l)-1, func(i int) bool { return l[i+1].to >= from })
	for i, e := range l[first:] {
		if e.from > to {
			break
		}
		if e.to >= from && first+i > 0 {
			changes++
		}
		if e.perSecond == 0 {
			return 0, changes
		}
		burst = max(burst, e.burst)
	}
	return burst, changes
}

// curve is the highest of the rates: while a change is made, that before it or that after.
func (l limitLog) curve() rateCurve {
	var c rateCurve
	add := func(from int64, perSecond float64) {
		before := 0.0
		if n := len(c); n > 0 {
			before = c[n-1].before + float64(from-c[n-1].from)/1e6*c[n-1].perSecond
		}
		c = append(c, ratePiece{from, perSecond, before})
	}
	for i, e := range l {
		if i == 0 {
			add(e.from, e.perSecond) // there are no attempts before
			continue
		}
		add(e.from, max(l[i-1].perSecond, e.perSecond))
		add(e.to, e.perSecond)
	}
	return c
}

// integral is how many attempts the rates allowed between two times beside the bursts.
func (c rateCurve) integral(from, to int64) float64 { return c.until(to) - c.until(from) }

func (c rateCurve) until(at int64) float64 {
	i := sort.Search(len(c), func(i int) bool { return c[i].from > at }) - 1
	return c[i].before + float64(at-c[i].from)/1e6*c[i].perSecond
}
