package worker

import (
	"net/http"
	"testing"
	"time"
)

func TestAdvice(t *testing.T) {
	at := time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)
	stamp := func(t time.Time) string { return t.Format(http.TimeFormat) }
	for _, c := range []struct {
		name   string
		header map[string]string
		want   Advice
	}{
		{"nothing", nil, Advice{}},
		{"seconds", map[string]string{"Retry-After": "120"}, Advice{RetryAfter: 2 * time.Minute}},
		{"zero", map[string]string{"Retry-After": "0"}, Advice{}},
		{"spaces", map[string]string{"Retry-After": " 7 "}, Advice{RetryAfter: 7 * time.Second}},
		{"a lot", map[string]string{"Retry-After": "18446744073709551615"}, Advice{RetryAfter: maxRetryAfter * time.Second}},
		{"more than fits", map[string]string{"Retry-After": "99999999999999999999"}, Advice{RetryAfter: maxRetryAfter * time.Second}},
		{"negative", map[string]string{"Retry-After": "-5"}, Advice{}},
		{"fraction", map[string]string{"Retry-After": "1.5"}, Advice{}},
		{"words", map[string]string{"Retry-After": "soon"}, Advice{}},
		{"date and clock", map[string]string{"Retry-After": stamp(at.Add(time.Minute)), "Date": stamp(at)}, Advice{RetryAfter: time.Minute}},
		{"past date", map[string]string{"Retry-After": stamp(at.Add(-time.Minute)), "Date": stamp(at)}, Advice{}},
		{"date without clock", map[string]string{"Retry-After": stamp(at)}, Advice{RetryAt: at}},
		{"date with a clock that cannot be read", map[string]string{"Retry-After": stamp(at), "Date": "noon"}, Advice{RetryAt: at}},
		{"RFC 850", map[string]string{"Retry-After": "Sunday, 29-Nov-26 12:01:00 GMT", "Date": stamp(at)}, Advice{RetryAfter: time.Minute}},
		{"no retry", map[string]string{"X-Dispatch-No-Retry": "true"}, Advice{NoRetry: true}},
		{"no retry in capitals", map[string]string{"X-Dispatch-No-Retry": " TRUE"}, Advice{NoRetry: true}},
		{"retry", map[string]string{"X-Dispatch-No-Retry": "1"}, Advice{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := make(http.Header)
			for name, value := range c.header {
				h.Set(name, value)
			}
			if got := adviceOf(h); !got.RetryAt.Equal(c.want.RetryAt) || got.RetryAfter != c.want.RetryAfter || got.NoRetry != c.want.NoRetry {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
