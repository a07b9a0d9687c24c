// Package dispatchtest helps to test programs that use Dispatch, without a Redis and without waiting: the store runs on
// an embedded server, and time moves only when the test says so.
//
//	store := dispatchtest.NewStore(t)
//	receiver := dispatchtest.NewReceiver(t, 503, 200)
//	d := dispatchtest.NewDispatcher(t, store, dispatch.Options{})
//
//	id, err := d.Enqueue(ctx, dispatch.Task{URL: receiver.URL, Delay: time.Hour})
//	store.Advance(time.Hour)           // the store's clock, its expiries and the dispatcher's timers
//	dispatchtest.RunUntilIdle(t, d)    // first attempt: 503
//	store.Advance(time.Second)         // the backoff
//	dispatchtest.RunUntilIdle(t, d)    // second attempt: 200
//	dispatchtest.RequireDelivered(t, receiver, id, 2)
//
// # What this does not promise
//
// The embedded server is miniredis. It runs the same scripts as Redis, one at a time and slower; how fast something is,
// and how a real server fails, it does not show. HTTP deliveries go over real sockets on the loopback interface, and
// their time-outs are by the fake clock, so a receiver that hangs hangs until Advance.
package dispatchtest
