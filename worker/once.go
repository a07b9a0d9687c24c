package worker

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
)

// net/http sends a request again, without a word, when a reused connection breaks before the response and the request
// is "replayable": of an idempotent method or with an Idempotency-Key, and without a body or with a GetBody to make it
// anew (Request.isReplayable, Transport.shouldRetryRequest). For everyone else that is a kindness. Here a receiver
// would see two requests for one attempt.
//
// What net/http never repeats, POST and PATCH without such a key, is left as http.NewRequest makes it. It has a
// GetBody, which helps it over two harmless cases: the connection turned out to be closed before the first byte was
// written, and an HTTP/2 server, shutting down or busy, said that it has not looked at the stream. The latter happens
// all the time with servers that close each connection after some number of requests.
//
// All others lose their GetBody and, if empty, get a body that net/http does not know to be empty. HTTP/1.1 does not
// show the difference. HTTP/2 does, as an empty DATA frame, for which some receivers refuse a GET
// (golang/go#18891: CloudFront, 403). So these requests go over HTTP/1.1 wherever the choice is ours.

// repeatable says whether net/http would, or some day might, repeat req after the receiver has seen it. It is meant to
// say yes too often rather than too rarely.
func repeatable(req *http.Request) bool {
	if req.Method != http.MethodPost && req.Method != http.MethodPatch {
		return true
	}
	for name := range req.Header {
		if strings.EqualFold(name, "Idempotency-Key") || strings.EqualFold(name, "X-Idempotency-Key") {
			return true
		}
	}
	return false
}

// sendOnce makes req one that net/http cannot repeat.
func sendOnce(req *http.Request) {
	req.GetBody = nil
	if req.ContentLength > 0 {
		return
	}
	// The reader is of a type that net/http takes for memory, so it does not flush the header before the body.
	req.Body = io.NopCloser(bytes.NewReader(nil))
	// Without this the unknown length would be sent as chunks, after up to 200 ms of looking for a first byte.
	req.TransferEncoding = []string{"identity"}
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		// Receivers may insist on a length here (411). net/http leaves out the canonical spelling only.
		req.Header = maps.Clone(req.Header) // which may be the caller's
		req.Header["content-length"] = []string{"0"}
	}
}
