package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dispatchkit/dispatch/worker"
)

// sign signs the request of an attempt if its task or queue names a secret: as Standard Webhooks v1, under the task's ID,
// which stays the same on every attempt. A receiver verifies it with any library of that standard.
func (r *running) sign(h http.Header, now time.Time) error {
	name := r.leased.Task.Secret
	if name == "" && r.settings != nil {
		name = r.settings.Secret
	}
	if name == "" {
		return nil
	}
	if r.d.opts.Secrets == nil {
		return fmt.Errorf("secret %q: this process has no Options.Secrets", name)
	}
	texts, err := secretsOf(r.ctx, r.d.opts.Secrets, name)
	if err != nil {
		return fmt.Errorf("secret %q: its lookup failed", name) // what it says may quote the secret
	}
	secrets := make([]worker.Secret, 0, len(texts))
	for _, text := range texts {
		secret, err := worker.ParseSecret(text)
		if err != nil {
			return fmt.Errorf("secret %q: %w", name, err)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return fmt.Errorf("secret %q is not known", name)
	}
	return worker.Sign(h, secrets, string(r.leased.Task.ID), now, r.leased.Task.Payload)
}

// secretsOf looks a secret up. Of a panic only the stack goes on.
func secretsOf(ctx context.Context, lookup func(context.Context, string) ([]string, error), name string) ([]string, error) {
	defer func() {
		if recover() != nil {
			panic("the lookup of a secret panicked")
		}
	}()
	return lookup(ctx, name)
}
