package dispatch_test

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
	"github.com/dispatchkit/dispatch/worker"
)

// A task with a private address is dead at once, and the attempt names the option that would allow it.
func TestEgress(t *testing.T) {
	store := dispatchtest.NewStore(t)
	receiver := dispatchtest.NewReceiver(t)
	for name, c := range map[string]struct {
		egress worker.Egress
		passes bool
	}{
		"nothing set": {worker.Egress{}, false},
		"private":     {worker.Egress{AllowPrivate: true}, true},
		"allowed":     {worker.Egress{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, true},
		"denied":      {worker.Egress{AllowPrivate: true, Deny: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := new(events)
			d, err := dispatch.New(store, dispatch.Options{Clock: store.Clock, Logger: silent, Observer: seen.observe, Egress: c.egress})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Stop() })
			id, err := d.Enqueue(t.Context(), dispatch.Task{URL: receiver.URL + "/?secret"})
			if err != nil {
				t.Fatal(err)
			}
			dispatchtest.RunUntilIdle(t, d)
			if c.passes {
				if seen.of(id) != "succeeded" {
					t.Errorf("outcomes %q", seen.of(id))
				}
				return
			}
			info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
			if err != nil {
				t.Fatal(err)
			}
			last := lastAttempt(t, info)
			if seen.of(id) != "dead" || last.ErrorKind != dispatch.KindConfig || !strings.Contains(last.Error, "Egress.") ||
				strings.Contains(last.Error, "secret") {
				t.Errorf("outcomes %q, attempt %+v", seen.of(id), last)
			}
		})
	}
	var log logged
	if _, err := dispatch.New(store, dispatch.Options{HTTPClient: http.DefaultClient, Logger: log.logger()}); err != nil || log.count("no egress guard") != 1 {
		t.Errorf("error %v, logged:\n%s", err, log.String())
	}
	if _, err := dispatch.New(store, dispatch.Options{Logger: slog.New(slog.DiscardHandler), Egress: worker.Egress{Ports: []uint16{0}}}); err == nil {
		t.Error("port 0 is accepted")
	}
}
