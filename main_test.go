package dispatch

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the tests' clocks begin.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

var silent = slog.New(slog.DiscardHandler)

// requireField fails the test unless err is a *FieldError of the field.
func requireField(t *testing.T, err error, field string) {
	t.Helper()
	var bad *FieldError
	switch {
	case !errors.As(err, &bad):
		t.Fatalf("error is %v, want a *FieldError of %s", err, field)
	case bad.Field != field:
		t.Fatalf("error names the field %s (%v), want %s", bad.Field, err, field)
	case bad.Problem == "":
		t.Fatalf("error of %s says nothing of the problem", field)
	}
}
