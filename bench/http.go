package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
	"github.com/dispatchkit/dispatch/worker"
)

// receiver is a net/http server in this process that reads the body and answers 200.
type receiver struct {
	*httptest.Server
	received, wrong atomic.Int64
}

func newReceiver() *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		n, err := io.Copy(io.Discard, req.Body)
		if err != nil || n != payloadBytes {
			r.wrong.Add(1)
		}
		r.received.Add(1)
	}))
	return r
}

// require is nil if exactly n requests came, each with the payload.
func (r *receiver) require(n int) error {
	if r.received.Load() != int64(n) || r.wrong.Load() != 0 {
		return fmt.Errorf("%d requests were received, want %d; %d without the payload", r.received.Load(), n, r.wrong.Load())
	}
	return nil
}

// processHTTP delivers tasks with a URL, so many at once; name, if there is one, is that of the secret that signs them.
func processHTTP(name string, places int) func(context.Context, *env, *redisstore.Store, int) (float64, error) {
	key := make([]byte, 32)
	rand.Read(key)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	return func(ctx context.Context, _ *env, store *redisstore.Store, n int) (float64, error) {
		r := newReceiver()
		defer r.Close()
		options := placesFor(places)
		options.Egress = worker.Egress{AllowPrivate: true}
		options.Secrets = func(context.Context, string) ([]string, error) { return []string{secret}, nil }
		w, err := backlog{
			n: n, task: dispatch.Task{URL: r.URL, Payload: payload, Secret: name}, options: options,
		}.work(ctx, store)
		if err == nil {
			err = r.require(n)
		}
		return w.perSecond(), err
	}
}

// bareHTTP are loops of requests like Dispatch's, over a transport like Dispatch's, to the same receiver.
func bareHTTP(loops int) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, _ *env, n int) (float64, error) { return sendBare(ctx, loops, n) }
}

func sendBare(ctx context.Context, loops, n int) (float64, error) {
	r := newReceiver()
	defer r.Close()
	transport := worker.NewTransport(worker.Egress{AllowPrivate: true})
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	begin := time.Now()
	if err := concurrently(ctx, loops, n, func(ctx context.Context, i int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(payload))
		if err != nil {
			return err
		}
		req.Header = bareHeader(i, begin)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), r.require(n)
}

// bareHeader has the names, and values of the sizes, that Dispatch sends.
func bareHeader(i int, at time.Time) http.Header {
	instant := at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return http.Header{
		"Content-Type":                {"application/json"},
		"User-Agent":                  {"dispatch/0.1"},
		dispatch.HeaderTaskID:         {fmt.Sprintf("task-%015d", i)},
		dispatch.HeaderQueue:          {queue},
		dispatch.HeaderAttempt:        {"1"},
		dispatch.HeaderRetryCount:     {"0"},
		dispatch.HeaderExecutionCount: {"0"},
		dispatch.HeaderScheduledAt:    {instant},
		dispatch.HeaderDeadline:       {instant},
		dispatch.HeaderFencingToken:   {strconv.FormatInt(at.UnixMicro(), 10)},
	}
}
