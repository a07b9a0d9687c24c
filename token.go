package dispatch

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// TokenSource makes the bearer tokens of a queue; see Options.TokenSources. Sources of golang.org/x/oauth2 and of Google's
// idtoken renew their tokens in time, and take one method to be one:
//
//	type token struct{ oauth2.TokenSource }
//
//	func (s token) Token(context.Context, string) (string, error) {
//		t, err := s.TokenSource.Token()
//		if err != nil {
//			return "", err
//		}
//		return t.AccessToken, nil
//	}
type TokenSource interface {
	// Token returns a token for a request to url, of which an OIDC token makes its audience. It is called at every
	// attempt, by many goroutines at once, so it keeps a token as long as that is good. ctx ends with the attempt, whose
	// Timeout the call is part of.
	Token(ctx context.Context, url string) (string, error)
}

// authorize puts the token of the queue's source into the header, in place of whatever Authorization the task has. The
// error leaves out what the source has said: that may quote the token, or what it takes to get one.
func (r *running) authorize(h http.Header) error {
	t := &r.leased.Task
	source := r.d.opts.TokenSources[t.Queue]
	if source == nil {
		return nil
	}
	token, err := tokenOf(r.ctx, source, t.URL)
	switch {
	case err != nil:
		return fmt.Errorf("token of queue %s: its source failed", t.Queue)
	case token == "":
		return fmt.Errorf("token of queue %s: its source made an empty one", t.Queue)
	case strings.ContainsFunc(token, func(c rune) bool { return c <= 0x20 || c >= 0x7f }):
		return fmt.Errorf("token of queue %s: its source made one that is not visible ASCII characters", t.Queue)
	}
	for name := range h {
		if strings.EqualFold(name, "Authorization") {
			delete(h, name)
		}
	}
	h["Authorization"] = []string{"Bearer " + token}
	r.token = token
	return nil
}

// conceal takes the attempt's token out of what others have said: a receiver that quotes it, a transport that fails.
func (r *running) conceal(text string) string {
	if r.token == "" {
		return text
	}
	text = strings.ReplaceAll(text, r.token, "[token]")
	for n := min(len(r.token)-1, len(text)); n >= shortestHint; n-- { // what is kept may end within it
		if strings.HasSuffix(text, r.token[:n]) {
			return text[:len(text)-n] + "[token]"
		}
	}
	return text
}

// shortestHint is how much of a token may be kept by chance.
const shortestHint = 4

// tokenOf asks a source. Of a panic only the stack goes on, for the same reason as in authorize.
func tokenOf(ctx context.Context, source TokenSource, url string) (string, error) {
	defer func() {
		if recover() != nil {
			panic("the token source panicked")
		}
	}()
	return source.Token(ctx, url)
}

// unsent is how an attempt ends that has no token or signature: nothing was sent.
func (r *running) unsent(err error) result {
	cause := r.ctx.cause()
	switch {
	case isTakenAway(cause):
		return result{released: true, err: err}
	case isTimeout(cause):
		return result{kind: KindTimeout, err: err, text: err.Error()}
	}
	return result{kind: KindConfig, err: err, text: err.Error()}
}

func validateTokenSources(sources map[string]TokenSource) error {
	const field = "Options.TokenSources"
	for _, queue := range slices.Sorted(maps.Keys(sources)) {
		if err := validateQueueName(field, queue); err != nil {
			return err
		}
		if isNil(sources[queue]) {
			return fieldErrorf(field, "the source of queue %s is nil", queue)
		}
	}
	return nil
}
