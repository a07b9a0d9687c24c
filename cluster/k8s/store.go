package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/jonboulle/clockwork"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// StoreOptions are the settings of a Store. The zero value is ready for use.
type StoreOptions struct {
	// Prefix names the fleet: two fleets in one namespace need two. It begins the name of every Lease. "" means
	// "dispatch"; at most 40 characters of [a-z0-9-].
	Prefix string
	// PodName is the pod that this process runs in, usually from the downward API. If it is set, the pod is annotated
	// with the worker's ID and state, for those who look at pods; if that fails, the store warns and goes on.
	PodName string
	// Clock measures how long ago a row was seen to change, and gives the times that are shown; nil means the real one.
	Clock clockwork.Clock
	// Logger gets warnings; nil means slog.Default().
	Logger *slog.Logger
}

// Store is a registry of workers in a namespace of Kubernetes: a cluster.Store. Each worker is a Lease, "PREFIX-worker-ID",
// whose holder is the worker and whose renewTime is its last beat, with the worker as JSON in an annotation; the
// leadership is the Lease "PREFIX-leader". Methods are safe for concurrent use.
//
// Every change of a Lease carries the UID and the resource version that it was read with. The UID matters: without one,
// the API server creates a Lease that is updated and not there. A beat is one request. When the row has changed since
// this Store saw it last the beat is refused, and the Store reads and tries again. So nothing that was deleted or marked
// dead comes back by a beat, and a reaper never marks a worker that has beaten meanwhile.
//
// Ages are judged as the package doc says. LastSeen, LeaderUntil and CreatedAt are for people: the first is by the clock
// of the worker, the second by that of the reader, the third by that of whoever set it.
//
// Errors: cluster.ErrWorkerNotFound, those of settings that cannot work, and those of the API server, wrapped.
type Store struct {
	client    kubernetes.Interface
	namespace string
	opts      StoreOptions
	invalid   error // what every method returns

	mu    sync.Mutex // guards what follows; held for no request
	rows  map[string]sighting
	owed  map[string]bool // Leases of rows that were marked dead, perhaps, and not returned to a caller yet
	shown [2]string       // the ID and the state that the pod is annotated with
}

var _ cluster.Store = (*Store)(nil)

// NewStore makes a registry in a namespace. It asks nothing of the API server yet; whatever is wrong with its settings
// is an error of every method.
func NewStore(client kubernetes.Interface, namespace string, o StoreOptions) *Store {
	o.Prefix = cmp.Or(o.Prefix, "dispatch")
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{client: client, namespace: namespace, opts: o, rows: map[string]sighting{}, owed: map[string]bool{}}
	if client == nil {
		s.invalid = errors.New("k8s: NewStore: the client is nil")
	} else if problems := validation.IsDNS1123Label(namespace); problems != nil {
		s.invalid = fmt.Errorf("k8s: NewStore: namespace %q: %s", namespace, problems[0])
	} else if problems := validation.IsDNS1123Label(o.Prefix); problems != nil {
		s.invalid = fmt.Errorf("k8s: StoreOptions.Prefix: %q: %s", o.Prefix, problems[0])
	} else if len(o.Prefix) > 40 {
		s.invalid = fmt.Errorf("k8s: StoreOptions.Prefix: %q is longer than 40 characters", o.Prefix)
	}
	return s
}

func (s *Store) leases() leases.LeaseInterface {
	return s.client.CoordinationV1().Leases(s.namespace)
}

// check refuses what cannot be the ID of a worker: it is part of a name.
func (s *Store) check(id cluster.WorkerID) error {
	if s.invalid != nil {
		return s.invalid
	}
	if problems := validation.IsDNS1123Label(string(id)); problems != nil {
		return fmt.Errorf("k8s: worker %q: %s", id, problems[0])
	}
	return nil
}

// errAgain is the answer of a try that met a change by somebody else.
var errAgain = errors.New("the Lease changes all the time")

// retry tries until it works: six times, within half a second, as conflicts are of short duration. The pauses have jitter,
// so that two who met do not meet again. They are by the real clock, since what they wait for is other machines.
func retry(ctx context.Context, try func(context.Context) error) error {
	var err error
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6}
	interrupted := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (done bool, _ error) {
		if err = try(ctx); err == nil {
			return true, nil
		}
		if isChange(err) {
			return false, nil
		}
		return false, err
	})
	if interrupted != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isChange says whether a request failed because of a change by somebody else.
func isChange(err error) bool {
	return errors.Is(err, errAgain) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// write writes a Lease that was read before, if it has not changed since, and notes what it is now.
func (s *Store) write(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	written, err := s.leases().Update(ctx, lease, updateOptions)
	if err != nil {
		return nil, err
	}
	s.note(written)
	return written, nil
}
