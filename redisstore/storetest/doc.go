// Package storetest is the conformance suite of dispatch.Store: what every implementation has to do, as test cases that
// know nothing of how it does it.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: open, Advance: advance, Check: check})
//	}
//
// There is one file for each transition, and a case for each sentence of dispatch.Store. After every case the harness's
// Check looks at every queue of the store. Random goes further: it drives a store with random operations of several
// workers and compares all that can be seen of it, step by step, with a model made of plain maps. With Clients, several
// clients do that at once, in an order that the seed decides: between any two requests to the server that a call makes, others
// make calls, and answers get lost.
//
// # What this does not promise
//
// The suite proves what a store does, not how long it takes, nor what is left after a crash of its server: tests of the
// implementation inject those faults. Time stands still except where a case moves it, so the way the store reads its
// clock in production needs a test of its own. Concurrency is tried, not proved: a race that needs an unlucky schedule
// may pass many runs.
package storetest
