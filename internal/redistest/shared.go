package redistest

import (
	"sync"
	"testing"
)

// launches starts each shared server at most once, at the first call, and answers the same ever after.
var launches = map[Backend]func() (*Server, error){
	Single:  launchOnce(Single),
	Strict:  launchOnce(Strict),
	Masters: launchOnce(Masters),
}

// shared are the servers that launches has started.
var shared struct {
	mu      sync.Mutex
	servers []*Server
}

func launchOnce(b Backend) func() (*Server, error) {
	return sync.OnceValues(func() (*Server, error) {
		s, err := Launch(b.config())
		if err == nil {
			shared.mu.Lock()
			defer shared.mu.Unlock()
			shared.servers = append(shared.servers, s)
		}
		return s, err
	})
}

// Shared returns the server of that kind that all tests of this binary use, and starts it for the first of them.
// A test keeps apart by names of its own (a queue, a prefix), never by FLUSHALL, and injects no faults: other tests run
// at the same time. The binary's TestMain must call [StopShared] or use [Wrap].
func Shared(t testing.TB, backend Backend) *Server {
	t.Helper()
	Require(t, backend)
	launch, ok := launches[backend]
	if !ok {
		t.Fatalf("redistest: no back end %q", backend)
	}
	s, err := launch()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// StopShared stops the servers that Shared started. It is for TestMain, after the tests: no later Shared starts again.
func StopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, s := range shared.servers {
		s.Stop()
	}
	shared.servers = nil
}

// Runner is what TestMain gets: *testing.M, or something around it.
type Runner interface {
	// Run runs the tests and returns the exit code.
	Run() int
}

// Wrap returns m with StopShared behind it. A leak detector looks for goroutines right after Run, so the servers have to
// be gone by then:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }
func Wrap(m Runner) Runner { return stopping{m} }

type stopping struct{ tests Runner }

func (s stopping) Run() int {
	defer StopShared()
	return s.tests.Run()
}
