package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

var quiet = log.New(io.Discard, "", 0)

// canary stands for every secret of a request; where it appears, a secret would.
const canary = "c4n4ry"

// TestNoSecretInErrors sends secrets to receivers that fail in every way there is, and some that send them back.
func TestNoSecretInErrors(t *testing.T) {
	echo := func(format string) func(*conn) {
		return func(c *conn) {
			req, ok := c.request()
			if !ok {
				return
			}
			secrets := req.URL.RawQuery + " " + req.Header.Get("X-Secret") + " " + req.Header.Get("Authorization")
			c.say(fmt.Sprintf(format, secrets))
			c.Close()
		}
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	receivers := map[string]func(*conn){
		"closes":                   func(c *conn) { c.Close() },
		"hangs":                    func(*conn) {},
		"echoes as status line":    echo("%s\r\n\r\n"),
		"echoes as status":         echo("HTTP/1.1 %s\r\n\r\n"),
		"echoes as version":        echo("HTTP/%s 200 OK\r\n\r\n"),
		"echoes as header":         echo(ok + "%s\r\n\r\n"),
		"echoes as first line":     echo(ok + " %s\r\n\r\n"),
		"echoes as header name":    echo(ok + "A\x00%s: b\r\n\r\n"),
		"echoes as length":         echo(ok + "Content-Length: %s\r\n\r\n"),
		"echoes as encoding":       echo(ok + "Transfer-Encoding: %s\r\n\r\n"),
		"echoes as second length":  echo(ok + "Content-Length: 1\r\nContent-Length: %s\r\n\r\n"),
		"echoes as chunk":          echo(ok + "Transfer-Encoding: chunked\r\n\r\n%s\r\n"),
		"echoes as trailer":        echo(ok + "Trailer: %s\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		"echoes as bad Location":   echo("HTTP/1.1 302 Found\r\nLocation: http://[%s\r\nContent-Length: 0\r\n\r\n"),
		"echoes in a long line":    echo("HTTP/1.1 200" + strings.Repeat("0", 1000) + "%s\r\n\r\n"),
		"echoes in no known place": echo("%s"),
	}
	targets := map[string]string{
		"refuses":               "http://127.0.0.1:1/",
		"unresolved":            "http://" + strings.Repeat("a", 64) + ".invalid/",
		"bad port":              "http://127.0.0.1:" + canary + "/",
		"bad escape":            "http://127.0.0.1/%zz" + canary,
		"bad scheme":            "ftp://127.0.0.1/",
		"slash in the password": "http://user:" + canary + "/" + canary + "@127.0.0.1/",
	}
	for name, serve := range receivers {
		targets[name] = newReceiver(t, serve).url() + "/"
	}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	defer srv.Close()
	targets["unknown certificate"] = srv.URL
	targets["HTTPS on an HTTP port"] = strings.Replace(targets["echoes as header"], "http:", "https:", 1)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, d := range []*Deliverer{newTestDeliverer(t, nil), NewDeliverer(Options{Client: client})} {
		for name, target := range targets {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				if !strings.Contains(target, canary) {
					target = strings.Replace(target, "://", "://user:"+canary+"@", 1) + "?key=" + canary
				}
				got := d.Deliver(ctx, Request{
					Method: "GET", URL: target,
					Header: http.Header{"X-Secret": {canary}, "X-Other": {"1"}},
				})
				if got.Kind == "" && got.Status == 0 {
					t.Errorf("got %+v, want a failure", got)
				}
				if text := fmt.Sprintf("%v %+v %#v", got.Err, got.Err, got.Err); strings.Contains(text, canary) {
					t.Errorf("the error tells a secret: %s", text)
				}
			})
		}
	}
}

func TestRedact(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	ended := &endedError{is: context.Canceled, cause: errors.New(`the caller's "words"`)}
	withURL := func(err error) error { return &url.Error{Op: "Get", URL: "http://host/?" + canary, Err: err} }

	for _, same := range []error{io.EOF, refused, ended} {
		for _, err := range []error{same, withURL(same), withURL(withURL(same))} {
			if got := redact(err); got != same {
				t.Errorf("redact(%#v) = %#v, want it bare", err, got)
			}
		}
	}
	tests := []struct {
		err  error
		want string
	}{
		{errors.New(`malformed HTTP response "` + canary + `"`), "malformed HTTP response"},
		{errors.New(`net/http: broken: bad Content-Length "` + canary + `"`), "net/http: broken: bad Content-Length"},
		{fmt.Errorf("broken: %w", textproto.ProtocolError("malformed MIME header line: "+canary)),
			"worker: malformed response header"},
		{fmt.Errorf("mine: %w", withURL(io.EOF)), "EOF"},
		{fmt.Errorf("mine: %v", withURL(io.EOF)), "mine: Get"},
		{withURL(nil), "Get"},
		{errors.New(strings.Repeat("x", 1000)), strings.Repeat("x", maxErrorText)},
	}
	for _, tt := range tests {
		if got := redact(tt.err); got.Error() != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
