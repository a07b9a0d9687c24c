package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/servers"
	"github.com/dispatchkit/dispatch/redisstore"
)

// A run may take so long before it is given up.
const (
	quickLimit = 2 * time.Minute
	longLimit  = 30 * time.Minute // and what -for says
)

// play runs a scenario once and judges it. What a failed run left goes to a directory in s.keep; the rest is removed. When ctx ends
// meanwhile, that is the error: there is no row, because nothing was shown, and nothing is left.
func play(ctx context.Context, sc Scenario, s settings) (row Row, interrupted error) {
	row = Row{Scenario: sc.Name, Seed: s.seed, Pass: true}
	begun := time.Now()
	defer func() { row.Seconds = time.Since(begun).Seconds() }()
	limit := quickLimit
	if !s.quick {
		limit = longLimit + s.length
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the run has taken %v", limit))
	defer cancel()
	dir, err := os.MkdirTemp("", "chaos-"+sc.Name+"-")
	if err != nil {
		row.Void = true
		row.fail(err.Error())
		return row, nil
	}
	r, err := stage(limited, sc, s, dir)
	staged := err == nil
	if staged {
		err = sc.Run(limited, r)
		if limited.Err() != nil {
			row.Void = true
			err = errors.Join(err, context.Cause(limited))
		}
	}
	if r != nil {
		err = errors.Join(err, r.strike())
	}
	if ctx.Err() != nil {
		os.RemoveAll(dir)
		return row, context.Cause(ctx)
	}
	if err != nil {
		row.fail(err.Error())
	}
	if staged {
		r.judge(&row, sc)
	} else {
		row.Void = true
	}
	if row.Pass {
		os.RemoveAll(dir)
		return row, nil
	}
	row.Kept = keep(dir, s, &row)
	return row, nil
}

// stage sets up what a scenario needs. With an error it may return a run too, to be struck.
func stage(ctx context.Context, sc Scenario, s settings, dir string) (*Run, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &Run{
		Rand: rand.New(rand.NewPCG(s.seed, nameHash(sc.Name))), Quick: s.quick, Length: s.length,
		dir: dir, topology: cmp.Or(sc.Servers, Single), bound: sc.Bound, named: map[string]int{},
	}
	if err := os.Mkdir(r.ledgerDir(), 0o755); err != nil {
		return nil, err
	}
	var err error
	if r.Log, err = audit.Open(r.ledgerDir(), "main"); err != nil {
		return nil, err
	}
	start := map[Topology]func(servers.Config) (*servers.Set, error){
		Single: servers.Single, Replicated: servers.Replicated, Cluster: servers.Cluster,
	}[r.topology]
	if start == nil {
		return r, fmt.Errorf("scenario %s: there is no topology %q", sc.Name, r.topology)
	}
	if r.Set, err = start(servers.Config{AOF: sc.AOF, LogDir: dir, Args: sc.Args}); err != nil {
		return r, err
	}
	r.atEnd(r.Set.Close)
	if err := r.Set.WaitReady(ctx); err != nil {
		return r, err
	}
	complaints, err := os.Create(filepath.Join(dir, "main.stderr"))
	if err != nil {
		return r, err
	}
	r.atEnd(func() { complaints.Close() })
	return r, r.openClient(ctx, complaints)
}

// openClient makes the client of this process.
func (r *Run) openClient(ctx context.Context, complaints io.Writer) error {
	r.complaints = slog.New(slog.NewTextHandler(complaints, nil))
	var err error
	if r.store, err = r.StoreAt(ctx, r.Set.URL()); err != nil {
		return err
	}
	r.client, err = r.ClientOf(r.store, dispatch.ClientOptions{})
	return err
}

// StoreAt is a further store in this process, such as one behind a proxy of its own. It ends with the run.
func (r *Run) StoreAt(ctx context.Context, url string) (*redisstore.Store, error) {
	store, err := redisstore.Open(ctx, url, redisstore.Options{Logger: r.complaints})
	if err == nil {
		r.atEnd(func() { store.Close() })
	}
	return store, err
}

// ClientOf is a client of a store, with options of its own, that writes to the ledger as Client does. What tasks leave that are
// cancelled is gone at once.
func (r *Run) ClientOf(store *redisstore.Store, o dispatch.ClientOptions) (*Client, error) {
	o.Logger, o.RetentionFailed = r.complaints, -1
	client, err := dispatch.NewClient(store, o)
	return &Client{Client: client, log: r.Log}, err
}

func (r *Run) ledgerDir() string { return filepath.Join(r.dir, "ledger") }

// strike takes everything down, the newest first, and says what was amiss with the processes.
func (r *Run) strike() error {
	r.mu.Lock()
	processes, closers := r.processes, r.closers
	r.processes, r.closers = nil, nil
	r.mu.Unlock()
	var amiss []error
	for _, p := range processes {
		amiss = append(amiss, p.close())
	}
	for i := range closers {
		closers[len(closers)-1-i]()
	}
	return errors.Join(append(amiss, r.Log.Close())...)
}

// judge has the checker read the ledger.
func (r *Run) judge(row *Row, sc Scenario) {
	rules := audit.Rules{Drained: r.snap != nil, Store: r.snap, Leftover: append([]string{"{*}:names"}, sc.Bound.Leftover...)}
	if sc.Bound.Duplicates != nil {
		row.DuplicatesBound = sc.Bound.Duplicates(r)
	}
	if sc.Bound.Unexplained != nil {
		rules.Duplicates = sc.Bound.Unexplained(r)
	}
	if sc.Bound.Overlaps != nil {
		rules.Overlaps = sc.Bound.Overlaps(r)
	}
	if sc.Bound.MayLose != nil {
		rules.MayLose = func(e audit.Event) bool { return sc.Bound.MayLose(r, e) }
	}
	if r.recovered || sc.Bound.Recovery > 0 {
		row.measured(r.recovery, sc.Bound.Recovery)
		if !r.recovered {
			row.fail("recovery was not measured")
		}
	}
	history, err := audit.Read(r.ledgerDir())
	if err != nil {
		row.fail(err.Error())
		return
	}
	row.judge(audit.Check(history, rules), duplicates(history))
}

// keep moves what a failed run left to where it stays, adds how to replay it, and returns the place.
func keep(dir string, s settings, row *Row) string {
	replay := fmt.Sprintf("go run ./chaos -run '^%s$' -seed %d", row.Scenario, s.seed)
	if s.quick {
		replay += " -quick"
	} else if s.length != defaultLength {
		replay += " -for " + s.length.String()
	}
	text := replay + "\n\n" + strings.Join(row.Why, "\n") + "\n"
	os.WriteFile(filepath.Join(dir, "README"), []byte(text), 0o644) // best effort: the row says the same
	if s.keep == "" {
		return dir
	}
	place := filepath.Join(s.keep, filepath.Base(dir))
	if err := os.MkdirAll(s.keep, 0o755); err != nil {
		return dir
	}
	if err := os.Rename(dir, place); err == nil {
		return place
	}
	if err := os.CopyFS(place, os.DirFS(dir)); err != nil { // another file system
		return dir
	}
	os.RemoveAll(dir)
	return place
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
