package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

const (
	newSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	oldSecret = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="
)

// secrets is a lookup that knows one name, with a new secret and an old one.
func secrets(_ context.Context, name string) ([]string, error) {
	switch name {
	case "shop":
		return []string{newSecret, oldSecret}, nil
	case "bad":
		return []string{"whsec_short"}, nil
	case "down":
		return nil, errors.New("vault is sealed")
	}
	return nil, nil
}

// Every attempt is signed anew under the same ID, with all secrets of the name; the official library accepts it.
func TestSigned(t *testing.T) {
	for _, where := range []string{"task", "queue"} {
		t.Run(where, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{Secrets: secrets})
			receiver := dispatchtest.NewReceiver(t, 503, 200)
			task := dispatch.Task{URL: receiver.URL, Payload: []byte(`{"order":1}`), Header: http.Header{"Webhook-Id": {"mine"}}, Retry: &noWait}
			if where == "task" {
				task.Secret = "shop"
			} else {
				_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: dispatch.DefaultQueue, Secret: "shop"})
				e.ok(err)
			}
			id := e.enqueue(task)
			e.run()
			e.run()
			dispatchtest.RequireDelivered(t, receiver, id, 2)
			for i, d := range receiver.Deliveries() {
				if got := d.Header.Values("Webhook-Id"); len(got) != 1 || got[0] != string(id) {
					t.Errorf("attempt %d: webhook-id %q, want the task's ID", i+1, got)
				}
				for _, secret := range []string{newSecret, oldSecret} {
					library, err := standardwebhooks.NewWebhook(secret)
					e.ok(err)
					if err := library.VerifyIgnoringTimestamp(d.Body, d.Header); err != nil {
						t.Errorf("attempt %d: %v", i+1, err)
					}
					if err := library.VerifyIgnoringTimestamp(append(d.Body, ' '), d.Header); err == nil {
						t.Errorf("attempt %d: another body is accepted", i+1)
					}
				}
			}
		})
	}
}

// An attempt whose secret is not to be had sends nothing, and says why without the secret.
func TestUnsignable(t *testing.T) {
	for name, o := range map[string]dispatch.Options{
		"unknown": {Secrets: secrets}, "bad": {Secrets: secrets}, "down": {Secrets: secrets}, "shop": {},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, o)
			receiver := dispatchtest.NewReceiver(t)
			id := e.enqueue(dispatch.Task{URL: receiver.URL, Secret: name})
			e.run()
			last := lastAttempt(t, e.task(id))
			if len(receiver.Deliveries()) != 0 || last.ErrorKind != dispatch.KindConfig || !strings.Contains(last.Error, name) ||
				strings.Contains(last.Error, "whsec_short") {
				t.Errorf("%d deliveries, attempt %+v", len(receiver.Deliveries()), last)
			}
		})
	}
}

func TestSecretNames(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	for _, bad := range []string{newSecret, "a b", strings.Repeat("n", 101)} {
		_, err := e.d.Enqueue(t.Context(), dispatch.Task{URL: "https://a.example", Secret: bad})
		requireField(t, err, "Task.Secret")
		if strings.Contains(err.Error(), "AAECAw") {
			t.Errorf("the error quotes the secret: %v", err)
		}
		_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Secret: bad})
		requireField(t, err, "Queue.Secret")
	}
	_, err := e.d.Enqueue(t.Context(), dispatch.Task{Kind: "k", Secret: "shop"})
	requireField(t, err, "Task.Secret")
}
