package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	postgresStart = 20 * time.Second // until a new cluster answers
	postgresPoll  = 10 * time.Millisecond
)

// postgresSettings favour whoever is measured on it: nothing is forced to disk, as Redis writes nothing to disk here,
// and the cluster is left in peace by checkpoints. Clients come over a socket in its directory, from nowhere else.
var postgresSettings = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=256MB", "max_wal_size=4GB",
	"checkpoint_timeout=1h", "max_connections=200", "listen_addresses=",
}

// postgres is a PostgreSQL cluster that exists for one measurement, so that none finds what another has left, and none
// is disturbed by the vacuum of another.
type postgres struct {
	dir    string
	server *child
	log    *os.File
}

// startPostgres makes a cluster in a temporary directory and returns when it serves. The error wraps errSkipped where
// PostgreSQL, or a user that may run it, is missing.
func startPostgres(ctx context.Context) (_ *postgres, err error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-postgres-")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	as, err := postgresUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := p.run(ctx, as, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8",
		"--locale", "C", "--no-sync"); err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-k", dir}
	for _, setting := range postgresSettings {
		args = append(args, "-c", setting)
	}
	p.server, err = p.start(as, filepath.Join(bin, "postgres"), args...)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx)
}

// dsn is how pgx connects, without the size of the pool.
func (p *postgres) dsn() string {
	return "host=" + p.dir + " user=bench dbname=postgres sslmode=disable"
}

// stop ends the server without a checkpoint, and removes its files.
func (p *postgres) stop() {
	if p.server != nil {
		p.server.stop(syscall.SIGQUIT)
	}
	if p.log != nil {
		p.log.Close()
	}
	os.RemoveAll(p.dir)
}

// start starts a program of PostgreSQL as a user.
func (p *postgres) start(as *syscall.Credential, program string, args ...string) (*child, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return startChild(cmd, syscall.SIGQUIT)
}

// run runs one that ends by itself.
func (p *postgres) run(ctx context.Context, as *syscall.Credential, program string, args ...string) error {
	c, err := p.start(as, program, args...)
	if err == nil {
		err = c.wait(ctx)
	}
	if err != nil {
		err = p.diagnose(fmt.Errorf("%s: %w", filepath.Base(program), err))
	}
	return err
}

// await returns when the server answers.
func (p *postgres) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.dsn())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.server.ended:
			return p.diagnose(fmt.Errorf("postgres ended at its start: %w", errors.Join(p.server.err, err)))
		case <-ctx.Done():
			return p.diagnose(fmt.Errorf("postgres does not serve: %w", err))
		case <-time.After(postgresPoll):
		}
	}
}

// diagnose adds the end of the log to an error.
func (p *postgres) diagnose(err error) error {
	const most = 2000
	text, _ := os.ReadFile(p.log.Name())
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-most):])
}

// postgresBin is the folder of the server's programs: that of the initdb in PATH, or else of the newest where Debian
// installs them.
func postgresBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // errs only for a bad pattern
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no PostgreSQL (initdb) here", errSkipped)
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return postgresVersion(a) - postgresVersion(b) })
	return filepath.Dir(newest), nil
}

func postgresVersion(initdb string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return version
}

// postgresUser gives the directory to the user that PostgreSQL is to run as, for it refuses root; nil is oneself.
func postgresUser(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if err := errors.Join(errUID, errGID, os.Chown(dir, uid, gid)); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%w: PostgreSQL does not run as root, and there is no user postgres or nobody", errSkipped)
}
