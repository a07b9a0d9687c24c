package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// persistence says how a call goes on after an error.
type persistence int

const (
	// onlyRefused repeats a call that surely did nothing.
	onlyRefused persistence = iota
	// evenUncertain repeats a call also when it may have run. All scripts bear that; the caller of claim has to know.
	evenUncertain
)

const (
	// patience bounds a call whose context has no deadline.
	patience     = 5 * time.Second
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// persist makes a call, and makes it again, with growing pauses, as long as mode allows, until the context ends. An
// error that it returns wraps dispatch.ErrUncertain if the call may have taken effect, and context.Canceled if that is
// why it went no further. A deadline may be that of somebody between the caller and the store, and is not told apart.
func (s *Store) persist(ctx context.Context, mode persistence, call func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience+s.durability.Timeout)
		defer cancel()
	}
	uncertain := false
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := call(ctx)
		if err == nil || errors.Is(err, redis.Nil) {
			return err
		}
		verdict := judge(err)
		uncertain = uncertain || verdict == maybeDone
		again := verdict == refused || verdict == maybeDone && mode == evenUncertain
		if again && sleep(ctx, pause) {
			continue
		}
		if ended := ctx.Err(); ended == context.Canceled && (verdict == refused || verdict == maybeDone) && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		switch {
		case uncertain: // whatever was said last: an earlier call may have run, or may still
			return fmt.Errorf("%w: %w", dispatch.ErrUncertain, err)
		case verdict == full:
			return fmt.Errorf("%w: %w", dispatch.ErrStoreFull, err)
		default:
			return err
		}
	}
}

// sleep waits for a pause, half of it random, and says whether the context still runs.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type verdict int

const (
	final     verdict = iota // it failed and will fail again
	full                     // no memory: nothing was written
	refused                  // it did not run, and may later
	maybeDone                // it may have run
)

// refusals are the words with which a server says "not now": it loads, is busy with another script, has lost its
// quorum or its replicas, cannot write to its disk, or moves the slot.
var refusals = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN",
}

// judge says what an error of go-redis means.
func judge(err error) verdict {
	var answer redis.Error
	var network *net.OpError
	var unconfirmed *unconfirmedError
	switch {
	case errors.Is(err, dispatch.ErrNotReplicated): // it ran; only its caller knows whether to wait on
		return final
	case errors.As(err, &unconfirmed):
		return maybeDone
	case redis.HasErrorPrefix(err, "OOM"):
		return full
	case hasPrefix(err, refusals):
		return refused
	case errors.Is(err, redis.ErrClosed):
		return final
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return refused
	case errors.As(err, &network) && network.Op == "dial":
		return refused
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return maybeDone
	case errors.As(err, &answer):
		return final
	default: // time-outs, resets, contexts that ended
		return maybeDone
	}
}

func hasPrefix(err error, prefixes []string) bool {
	for _, p := range prefixes {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return false
}
