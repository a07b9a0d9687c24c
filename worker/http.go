package worker

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// Request is one HTTP request to deliver. Header and Body are only read, by several goroutines, and must never be
// changed: not even after Deliver has returned, because the last of it may still be on its way to the socket.
type Request struct {
	// Method is the HTTP method; "" means POST. CONNECT is refused.
	Method string
	// URL is absolute, http or https. Its fragment is not sent; user information is sent as Basic authorization unless
	// Header has one.
	URL string
	// Header is sent with its names spelled as they are in the map (HTTP/2 has lower case only). Host, Content-Length,
	// Transfer-Encoding and Trailer are refused in any spelling: they follow from URL and Body. A User-Agent wins over
	// the one of Options.
	Header http.Header
	// Insist sends the request although the host does not answer, see Options.BreakerThreshold.
	Insist bool
	// Body is sent with its length. An empty one is Content-Length: 0 for POST, PUT and PATCH and nothing for others.
	Body []byte
}

// Result is how an exchange ended. It succeeded if Kind is empty.
type Result struct {
	// Status is the status of the response, 0 if there was none. It may be 2xx with a Kind: the deadline passed, or
	// the context was cancelled, before the body had ended.
	Status int
	// Kind is why the exchange failed; "" is success.
	Kind Kind
	// Permanent says that the egress guard refused every address of the host, so that to try again is pointless until
	// the settings or the host's addresses change. Kind is KindConfig then, Err is an *EgressError, and nothing was
	// sent. It is false for all other failures.
	Permanent bool
	// RetryIn is set with KindShed, and only then: how long to wait before the request is delivered again, 1 s to 1 min.
	// It grows with the number of requests to the host that are shed.
	RetryIn time.Duration
	// Snippet is the beginning of the body, at most 1 KiB and valid UTF-8: invalid bytes are "?", and a character that
	// the limit would cut in two is left out.
	Snippet string
	// Advice is what the response says of a repetition, when its status is not 2xx.
	Advice Advice
	// Truncated says that the body did not end with the snippet: it was longer, or it broke off.
	Truncated bool
	// Err is what went wrong, nil if Status alone tells (Kind is "" or KindNon2xx). It never holds the URL's query, its
	// user information or the value of a header. After the end of ctx it is, to errors.Is, context.DeadlineExceeded or
	// context.Canceled and also the cause of ctx.
	Err error
}

// Options are the settings of a Deliverer. The zero value is ready for use.
type Options struct {
	// BreakerThreshold is how many exchanges in a row without a response open the breaker of a host, that is of a scheme, host
	// and port: then one request at a time tries it, or a few if those hang, and others are shed, until it answers. 0
	// means 10; negative: none is ever shed.
	BreakerThreshold int
	// Client sends the requests; nil means a client made for the purpose, whose connections Close closes. The client
	// is used as it is, its Timeout and Jar included, except that redirects are not followed. Nothing guards where it
	// connects to, unless its transport comes from NewTransport.
	Client *http.Client
	// Egress says where requests may go; the zero value means public addresses only. It is not used beside a Client.
	// If its Validate returns an error, every Deliver fails with it, as KindConfig.
	Egress Egress
	// UserAgent is sent with requests that have none of their own; "" means "dispatch".
	UserAgent string
}

// Deliverer sends HTTP requests. It is safe for concurrent use and holds no goroutine beyond those of its connections.
type Deliverer struct {
	userAgent []string // a header's value
	breaker   breaker
	targets   targets

	// send sends a request that net/http never repeats after the receiver may have seen it.
	send sendFunc
	// sendHTTP1 sends all others, over HTTP/1.1 only; see once.go. It is nil if the client is the caller's.
	sendHTTP1 sendFunc

	// transports are the Deliverer's own; none if the client is the caller's.
	transports []*http.Transport
}

// sendFunc makes one exchange, up to the header of the response.
type sendFunc func(*http.Request) (*http.Response, error)

// NewDeliverer returns a Deliverer.
func NewDeliverer(o Options) *Deliverer {
	d := &Deliverer{
		userAgent: []string{cmp.Or(o.UserAgent, "dispatch")},
		breaker:   breaker{after: cmp.Or(o.BreakerThreshold, defaultThreshold)},
	}
	if o.Client != nil {
		d.send = oneHop(o.Client).Do
		return d
	}
	// Below http.Client there are no redirects, no cookies and no second time limit, and no copy of each header.
	g := newGuard(o.Egress)
	every, http1 := newTransport(g), newHTTP1Transport(g)
	d.send, d.sendHTTP1 = every.RoundTrip, http1.RoundTrip
	d.transports = []*http.Transport{every, http1}
	return d
}

// Deliver sends r and reads the response until it has ended or the limits are reached, all before ctx ends. It panics
// on no input. What cannot be sent as it stands, or not to where it should go, is KindConfig, and nothing is sent. Nor
// is it with KindShed, which comes at once: the host does not answer, and another request tries it already.
//
// Why ctx ended is asked of context.Cause: ctx may be one that is cancelled with context.DeadlineExceeded as its
// cause. What counts is the end of ctx, never its Deadline method.
func (d *Deliverer) Deliver(ctx context.Context, r Request) Result {
	req, send, err := d.build(ctx, r)
	if err != nil {
		return Result{Kind: Classify(0, err), Err: err}
	}
	resp, res := d.exchange(req, send, r.Insist)
	if resp == nil {
		return res
	}
	if res.Status < 200 || res.Status > 299 {
		res.Advice = adviceOf(resp.Header)
	}
	res.Snippet, res.Truncated, err = readBody(resp)
	if err != nil {
		return failed(res, because(ctx, err))
	}
	res.Kind = Classify(res.Status, nil)
	return res
}

// exchange sends req, if the breaker lets it, and tells the breaker how that ended: when the header of a response is
// there, the host has answered. A panic of the caller's transport has shown nothing.
func (d *Deliverer) exchange(req *http.Request, send sendFunc, insist bool) (resp *http.Response, res Result) {
	p, retryIn := d.breaker.enter(hostOf(req.URL), req.URL.Path, insist)
	if retryIn > 0 {
		return nil, Result{Kind: KindShed, RetryIn: retryIn, Err: errShed}
	}
	defer func() { d.breaker.leave(p, verdictOf(res)) }()
	resp, err := send(req)
	if err != nil {
		return nil, failed(Result{}, because(req.Context(), err))
	}
	return resp, Result{Status: resp.StatusCode}
}

// Close closes the connections that idle, if they are the Deliverer's own; those of a caller's Client are the
// caller's. Exchanges that run are not disturbed, so it is called when all have ended.
func (d *Deliverer) Close() {
	for _, t := range d.transports {
		t.CloseIdleConnections()
	}
}

// failed is res after an exchange that broke off with err. The status outweighs the error where Classify says so.
func failed(res Result, err error) Result {
	res.Kind = Classify(res.Status, err)
	if refused, ok := errors.AsType[*EgressError](err); ok && res.Kind == KindConfig {
		res.Permanent, res.Err = true, refused
		return res
	}
	if res.Kind != "" && res.Kind != KindNon2xx {
		res.Err = redact(err)
	}
	return res
}
