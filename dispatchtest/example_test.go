package dispatchtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// exampleT stands in for the *testing.T of a test, which an example does not have.
type exampleT struct{ *fakeT }

func (exampleT) Context() context.Context { return context.Background() }

func newExampleT() (t testing.TB, end func()) {
	fake := new(fakeT)
	return exampleT{fake}, func() {
		for i := len(fake.cleanups) - 1; i >= 0; i-- {
			fake.cleanups[i]()
		}
		fmt.Print(fake.text.String())
	}
}

// A webhook that fails first is delivered again after its backoff: an hour and a second, in no time.
func Example() {
	t, end := newExampleT() // the *testing.T of a test
	defer end()

	store := dispatchtest.NewStore(t)
	receiver := dispatchtest.NewReceiver(t, 503, 200)
	d := dispatchtest.NewDispatcher(t, store, dispatch.Options{})

	id, err := d.Enqueue(t.Context(), dispatch.Task{URL: receiver.URL, Payload: []byte(`{"a":1}`), Delay: time.Hour})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	dispatchtest.RequireEnqueued(t, store, dispatch.Task{URL: receiver.URL})

	store.Advance(time.Hour)
	dispatchtest.RunUntilIdle(t, d)
	store.Advance(time.Second) // the backoff
	dispatchtest.RunUntilIdle(t, d)
	dispatchtest.RequireDelivered(t, receiver, id, 2)

	for _, delivery := range receiver.Deliveries() {
		fmt.Println("attempt", delivery.Attempt, "was answered", delivery.Status)
	}
	// Output:
	// attempt 1 was answered 503
	// attempt 2 was answered 200
}

// A program enqueues, and its test looks at what waits.
func ExampleRequireEnqueued() {
	t, end := newExampleT()
	defer end()

	store := dispatchtest.NewStore(t)
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	signUp := func(name string) error { // what is tested
		task, err := dispatch.NewTask("welcome", name)
		if err != nil {
			return err
		}
		_, err = client.Enqueue(t.Context(), task)
		return err
	}
	if err := signUp("ada"); err != nil {
		t.Fatalf("signUp: %v", err)
	}
	task := dispatchtest.RequireEnqueued(t, store, dispatch.Task{Kind: "welcome"})
	fmt.Println(string(task.Payload))
	// Output: "ada"
}
