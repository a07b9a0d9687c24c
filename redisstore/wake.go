package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// pingInterval is how often the connection that listens is tried when no message comes.
const pingInterval = 10 * time.Second

// Announce implements dispatch.Waker.
func (s *Store) Announce(ctx context.Context, hints []dispatch.Hint) error {
	return s.noteHints(ctx, hints, true)
}

// noteHints notes hints unless sooner is noted, and tells everybody if tell says so.
func (s *Store) noteHints(ctx context.Context, hints []dispatch.Hint, tell bool) error {
	for len(hints) > 0 {
		part := hints[:min(len(hints), maxScriptItems)]
		hints = hints[len(part):]
		args := []any{s.now(), "", ""}
		if tell {
			args[1], args[2] = s.wakeChannel(), formatHints(part)
		}
		for _, h := range part {
			if !strings.HasPrefix(h.Queue, "~") && h.Revoked == 0 { // the others are told and not noted
				args = append(args, ms(max(h.Wait, 0)), h.Queue)
			}
		}
		if _, err := s.run(ctx, evenUncertain, s.scripts.announce, []string{s.activeKey()}, args...); err != nil {
			return err
		}
	}
	return nil
}

// Hints implements dispatch.Waker.
func (s *Store) Hints(ctx context.Context, within time.Duration) ([]dispatch.Hint, error) {
	const page = 1000
	var all []dispatch.Hint
	for {
		hints, err := s.readNotes(ctx, s.activeKey(), within, len(all), page)
		if err != nil {
			return nil, err
		}
		if all = append(all, hints...); len(hints) < page {
			return all, nil
		}
	}
}

// Rest implements dispatch.Waker. The look at each queue comes after its note was written: whoever enqueues meanwhile is
// seen by the look, or notes the queue after the removal.
func (s *Store) Rest(ctx context.Context, hints []dispatch.Hint) ([]dispatch.Hint, error) {
	var busy []dispatch.Hint
	for len(hints) > 0 {
		part := hints[:min(len(hints), maxScriptItems)]
		hints = hints[len(part):]
		found, rested, err := s.restPart(ctx, part)
		busy = append(busy, found...)
		if err != nil {
			// Not knowing, the notes of the others say "now".
			var unknown []dispatch.Hint
			for _, h := range part[rested:] {
				unknown = append(unknown, dispatch.Hint{Queue: h.Queue})
			}
			return busy, errors.Join(err, s.noteHints(ctx, unknown, false))
		}
	}
	return busy, nil
}

// restPart is Rest for as many queues as one script call takes. After an error the first queues, rested in number, are
// in order.
func (s *Store) restPart(ctx context.Context, part []dispatch.Hint) (busy []dispatch.Hint, rested int, err error) {
	if err := s.replaceNotes(ctx, s.activeKey(), part); err != nil {
		return nil, 0, err
	}
	for i, noted := range part {
		seen, _, err := s.look(ctx, noted.Queue)
		if err != nil {
			return busy, i, err
		}
		if seen >= 0 && (noted.Wait < 0 || seen < noted.Wait) {
			hint := dispatch.Hint{Queue: noted.Queue, Wait: seen}
			if err := s.noteHints(ctx, []dispatch.Hint{hint}, false); err != nil {
				return busy, i, err
			}
			busy = append(busy, hint)
		}
	}
	return busy, len(part), nil
}

// Look implements dispatch.Waker. What it finds torn it repairs.
func (s *Store) Look(ctx context.Context, queues []string) ([]dispatch.Hint, error) {
	var hints []dispatch.Hint
	for _, q := range queues {
		seen, torn, err := s.look(ctx, q)
		if err == nil && torn {
			seen, err = s.mend(ctx, q)
		}
		if err != nil {
			return hints, err
		}
		if seen >= 0 {
			hints = append(hints, dispatch.Hint{Queue: q, Wait: seen})
		}
	}
	return hints, s.noteHints(ctx, hints, false)
}

// look is how long until a queue has something to do, below zero for nothing, and whether its keys contradict each other.
func (s *Store) look(ctx context.Context, queue string) (next time.Duration, torn bool, err error) {
	k := s.queueKeys(queue)
	keys := []string{k.due, k.leased, k.meta, k.leases, k.tasks, k.done, k.dead, k.cancelled}
	v, err := s.run(ctx, evenUncertain, s.scripts.look, keys, s.now())
	if err != nil {
		return 0, false, err
	}
	in := replyOf(s.scripts.look, v)
	next, torn = wait(in.int()), in.int() == 1
	return next, torn, in.err
}

// mend repairs a queue whose keys contradict each other, and then looks at it again.
func (s *Store) mend(ctx context.Context, queue string) (next time.Duration, err error) {
	repaired, err := s.repair(ctx, queue)
	if repaired > 0 {
		s.log.Warn("redisstore: entries of tasks contradicted each other and were repaired; were keys evicted, or deleted by hand?",
			"queue", queue, "tasks", repaired)
	}
	if err == nil {
		next, _, err = s.look(ctx, queue)
	}
	return next, err
}

// Listen implements dispatch.Waker.
func (s *Store) Listen(ctx context.Context, joined func(), heard func([]dispatch.Hint)) error {
	return s.subscribe(ctx, s.wakeChannel(), joined, func(message string) {
		if hints := parseHints(message); len(hints) > 0 {
			s.vacancy(hints)
			heard(hints)
		}
	})
}

// subscribe hears a channel until ctx ends. The client reconnects by itself, and says so with each new subscription.
func (s *Store) subscribe(ctx context.Context, channel string, joined func(), heard func(message string)) error {
	sub := s.client.Subscribe(ctx, channel)
	defer sub.Close()
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(pingInterval))
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, open := <-messages:
			if !open {
				return errors.New("redisstore: subscription closed")
			}
			switch m := m.(type) {
			case *redis.Subscription:
				joined()
			case *redis.Message:
				heard(m.Payload)
			}
		}
	}
}

// formatHints writes a message: ms, with a "!" behind it when the settings were changed, a "*" when it is a hand-over and an
// "x" or, of a cancelled task, a "c" and a token when a lease was taken away, and queue, again and again, with spaces between.
func formatHints(hints []dispatch.Hint) string {
	var b strings.Builder
	for i, h := range hints {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(ms(max(h.Wait, 0)), 10))
		if h.Changed {
			b.WriteByte('!')
		}
		if h.HandOver {
			b.WriteByte('*')
		}
		if h.Revoked != 0 {
			if h.Cancelled {
				b.WriteByte('c')
			} else {
				b.WriteByte('x')
			}
			b.WriteString(strconv.FormatInt(h.Revoked, 10))
		}
		b.WriteByte(' ')
		b.WriteString(h.Queue)
	}
	return b.String()
}

// parseHints reads a message, as far as it is one: anybody may publish to the channel.
func parseHints(message string) []dispatch.Hint {
	words := strings.Fields(message)
	hints := make([]dispatch.Hint, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		number, token, cancelled := strings.Cut(words[i], "c")
		taken := cancelled
		if !cancelled {
			number, token, taken = strings.Cut(words[i], "x")
		}
		revoked, err := strconv.ParseInt(token, 10, 64)
		if taken && (err != nil || revoked == 0) {
			return hints // no lease has such a token
		}
		number, handOver := strings.CutSuffix(number, "*")
		number, changed := strings.CutSuffix(number, "!")
		n, err := strconv.ParseUint(number, 10, 40)
		if err != nil {
			return hints
		}
		hints = append(hints, dispatch.Hint{Queue: words[i+1], Wait: wait(int64(n)), Changed: changed, HandOver: handOver, Revoked: revoked, Cancelled: cancelled})
	}
	return hints
}
