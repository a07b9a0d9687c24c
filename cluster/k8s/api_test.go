package k8s

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	kubetesting "k8s.io/client-go/testing"
)

const namespace = "jobs"

type leaseT = coordinationv1.Lease

// server is an API server. The fake clientset of client-go knows no resource versions and no preconditions, on which all
// depends here, so Leases are kept by server as the real one does it: an update of a Lease that is gone creates it, but
// fails with Conflict if it carries a UID.
type server struct {
	set *fake.Clientset

	mu       sync.Mutex
	leases   map[string]*coordinationv1.Lease
	version  int
	requests []string
}

func newServer(objects ...runtime.Object) *server {
	s := &server{set: fake.NewClientset(objects...), leases: map[string]*coordinationv1.Lease{}}
	s.set.PrependReactor("*", "leases", s.react)
	return s
}

func (s *server) react(action kubetesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if action.GetNamespace() != namespace {
		return true, nil, fmt.Errorf("namespace %q", action.GetNamespace())
	}
	s.requests = append(s.requests, action.GetVerb())
	group := coordinationv1.Resource("leases")
	switch action := action.(type) {
	case kubetesting.ListActionImpl:
		list := &coordinationv1.LeaseList{}
		for _, lease := range s.leases {
			list.Items = append(list.Items, *lease.DeepCopy())
		}
		return true, list, nil // the clientset selects by labels
	case kubetesting.GetActionImpl:
		if lease := s.leases[action.Name]; lease != nil {
			return true, lease.DeepCopy(), nil
		}
		return true, nil, apierrors.NewNotFound(group, action.Name)
	case kubetesting.CreateActionImpl:
		lease := action.Object.(*coordinationv1.Lease)
		if s.leases[lease.Name] != nil {
			return true, nil, apierrors.NewAlreadyExists(group, lease.Name)
		}
		return true, s.store(lease, ""), nil
	case kubetesting.UpdateActionImpl:
		lease := action.Object.(*coordinationv1.Lease)
		current := s.leases[lease.Name]
		switch {
		case current == nil && lease.UID == "":
			return true, s.store(lease, ""), nil
		case current == nil || lease.UID != "" && lease.UID != current.UID:
			return true, nil, apierrors.NewConflict(group, lease.Name, fmt.Errorf("precondition failed: UID"))
		case lease.ResourceVersion != "" && lease.ResourceVersion != current.ResourceVersion:
			return true, nil, apierrors.NewConflict(group, lease.Name, fmt.Errorf("the object has been modified"))
		}
		return true, s.store(lease, current.UID), nil
	case kubetesting.DeleteActionImpl:
		current := s.leases[action.Name]
		if current == nil {
			return true, nil, apierrors.NewNotFound(group, action.Name)
		}
		p := action.DeleteOptions.Preconditions
		if p != nil && (*p.UID != current.UID || *p.ResourceVersion != current.ResourceVersion) {
			return true, nil, apierrors.NewConflict(group, action.Name, fmt.Errorf("precondition failed"))
		}
		delete(s.leases, action.Name)
		return true, nil, nil
	}
	return true, nil, fmt.Errorf("no answer to %v", action)
}

func (s *server) store(lease *coordinationv1.Lease, uid types.UID) runtime.Object {
	s.version++
	lease = lease.DeepCopy()
	lease.ResourceVersion = strconv.Itoa(s.version)
	if lease.UID = uid; uid == "" {
		lease.UID = types.UID("uid-" + lease.ResourceVersion)
	}
	s.leases[lease.Name] = lease
	return lease.DeepCopy()
}

// lease returns a Lease, nil if there is none.
func (s *server) lease(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy()
}

// change changes a Lease behind everybody's back.
func (s *server) change(name string, f func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.leases[name])
	s.store(s.leases[name], s.leases[name].UID)
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, name)
}

// took returns the verbs of the requests since it was last asked.
func (s *server) took() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.requests = nil }()
	return strings.Join(s.requests, " ")
}

func (s *server) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := s.set.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// client is one process's way to the server. A hook that fails a request before it is sent cuts the process off; one
// that fails it afterwards loses the answer.
type client struct {
	kubernetes.Interface

	mu            sync.Mutex
	before, after func(ctx context.Context, verb string) error
}

func (s *server) client() *client { return &client{Interface: s.set} }

func (c *client) hook(before, after func(ctx context.Context, verb string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.after = before, after
}

func (c *client) call(ctx context.Context, verb string, f func() error) error {
	c.mu.Lock()
	before, after := c.before, c.after
	c.mu.Unlock()
	if before != nil {
		if err := before(ctx, verb); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := f()
	if after != nil {
		if lost := after(ctx, verb); lost != nil {
			return lost
		}
	}
	return err
}

func (c *client) CoordinationV1() typed.CoordinationV1Interface {
	return coordination{c.Interface.CoordinationV1(), c}
}

type coordination struct {
	typed.CoordinationV1Interface
	c *client
}

func (c coordination) Leases(namespace string) typed.LeaseInterface {
	return hooked{c.CoordinationV1Interface.Leases(namespace), c.c}
}

type hooked struct {
	typed.LeaseInterface
	c *client
}

func (h hooked) Get(ctx context.Context, name string, o metav1.GetOptions) (lease *leaseT, err error) {
	err = h.c.call(ctx, "get", func() (err error) { lease, err = h.LeaseInterface.Get(ctx, name, o); return err })
	return lease, err
}

func (h hooked) Create(ctx context.Context, l *leaseT, o metav1.CreateOptions) (lease *leaseT, err error) {
	err = h.c.call(ctx, "create", func() (err error) { lease, err = h.LeaseInterface.Create(ctx, l, o); return err })
	return lease, err
}

func (h hooked) Update(ctx context.Context, l *leaseT, o metav1.UpdateOptions) (lease *leaseT, err error) {
	err = h.c.call(ctx, "update", func() (err error) { lease, err = h.LeaseInterface.Update(ctx, l, o); return err })
	return lease, err
}

func (h hooked) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return h.c.call(ctx, "delete", func() error { return h.LeaseInterface.Delete(ctx, name, o) })
}

func (h hooked) List(ctx context.Context, o metav1.ListOptions) (list *coordinationv1.LeaseList, err error) {
	err = h.c.call(ctx, "list", func() (err error) { list, err = h.LeaseInterface.List(ctx, o); return err })
	return list, err
}

// down is a hook: every request fails at once.
func down(context.Context, string) error { return apierrors.NewServiceUnavailable("down") }

// silence is a hook: no request is answered.
func silence(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// logbook keeps what is logged at level warn and above.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (b *logbook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, string(line))
	return len(line), nil
}

func (b *logbook) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "")
}
