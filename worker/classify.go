package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Kind is why an exchange failed, as a small set of words fit for a metric's label. The zero value is success.
type Kind string

// The kinds of failure.
const (
	// KindTimeout is an exchange that was not over at the deadline of its context, or at a limit of the client itself
	// (10 s for a TLS handshake; the Timeout of a caller's Client).
	KindTimeout Kind = "timeout"
	// KindConnect is a connection that could not be made (in 15 s), or that broke before a response, or a response that
	// is not HTTP or whose header is too long.
	KindConnect Kind = "connect"
	// KindDNS is a host name that did not resolve.
	KindDNS Kind = "dns"
	// KindTLS is a TLS handshake or certificate that failed.
	KindTLS Kind = "tls"
	// KindNon2xx is a response whose status is not 200 to 299, redirects included.
	KindNon2xx Kind = "non_2xx"
	// KindConfig is a request that cannot be sent as it stands: its method, URL or header is wrong, or the egress guard
	// refuses its destination. So is one whose header is longer than its HTTP/2 receiver has said that it takes.
	KindConfig Kind = "config"
	// KindCancelled is an exchange whose context ended for another cause than its deadline.
	KindCancelled Kind = "cancelled"
	// KindShed is a request that was not sent, because its host does not answer and another request tries it already.
	// Classify never returns it.
	KindShed Kind = "shed"
)

// Classify says why an exchange failed, from the status of its response (0 is none) and from what broke it off.
//
// The status is the receiver's word, and it stands even if the body broke off afterwards. The one exception: a 2xx is
// no success if the context ended before the body had, because then the receiver may not have finished either.
func Classify(status int, err error) Kind {
	switch {
	case status == 0:
		return classifyError(err)
	case status < 200 || status > 299:
		return KindNon2xx
	}
	if kind := classifyError(err); err != nil && (kind == KindTimeout || kind == KindCancelled) {
		return kind
	}
	return ""
}

// classifyError is Classify without a status. The end of the context comes first: what happened to the connection
// then is a consequence. Of the rest, the more special comes first: a failed look-up is also a failed dial, and a dial
// that took too long calls itself context.DeadlineExceeded.
func classifyError(err error) Kind {
	if ended, ok := errors.AsType[*endedError](err); ok {
		if ended.is == context.DeadlineExceeded {
			return KindTimeout
		}
		return KindCancelled
	}
	if _, ok := errors.AsType[*configError](err); ok {
		return KindConfig
	}
	if _, ok := errors.AsType[*EgressError](err); ok {
		return KindConfig
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return KindDNS
	}
	op, isOp := errors.AsType[*net.OpError](err)
	limit, isLimit := errors.AsType[net.Error](err)
	switch {
	case isTLS(err, op):
		return KindTLS
	case isOp:
		return KindConnect
	case errors.Is(err, context.DeadlineExceeded), isLimit && limit.Timeout():
		return KindTimeout
	case errors.Is(err, context.Canceled):
		return KindCancelled
	case isTooLong(err):
		return KindConfig
	}
	return KindConnect
}

// isTooLong says whether net/http has not sent a request because its header is longer than the HTTP/2 receiver allows.
// The error is a variable of an internal package: there is only its text, with "http2: " before it in golang.org/x/net.
func isTooLong(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "request header list larger than peer's advertised limit")
}

// isTLS says whether err is a failed handshake or a certificate that was not accepted. op is the network error in it,
// if there is one.
func isTLS(err error, op *net.OpError) bool {
	if err == nil {
		return false
	}
	var (
		record       tls.RecordHeaderError
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	if errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) || errors.As(err, &verification) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid) {
		return true
	}
	// An alert has the type of a network error, and what this side objects to has no type: there is only the text.
	return op != nil && (op.Op == "remote error" || op.Op == "local error") || strings.HasPrefix(err.Error(), "tls: ")
}
