package worker

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Advice is what the response to a failed request says of its repetition.
type Advice struct {
	// NoRetry says that it is useless: the header X-Dispatch-No-Retry is "true".
	NoRetry bool
	// RetryAfter is the least time to wait, from the header Retry-After; 0 when there is none, or one that cannot be read.
	RetryAfter time.Duration
	// RetryAt is the same as an instant by the receiver's clock, when it names one and does not say what its clock shows.
	RetryAt time.Time
}

// adviceOf reads a response's header. A date in Retry-After counts from the response's Date, so that the clocks of the two
// sides need not agree. RFC 9110, sections 5.6.7 and 10.2.3.
func adviceOf(h http.Header) Advice {
	a := Advice{NoRetry: strings.EqualFold(strings.TrimSpace(h.Get("X-Dispatch-No-Retry")), "true")}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return a
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, _ := strconv.ParseUint(text, 10, 64) // what is out of its range is the most it holds
		a.RetryAfter = time.Duration(min(seconds, maxRetryAfter)) * time.Second
		return a
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return a
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		a.RetryAfter = max(at.Sub(date), 0)
	} else {
		a.RetryAt = at
	}
	return a
}

// maxRetryAfter is more seconds than anybody waits, and fewer than overflow a Duration.
const maxRetryAfter = 1 << 32
