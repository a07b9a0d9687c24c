package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// configError is a request that cannot be sent as it stands. It is found before anything is sent, so that the word for
// it is exact: net/http reports such mistakes as plain text, some of them with the URL in it.
type configError struct{ problem string }

func (e *configError) Error() string { return "worker: " + e.problem }

func configErrorf(format string, args ...any) error {
	return &configError{fmt.Sprintf(format, args...)}
}

// build makes the request and chooses who sends it. An error is a *configError.
func (d *Deliverer) build(ctx context.Context, r Request) (*http.Request, sendFunc, error) {
	method := cmp.Or(r.Method, http.MethodPost)
	if ctx == nil || !isToken(method) || method == http.MethodConnect {
		return nil, nil, configErrorf("the context is nil, or the method %q cannot be used", clip(method, maxQuoted))
	}
	target, err := d.targets.parse(r.URL)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "", bytes.NewReader(r.Body))
	if err != nil {
		return nil, nil, configErrorf("the method %q cannot be used", clip(method, maxQuoted))
	}
	req.URL, req.Host = target, target.Host
	if req.Header, err = d.header(r.Header, req.URL.User); err != nil {
		return nil, nil, err
	}
	if !repeatable(req) {
		return req, d.send, nil
	}
	if d.sendHTTP1 != nil {
		sendOnce(req)
		return req, d.sendHTTP1, nil
	}
	if len(r.Body) > 0 || req.URL.Scheme == "http" {
		sendOnce(req)
	}
	return req, d.send, nil
}

// targets remembers URLs that were parsed: many tasks have the same.
type targets struct {
	mu     sync.Mutex
	parsed map[string]*url.URL
}

// maxTargets bounds what is remembered of URLs that tasks made up; then it begins anew.
const maxTargets = 1000

// parse returns a URL that can be sent to, for the caller to keep. An error is a *configError.
func (t *targets) parse(text string) (*url.URL, error) {
	t.mu.Lock()
	u := t.parsed[text]
	t.mu.Unlock()
	if u != nil {
		own := *u // a caller's transport may change it, though it should not
		return &own, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		// The details quote the URL, and a password may be read as a port.
		return nil, configErrorf("the URL cannot be parsed")
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	u.Host = strings.TrimSuffix(u.Host, ":")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parsed == nil || len(t.parsed) >= maxTargets {
		t.parsed = make(map[string]*url.URL)
	}
	own := *u
	t.parsed[text] = &own
	return u, nil
}

// checkURL refuses what url.Parse takes and net/http does not, in words that do not quote the URL.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return configErrorf("the URL is neither http nor https")
	case u.Hostname() == "" || strings.ContainsAny(u.Host, `"<>`):
		return configErrorf("the URL has no valid host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return configErrorf("the URL's port is not 1 to 65535")
		}
	}
	return nil
}

// header is the header to send, with the names as the caller spelled them: given itself where nothing is to be added, and
// else a new map, because given is the caller's.
func (d *Deliverer) header(given http.Header, user *url.Userinfo) (http.Header, error) {
	if _, ok := given["User-Agent"]; ok && user == nil && d.sendHTTP1 != nil {
		for name, values := range given {
			if err := checkField(name, values); err != nil {
				return nil, err
			}
			if name != "User-Agent" && strings.EqualFold(name, "User-Agent") {
				ok = false
			}
		}
		if ok {
			return given, nil // no transport changes it, as a client might: for cookies
		}
	}
	h := make(http.Header, len(given)+2)
	authorized := false
	for name, values := range given {
		if err := checkField(name, values); err != nil {
			return nil, err
		}
		switch {
		case strings.EqualFold(name, "User-Agent"):
			name = "User-Agent" // net/http adds its own beside any other spelling
		case strings.EqualFold(name, "Authorization"):
			authorized = true
		}
		h[name] = values
	}
	if _, ok := h["User-Agent"]; !ok {
		if err := checkField("User-Agent", d.userAgent); err != nil {
			return nil, err
		}
		h["User-Agent"] = d.userAgent
	}
	if user != nil && !authorized {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		h["Authorization"] = []string{"Basic " + credentials}
	}
	return h, nil
}
