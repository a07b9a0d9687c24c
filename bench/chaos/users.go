package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
)

// userPatience is how long a user waits for a call.
const userPatience = 5 * time.Second

// users are what a service does with the product while something is broken: for each queue one call after the other, each within
// userPatience. Its methods may be called from several goroutines.
type users struct {
	call userCall
	pace time.Duration
	stop context.CancelFunc
	wait sync.WaitGroup

	mu    sync.Mutex
	calls []userCalled // that are over
}

// userCall makes one call. An answer that tells the user something, such as that a task has ended, is no error.
type userCall func(ctx context.Context, v *visit) error

// visit is one user of one queue. Only its own goroutine uses it.
type visit struct {
	client *Client
	queue  string
	random *rand.Rand
	last   dispatch.TaskID // that it has stored
}

// userCalled is a call that is over.
type userCalled struct {
	queue        string
	begun, ended time.Time
	err          error
}

func (c userCalled) String() string {
	return fmt.Sprintf("a call for queue %s took %v: %v", c.queue, c.ended.Sub(c.begun).Round(time.Millisecond), c.err)
}

// Users has one user for each queue make calls through a client, with a pause between two of them, until they are told to leave.
func (r *Run) Users(ctx context.Context, client *Client, call userCall, pace time.Duration, queues ...string) *users {
	u := &users{call: call, pace: pace}
	ctx, u.stop = context.WithCancel(ctx)
	for _, queue := range queues {
		v := &visit{client: client, queue: queue, random: rand.New(rand.NewPCG(r.Rand.Uint64(), 0))}
		u.wait.Go(func() { u.visit(ctx, v) })
	}
	r.atEnd(u.Leave)
	return u
}

// visit makes calls until ctx ends. One that has begun has its time all the same.
func (u *users) visit(ctx context.Context, v *visit) {
	for ctx.Err() == nil {
		c := userCalled{queue: v.queue, begun: time.Now()}
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), userPatience)
		c.err = u.call(patient, v)
		cancel()
		c.ended = time.Now()
		u.mu.Lock()
		u.calls = append(u.calls, c)
		u.mu.Unlock()
		Sleep(ctx, u.pace)
	}
}

// Leave ends the users and returns when the last of them has its answer. It may be called twice.
func (u *users) Leave() {
	u.stop()
	u.wait.Wait()
}

// Calls are those so far of which a condition is true.
func (u *users) Calls(that func(userCalled) bool) []userCalled {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.calls), func(c userCalled) bool { return !that(c) })
}

// failed says whether a call has failed.
func failed(c userCalled) bool { return c.err != nil }

// Content is an error if a call has failed that is not excused, or none was made. A nil excuse excuses none.
func (u *users) Content(excuse func(userCalled) bool) error {
	all := u.Calls(func(userCalled) bool { return true })
	bad := u.Calls(func(c userCalled) bool { return failed(c) && (excuse == nil || !excuse(c)) })
	switch {
	case len(all) == 0:
		return errors.New("users have called nothing")
	case len(bad) > 0:
		return fmt.Errorf("%d of %d calls of users failed, such as: %v", len(bad), len(all), bad[0])
	}
	return nil
}

// String is what they have seen.
func (u *users) String() string {
	all := u.Calls(func(userCalled) bool { return true })
	slowest := time.Duration(0)
	for _, c := range all {
		slowest = max(slowest, c.ended.Sub(c.begun))
	}
	return fmt.Sprintf("%d calls of users, of which %d failed and the slowest took %v",
		len(all), len(u.Calls(failed)), slowest.Round(time.Millisecond))
}

// absences are the times at which users were kept waiting: the server was away, or what they asked for.
type absences [][2]time.Time

// add notes an absence that ends now.
func (all *absences) add(r *Run, begun time.Time) {
	ended := time.Now()
	*all = append(*all, [2]time.Time{begun, ended})
	r.Note("users were kept waiting for %v", ended.Sub(begun))
}

// excuse is for calls that were kept waiting for most of their time: on a machine that is busy with other things it may take so
// long until a server has started.
func (all absences) excuse(c userCalled) bool {
	const most = userPatience * 7 / 10
	return slices.ContainsFunc(all, func(a [2]time.Time) bool {
		return a[1].Sub(a[0]) > most && c.ended.After(a[0]) && c.begun.Before(a[1])
	})
}
