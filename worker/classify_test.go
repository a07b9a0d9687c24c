package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// TestClassify is the golden table: what Classify says is a label in people's metrics.
func TestClassify(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	unresolved := &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}
	wrapped := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://127.0.0.1/", Err: err} // as http.Client does
	}

	tests := []struct {
		name   string
		status int
		err    error
		want   Kind
	}{
		{"200", 200, nil, ""},
		{"204", 204, nil, ""},
		{"299", 299, nil, ""},
		{"101", 101, nil, KindNon2xx},
		{"199", 199, nil, KindNon2xx},
		{"300", 300, nil, KindNon2xx},
		{"302", 302, nil, KindNon2xx},
		{"304", 304, nil, KindNon2xx},
		{"404", 404, nil, KindNon2xx},
		{"429", 429, nil, KindNon2xx},
		{"503", 503, nil, KindNon2xx},
		{"999", 999, nil, KindNon2xx},
		{"no response", 0, nil, KindConnect},

		{"200, body cut", 200, io.ErrUnexpectedEOF, ""},
		{"200, body reset", 200, read(syscall.ECONNRESET), ""},
		{"200, keep-alive gave up in the body", 200, read(syscall.ETIMEDOUT), ""},
		{"200, deadline in the body", 200, context.DeadlineExceeded, KindTimeout},
		{"200, cancelled in the body", 200, context.Canceled, KindCancelled},
		{"500, body cut", 500, io.ErrUnexpectedEOF, KindNon2xx},
		{"500, deadline in the body", 500, context.DeadlineExceeded, KindNon2xx},
		{"302, cancelled in the body", 302, context.Canceled, KindNon2xx},

		{"deadline", 0, context.DeadlineExceeded, KindTimeout},
		{"cancelled", 0, context.Canceled, KindCancelled},
		{"a limit of the client", 0, limitError{}, KindTimeout},

		{"refused", 0, dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), KindConnect},
		{"unreachable", 0, dial(syscall.EHOSTUNREACH), KindConnect},
		{"dial took too long", 0, dial(dialTimeoutError(t)), KindConnect},
		{"dial given up", 0, dial(context.Canceled), KindConnect},
		{"reset", 0, read(syscall.ECONNRESET), KindConnect},
		{"keep-alive gave up", 0, read(syscall.ETIMEDOUT), KindConnect},
		{"closed before the header", 0, io.EOF, KindConnect},
		{"closed in the header", 0, io.ErrUnexpectedEOF, KindConnect},
		{"broken pipe", 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, KindConnect},
		{"no HTTP", 0, errors.New(`malformed HTTP response "\x00"`), KindConnect},

		{"no such host", 0, unresolved, KindDNS},
		{"no such host, as dialed", 0, dial(unresolved), KindDNS},
		{"look-up took too long", 0, dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), KindDNS},

		{"unknown authority", 0, x509.UnknownAuthorityError{}, KindTLS},
		{"unknown authority, as verified", 0,
			&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, KindTLS},
		{"other host's certificate", 0, x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, KindTLS},
		{"expired certificate", 0, x509.CertificateInvalidError{Reason: x509.Expired}, KindTLS},
		{"no TLS", 0, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, KindTLS},
		{"HTTP instead of TLS", 0, http.ErrSchemeMismatch, KindTLS},
		{"alert", 0, &net.OpError{Op: "remote error", Err: tls.AlertError(40)}, KindTLS},
		{"own alert", 0, &net.OpError{Op: "local error", Err: tls.AlertError(70)}, KindTLS},
		{"objection without a type", 0, errors.New("tls: server selected unsupported version"), KindTLS},

		{"header that HTTP/2 does not take", 0,
			errors.New("http2: request header list larger than peer's advertised limit"), KindConfig},
		{"cannot be sent", 0, configErrorf("the URL is neither http nor https"), KindConfig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Classify(tt.status, tt.err); got != tt.want {
				t.Errorf("Classify(%d, %v) = %q, want %q", tt.status, tt.err, got, tt.want)
			}
			if tt.err == nil || tt.name == "objection without a type" {
				return
			}
			if got := Classify(tt.status, wrapped(tt.err)); got != tt.want {
				t.Errorf("wrapped: Classify(%d, %v) = %q, want %q", tt.status, tt.err, got, tt.want)
			}
		})
	}
}

// TestContextOutweighsItsConsequences: whatever broke when the context ended, and whatever its cause wraps, the kind
// is the context's.
func TestContextOutweighsItsConsequences(t *testing.T) {
	stop := errors.New("stop")
	lost := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host"}}

	tests := []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		want Kind
		is   []error
	}{
		{"cancel", func() (context.Context, context.CancelFunc) {
			return context.WithCancel(context.Background())
		}, KindCancelled, []error{context.Canceled}},
		{"cancel with a cause", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(stop) }
		}, KindCancelled, []error{context.Canceled, stop}},
		{"cancel with a network error as its cause", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(lost) }
		}, KindCancelled, []error{context.Canceled, lost}},
		{"cancel with the deadline as its cause", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(context.DeadlineExceeded) }
		}, KindTimeout, []error{context.DeadlineExceeded}},
		{"deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 0)
		}, KindTimeout, []error{context.DeadlineExceeded}},
		{"deadline with a cause", func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), 0, stop)
		}, KindTimeout, []error{context.DeadlineExceeded, stop}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := tt.ctx()
			cancel()
			err := because(ctx, lost)
			if got := Classify(0, err); got != tt.want {
				t.Errorf("kind is %q, want %q", got, tt.want)
			}
			for _, target := range tt.is {
				if !errors.Is(err, target) {
					t.Errorf("errors.Is(%v, %v) is false", err, target)
				}
			}
		})
	}
	if err := because(context.Background(), lost); err != lost {
		t.Errorf("an error in a context that has not ended became %v", err)
	}
}

// limitError is the error of a limit of net/http's own, such as the one on a TLS handshake.
type limitError struct{}

func (limitError) Error() string   { return "too long" }
func (limitError) Timeout() bool   { return true }
func (limitError) Temporary() bool { return true }

// dialTimeoutError is what net says when a Dialer's Timeout is over: errors.Is takes it for the context's deadline.
func dialTimeoutError(t *testing.T) error {
	t.Helper()
	_, err := (&net.Dialer{Timeout: 1}).Dial("tcp", "127.0.0.1:9")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("dialing for 1 ns: %v", err)
	}
	return err.(*net.OpError).Err
}
