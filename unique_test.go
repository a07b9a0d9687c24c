package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// What the same key may do when is a matrix of the store's, in redisstore/storetest; here is how it is asked for.
func TestUnique(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.d.Handle("k", nothing)
	window := &dispatch.Unique{Window: 250 * time.Millisecond}
	id := e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("a"), Unique: window})
	if !strings.HasPrefix(string(id), "u-") || len(id) != 45 {
		t.Errorf("the ID is %s", id)
	}
	same, err := e.d.Enqueue(t.Context(), dispatch.Task{Kind: "k", Payload: []byte("a"), Unique: window, Delay: time.Hour})
	e.fails(err, dispatch.ErrDuplicateTask)
	if same != id {
		t.Errorf("the duplicate is of %s, want %s", same, id)
	}
	e.run()
	e.gone(id)
	_, err = e.d.Enqueue(t.Context(), dispatch.Task{Kind: "k", Payload: []byte("a"), Unique: window})
	e.fails(err, dispatch.ErrDuplicateTask)
	e.store.Advance(251 * time.Millisecond)
	e.enqueue(dispatch.Task{Kind: "k", Payload: []byte("a"), Unique: window})
}

func TestUniqueRefuses(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	for field, task := range map[string]dispatch.Task{
		"Task.Unique":        {ID: "a", Unique: &dispatch.Unique{}},
		"Task.Unique.Key":    {Unique: &dispatch.Unique{Key: strings.Repeat("k", 1025)}},
		"Task.Unique.Window": {Unique: &dispatch.Unique{Window: 11 * 366 * 24 * time.Hour}},
	} {
		task.Kind = "k"
		_, err := e.d.Enqueue(t.Context(), task)
		requireField(t, err, field)
	}
	_, err := e.d.Enqueue(t.Context(), dispatch.Task{Kind: "k", Unique: &dispatch.Unique{Window: time.Microsecond}})
	requireField(t, err, "Task.Unique.Window")
	e.enqueue(dispatch.Task{Kind: "k", Unique: &dispatch.Unique{Key: strings.Repeat("k", 1024)}})
}
