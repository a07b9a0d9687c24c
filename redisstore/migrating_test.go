package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore/storetest"
)

// migratingPreamble makes a script behave as on a master from which the slot of its keys is moving away. Such a master runs a
// script while it has all its keys, and asks before every command whether it still has the key of that one. A key that the script
// itself has emptied is gone: the command is refused, and what was written before it stays.
const migratingPreamble = `
local server, there = redis, {}
for _, key in ipairs(KEYS) do
  there[key] = server.call('EXISTS', key) == 1
end
local function guarded(run)
  return function(command, key, ...)
    if there[key] and server.call('EXISTS', key) == 0 then
      error(command .. ' of ' .. key .. ', which this script has emptied')
    end
    return run(command, key, ...)
  end
end
local redis = {call = guarded(server.call), pcall = guarded(server.pcall)}
`

// No script touches a key after it has taken the last member out of it: while a slot moves, that would leave half a transition.
func TestNoScriptTouchesAKeyThatItHasEmptied(t *testing.T) {
	t.Parallel()
	b := backend{"redis", realBackend(t, redistest.Single, migratingPreamble)}
	t.Run("conformance", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, harness(b))
	})
	t.Run("repairs", func(t *testing.T) {
		t.Parallel()
		repairsTorn(t, b)
	})
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		workOnEverything(t, b.open(t))
	})
	t.Run("random", func(t *testing.T) {
		t.Parallel()
		storetest.Random(t, harness(b), storetest.RandomOptions{Limits: true, Repeat: true})
	})
}

// What the preamble imitates, on a cluster: a queue with a single task that waits, and a single one that runs, in a slot that is
// about to move.
func TestScriptsOnASlotThatMoves(t *testing.T) {
	t.Parallel()
	server := redistest.StartMasters(t, 3)
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	s := &testStore{Store: newTestStore(t, client, Options{}, "")}
	put(t, s, "runs")
	runs := claim(t, s, alice, 1, 1).Leased[0]
	put(t, s, "waits")

	number := strconv.Itoa(int(slot(s.queueKeys(mail).due)))
	var from *redistest.Server
	for i := range server.Addrs {
		to, err := server.Node((i+1)%3).Command("CLUSTER", "MYID")
		ok(t, err)
		if _, err := server.Node(i).Command("CLUSTER", "SETSLOT", number, "MIGRATING", to); err == nil {
			from = server.Node(i) // of the others each says that it has no such slot
		}
	}
	if from == nil {
		t.Fatalf("nobody has slot %s", number)
	}
	later, err := s.RescheduleTask(t.Context(), mail, dispatch.Task{ID: "waits", Delay: time.Hour})
	if err != nil {
		t.Errorf("reschedule: %+v, %v", later, err)
	}
	extended, err := s.Extend(t.Context(), mail, []dispatch.Extension{{ID: "runs", Lease: runs.Lease, For: time.Hour}})
	if err != nil || !extended[0] {
		t.Errorf("extend: %v, %v", extended, err)
	}
	_, err = from.Command("CLUSTER", "SETSLOT", number, "STABLE")
	ok(t, err)
	sound(t, s, mail)
}
