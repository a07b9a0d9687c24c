package dispatchtest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func TestRequireEnqueued(t *testing.T) {
	store := dispatchtest.NewStore(t)
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mail := dispatch.Task{ID: "m-1", Kind: "mail", Payload: []byte(`{"to":"ada"}`), Delay: time.Hour, Metadata: map[string]string{"a": "b", "c": "d"}}
	hook := dispatch.Task{Queue: "hooks", URL: "http://example.com/", Method: "PUT"}
	for _, task := range []dispatch.Task{mail, hook} {
		if _, err := client.Enqueue(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []dispatch.Task{
		{Kind: "mail"}, {ID: "m-1"}, {Payload: mail.Payload}, {Metadata: map[string]string{"a": "b"}}, mail, hook,
		{}, {Queue: "hooks"}, {Queue: "hooks", Method: "PUT"},
	} {
		if got := dispatchtest.RequireEnqueued(t, store, want); got == nil || got.State != dispatch.TaskWaiting {
			t.Errorf("%+v gives %+v", want, got)
		}
	}
	for _, c := range []struct {
		want dispatch.Task
		says []string
	}{
		{dispatch.Task{Kind: "other"}, []string{"no task like other", `queue "default"`, "m-1", "mail", "ada"}},
		{dispatch.Task{Kind: "mail", Payload: []byte("x")}, []string{`"x"`, "ada"}},
		{dispatch.Task{Kind: "mail", Payload: []byte{}}, []string{"mail"}},
		{dispatch.Task{ID: "m-2"}, []string{"m-2"}},
		{dispatch.Task{Kind: "mail", Metadata: map[string]string{"a": "c"}}, []string{"mail"}},
		{dispatch.Task{Queue: "hooks", URL: "http://example.org/"}, []string{"http://example.org/", "http://example.com/", `queue "hooks"`}},
		{dispatch.Task{Queue: "hooks", Method: "POST"}, []string{"hooks"}},
		{dispatch.Task{Queue: "none"}, []string{`queue "none"`, "nothing"}},
	} {
		said, failed := failing(t, func(t testing.TB) {
			dispatchtest.RequireEnqueued(t, store, c.want)
			t.Errorf("RequireEnqueued returns")
		})
		if !failed || strings.Contains(said, "returns") {
			t.Errorf("%+v is found, or the test goes on", c.want)
		}
		for _, word := range c.says {
			if !strings.Contains(said, word) {
				t.Errorf("%+v says nothing of %q:\n%s", c.want, word, said)
			}
		}
	}
}

func TestRequireDelivered(t *testing.T) {
	store := dispatchtest.NewStore(t)
	receiver := dispatchtest.NewReceiver(t, 503, 200)
	d := newDispatcher(t, store, dispatch.Options{})
	id := enqueue(t, d, dispatch.Task{URL: receiver.URL})
	says := func(attempts int, words ...string) {
		t.Helper()
		said, failed := failing(t, func(t testing.TB) { dispatchtest.RequireDelivered(t, receiver, id, attempts) })
		if !failed {
			t.Errorf("%d attempts are required and found", attempts)
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				t.Errorf("nothing is said of %q:\n%s", word, said)
			}
		}
	}
	dispatchtest.RequireDelivered(t, receiver, id, 0)
	says(1, string(id), "0 times, want 1", "RunUntilIdle")
	dispatchtest.RunUntilIdle(t, d)
	says(0, "1 times, want 0")
	says(1, "attempt 1, answered 503")
	says(2, "1 times, want 2", "Advance")
	store.Advance(time.Second)
	dispatchtest.RunUntilIdle(t, d)
	dispatchtest.RequireDelivered(t, receiver, id, 2)
	says(1, "attempt 1, answered 503", "attempt 2, answered 200")
	dispatchtest.RequireDelivered(t, receiver, "another", 0)
}

func TestReceiver(t *testing.T) {
	receiver := dispatchtest.NewReceiver(t, 500, 404)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for i, want := range []int{500, 404, 404} {
		resp, err := client.Post(receiver.URL+"/a?b=c", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := receiver.Deliveries()
		if resp.StatusCode != want || len(got) != i+1 || got[i].Status != want || got[i].Path != "/a?b=c" || string(got[i].Body) != "body" ||
			got[i].Method != "POST" || got[i].Header.Get("Content-Type") != "text/plain" || got[i].Attempt != 0 {
			t.Errorf("request %d: status %d, deliveries %+v", i+1, resp.StatusCode, got)
		}
	}
	receiver.Deliveries()[0].Status = 1
	if receiver.Deliveries()[0].Status == 1 {
		t.Error("Deliveries hands out its own list")
	}
}

func TestRunUntilIdleTellsWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which patience is soon used up
		said, failed := failing(t, func(t testing.TB) {
			store := dispatchtest.NewStore(t)
			d := newDispatcher(t, store, dispatch.Options{})
			d.Handle("k", dispatch.HandlerFunc(func(ctx context.Context, _ *dispatch.Task) error {
				<-ctx.Done()
				return ctx.Err()
			}))
			enqueue(t, d, dispatch.Task{Kind: "k"})
			dispatchtest.RunUntilIdle(t, d)
		})
		if !failed || !strings.Contains(said, "not idle") || !strings.Contains(said, "Advance") {
			t.Errorf("failed: %v\n%s", failed, said)
		}
	})
}
