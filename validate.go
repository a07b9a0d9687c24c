package dispatch

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a task; most numbers are those of Google Cloud Tasks.
const (
	maxTaskBytes   = 1 << 20
	maxHeaderBytes = 80 << 10
	maxURLBytes    = 2083
	maxKindBytes   = 200
	minTimeout     = time.Second
	maxTimeout     = 24 * time.Hour
	maxSchedule    = 10 * 366 * 24 * time.Hour
	defaultTimeout = 10 * time.Minute

	maxRate       = 1e6
	minRate       = 1e-4
	maxBurst      = 1_000_000
	maxConcurrent = 1_000_000
	maxWeight     = 1000
	maxDoublings  = 64
	maxAttempts   = 1_000_000
)

// The patterns of names, as messages tell them. Those that are on the way of each task are matched by consistsOf, which takes
// a tenth of the time.
const (
	queueNamePattern  = `^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`
	taskIDPattern     = `^[A-Za-z0-9_-]{1,500}$`
	secretNamePattern = `^[A-Za-z0-9._/-]{0,100}$`
)

var (
	methods     = []string{"POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"}
	bodyMethods = []string{"POST", "PUT", "PATCH"}
)

// consistsOf says whether a text has only ASCII letters, digits and the given others.
func consistsOf(text, others string) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(others, c) >= 0) {
			return false
		}
	}
	return true
}

// isNil says whether a value of an interface type holds nothing, or a pointer or function that is nil.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan:
		return r.IsNil()
	}
	return false
}

func validateQueueName(field, name string) error {
	if name == "" {
		return fieldErrorf(field, "is empty; the default queue is %q", DefaultQueue)
	}
	if len(name) > 100 || !consistsOf(name, "._-") || !consistsOf(name[:1], "") {
		return fieldErrorf(field, "%q does not match %s", clip(name, 120), queueNamePattern)
	}
	return nil
}

// validateSecretName refuses what looks like a secret instead of its name, too.
func validateSecretName(field, name string) error {
	switch {
	case strings.HasPrefix(name, "whsec_"):
		return fieldErrorf(field, "is a secret; it takes the name of one, which Options.Secrets finds")
	case len(name) > 100 || !consistsOf(name, "._/-"):
		return fieldErrorf(field, "does not match %s", secretNamePattern)
	}
	return nil
}

func validateTaskID(field string, id TaskID) error {
	if id == "" || len(id) > 500 || !consistsOf(string(id), "_-") {
		return fieldErrorf(field, "%q does not match %s", clip(string(id), 120), taskIDPattern)
	}
	return nil
}

// normalize checks a task and fills in what it leaves open, except the ID. It returns a copy.
func (t Task) normalize(now time.Time) (Task, error) {
	if t.Queue == "" {
		t.Queue = DefaultQueue
	}
	if err := validateQueueName("Task.Queue", t.Queue); err != nil {
		return t, err
	}
	if t.ID != "" {
		if err := validateTaskID("Task.ID", t.ID); err != nil {
			return t, err
		}
	}
	if err := validateResources("Task.Requires", t.Requires); err != nil {
		return t, err
	}
	if err := validateSecretName("Task.Secret", t.Secret); err != nil {
		return t, err
	}
	if t.Secret != "" && t.URL == "" {
		return t, fieldErrorf("Task.Secret", "signs requests, and the task has no URL")
	}
	if t.Unique != nil {
		if err := t.Unique.validate(t.ID); err != nil {
			return t, err
		}
	}
	for name := range t.Metadata {
		if isOurs(name) {
			return t, fieldErrorf("Task.Metadata", "%s belongs to Dispatch", clip(name, 60))
		}
	}
	if err := t.normalizeTarget(); err != nil {
		return t, err
	}
	if err := t.normalizeTimes(now); err != nil {
		return t, err
	}
	if t.Retry != nil {
		if err := t.Retry.validate("Task.Retry"); err != nil {
			return t, err
		}
	}
	if size := t.size(); size > maxTaskBytes {
		return t, fieldErrorf("Task", "has %d bytes, more than %d", size, maxTaskBytes)
	}
	return t, nil
}

// normalizeTarget checks what the task calls: a URL or a kind.
func (t *Task) normalizeTarget() error {
	switch {
	case t.Kind == "" && t.URL == "":
		return fieldErrorf("Task", "needs a Kind or a URL")
	case t.Kind != "" && t.URL != "":
		return fieldErrorf("Task", "has both a Kind and a URL")
	case t.Kind != "":
		return t.checkKind()
	}
	var err error
	if t.URL, err = normalizeURL(t.URL); err != nil {
		return err
	}
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	if !slices.Contains(methods, t.Method) {
		return fieldErrorf("Task.Method", "%q is not one of %s", clip(t.Method, 40), strings.Join(methods, " "))
	}
	if len(t.Payload) > 0 && !slices.Contains(bodyMethods, t.Method) {
		return fieldErrorf("Task.Payload", "method %s carries none; only %s do", t.Method, strings.Join(bodyMethods, " "))
	}
	return validateHeader(t.Header)
}

func (t *Task) checkKind() error {
	if len(t.Kind) > maxKindBytes || !utf8.ValidString(t.Kind) || strings.ContainsFunc(t.Kind, isControl) {
		return fieldErrorf("Task.Kind", "%q is longer than %d bytes, not UTF-8 or has control characters",
			clip(t.Kind, 40), maxKindBytes)
	}
	if t.Method != "" || len(t.Header) > 0 {
		return fieldErrorf("Task", "Method and Header go with a URL, not with a Kind")
	}
	return nil
}

func (t *Task) normalizeTimes(now time.Time) error {
	switch {
	case t.Delay != 0 && !t.ScheduleTime.IsZero():
		return fieldErrorf("Task", "has both Delay and ScheduleTime")
	case t.Delay < 0 || t.Delay > maxSchedule:
		return fieldErrorf("Task.Delay", "%v is not between 0 and %v", t.Delay, maxSchedule)
	case !t.ScheduleTime.IsZero() && t.ScheduleTime.Sub(now) > maxSchedule:
		return fieldErrorf("Task.ScheduleTime", "is more than %v ahead", maxSchedule)
	case !t.ScheduleTime.IsZero() && t.ScheduleTime.Before(time.UnixMilli(0)):
		t.ScheduleTime = time.UnixMilli(0)
	}
	if t.Timeout == 0 {
		t.Timeout = defaultTimeout
	}
	if t.Timeout < minTimeout || t.Timeout > maxTimeout {
		return fieldErrorf("Task.Timeout", "%v is not between %v and %v", t.Timeout, minTimeout, maxTimeout)
	}
	t.Timeout = t.Timeout.Truncate(time.Millisecond)
	switch {
	case t.Retention > maxSchedule:
		return fieldErrorf("Task.Retention", "%v is more than %v", t.Retention, maxSchedule)
	case t.Retention != 0 && t.Retention < time.Millisecond:
		t.Retention = -time.Millisecond // cut to 0 it would be inherited
	}
	t.Retention = t.Retention.Truncate(time.Millisecond)
	return nil
}

// size is what the task counts against the limit: all that its sender can make long.
func (t *Task) size() int {
	n := len(t.ID) + len(t.Queue) + len(t.Kind) + len(t.URL) + len(t.Payload) + headerSize(t.Header)
	n += len(t.Secret)
	for name := range t.Requires {
		n += len(name) + 8
	}
	for k, v := range t.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// normalizeURL parses a URL and returns its parsed form, so that what is stored is what was checked.
func normalizeURL(raw string) (string, error) {
	if len(raw) > maxURLBytes {
		return "", fieldErrorf("Task.URL", "has %d characters, more than %d", len(raw), maxURLBytes)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return isControl(r) || r == '\\' || r == ' ' }) {
		return "", fieldErrorf("Task.URL", "has a space, a backslash or a control character")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", fieldErrorf("Task.URL", "cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fieldErrorf("Task.URL", "does not start with http:// or https://")
	case u.Hostname() == "":
		return "", fieldErrorf("Task.URL", "has no host")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > 0x7e }):
		return "", fieldErrorf("Task.URL", "has a host that is not ASCII; write it in its xn-- form")
	case badPort(u.Port()) || strings.ContainsAny(u.Host, `"<>`):
		return "", fieldErrorf("Task.URL", "has a host or a port that cannot be")
	case u.User != nil:
		return "", fieldErrorf("Task.URL", "has user information; send an Authorization header instead")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return "", fieldErrorf("Task.URL", "has a fragment")
	}
	normal := u.String()
	if len(normal) > maxURLBytes {
		return "", fieldErrorf("Task.URL", "has %d characters once encoded, more than %d", len(normal), maxURLBytes)
	}
	return normal, nil
}

func badPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port != "" && (err != nil || n == 0)
}

// forbiddenHeaders belong to the connection, or to the sender of the request. Dispatch's own are refused by prefix.
var forbiddenHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func validateHeader(h http.Header) error {
	if size := headerSize(h); size > maxHeaderBytes {
		return fieldErrorf("Task.Header", "has %d bytes, more than %d", size, maxHeaderBytes)
	}
	for name, values := range h {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }) {
			return fieldErrorf("Task.Header", "%q is not a header name", clip(name, 60))
		}
		canonical := http.CanonicalHeaderKey(dashed(name))
		if slices.Contains(forbiddenHeaders, canonical) || strings.HasPrefix(canonical, "X-Dispatch-") {
			return fieldErrorf("Task.Header", "%s cannot be set: it belongs to the connection or to Dispatch", canonical)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return isControl(r) && r != '\t' }) {
				return fieldErrorf("Task.Header", "the value of %s has a control character", canonical)
			}
		}
	}
	return nil
}

// isOurs says whether a name in Metadata is one that only Dispatch sets.
func isOurs(name string) bool {
	return strings.HasPrefix(http.CanonicalHeaderKey(dashed(name)), "X-Dispatch-")
}

// dashed is a header's name as receivers may read it that hand headers on as variables: they cannot tell _ from -.
func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

func headerSize(h http.Header) int {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// isToken says whether r may stand in a header name (RFC 9110, section 5.6.2).
func isToken(r rune) bool {
	return r > 0x20 && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// validate checks a queue's settings.
func (q Queue) validate() error {
	if err := validateQueueName("Queue.Name", q.Name); err != nil {
		return err
	}
	switch {
	case q.Rate != 0 && q.Rate != -1 && !(q.Rate >= minRate && q.Rate <= maxRate):
		return fieldErrorf("Queue.Rate", "%v is not 0, -1 or between %v and %v", q.Rate, minRate, maxRate)
	case q.Burst < 0 || q.Burst > maxBurst:
		return fieldErrorf("Queue.Burst", "%d is not between 0 and %d", q.Burst, maxBurst)
	case q.MaxConcurrent < -1 || q.MaxConcurrent > maxConcurrent:
		return fieldErrorf("Queue.MaxConcurrent", "%d is not between -1 and %d", q.MaxConcurrent, maxConcurrent)
	case q.Weight < 0 || q.Weight > maxWeight:
		return fieldErrorf("Queue.Weight", "%d is not between 0 and %d", q.Weight, maxWeight)
	}
	if err := validateResources("Queue.Requires", q.Requires); err != nil {
		return err
	}
	if err := validateSecretName("Queue.Secret", q.Secret); err != nil {
		return err
	}
	if q.DeadLetterQueue != "" {
		if err := validateQueueName("Queue.DeadLetterQueue", q.DeadLetterQueue); err != nil {
			return err
		}
	}
	if q.TaskTTL != 0 && (q.TaskTTL < minTimeout || q.TaskTTL > maxSchedule) {
		return fieldErrorf("Queue.TaskTTL", "%v is not 0 or between %v and %v", q.TaskTTL, minTimeout, maxSchedule)
	}
	return q.Retry.validate("Queue.Retry")
}

func (rc RetryConfig) validate(field string) error {
	switch {
	case rc.MaxAttempts < -1 || rc.MaxAttempts > maxAttempts:
		return fieldErrorf(field+".MaxAttempts", "%d is not between -1 and %d", rc.MaxAttempts, maxAttempts)
	case rc.MaxDoublings < -1 || rc.MaxDoublings > maxDoublings:
		return fieldErrorf(field+".MaxDoublings", "%d is not between -1 and %d", rc.MaxDoublings, maxDoublings)
	case rc.Jitter != -1 && !(rc.Jitter >= 0 && rc.Jitter <= 1):
		return fieldErrorf(field+".Jitter", "%v is not -1 or between 0 and 1", rc.Jitter)
	case rc.MinBackoff > maxSchedule:
		return fieldErrorf(field+".MinBackoff", "%v is more than %v", rc.MinBackoff, maxSchedule)
	case rc.MaxBackoff > maxSchedule:
		return fieldErrorf(field+".MaxBackoff", "%v is more than %v", rc.MaxBackoff, maxSchedule)
	case rc.MinBackoff > 0 && rc.MaxBackoff > 0 && rc.MinBackoff > rc.MaxBackoff:
		return fieldErrorf(field+".MinBackoff", "%v is more than MaxBackoff, %v", rc.MinBackoff, rc.MaxBackoff)
	}
	return nil
}

// clip cuts s to at most n bytes, at the start of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
