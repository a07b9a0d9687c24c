package redisstore

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/dispatchkit/dispatch"
)

// The settings of a client that Open makes. A call ends with its context; the network gets its own bounds for calls
// whose context has none. The client does not repeat a call by itself, and that of a cluster for a moment only: the store does,
// as long as the context lasts, where it knows that it may.
const (
	dialTimeout   = 2 * time.Second
	ioTimeout     = 3 * time.Second
	maxRedirects  = 3           // and repetitions, with pauses of at most 0.14 s in all
	reloadCluster = time.Second // the client's own default leaves a killed master undiscovered for a minute
)

// Open makes a store with a client tuned for it, which Close closes. The URL names
//
//   - one server: redis://user:password@host:port/db, or rediss:// for TLS; when that server is a cluster node, the
//     whole cluster is used
//   - a cluster: redis://host:port,host:port,host:port
//   - a Sentinel set-up: redis://host:port,host:port?master_name=NAME, with the addresses of the sentinels
//
// Further parameters are those of go-redis's ParseURL, ParseClusterURL and ParseFailoverURL. Errors: *dispatch.FieldError
// for the URL and the options; otherwise what the server said. An error never holds the password.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	client, err := openClient(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	s, err := newStore(ctx, client, o, "")
	if err != nil {
		client.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

func openClient(ctx context.Context, rawURL string) (redis.UniversalClient, error) {
	normal, several, err := splitHosts(rawURL)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(normal, "master_name="):
		o, err := redis.ParseFailoverURL(normal)
		if err != nil {
			return nil, badURL("is no Sentinel URL")
		}
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.DisableIdentity = true, -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, ioTimeout, ioTimeout
		return redis.NewFailoverClient(o), nil
	case several:
		return openCluster(normal)
	}
	o, err := redis.ParseURL(normal)
	if err != nil {
		return nil, badURL("has a database that is no number, or a parameter that does not exist")
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.DisableIdentity = true, -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, ioTimeout, ioTimeout
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(o)
	if isClusterNode(ctx, client) {
		client.Close()
		return openCluster(normal)
	}
	return client, nil
}

func openCluster(normal string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(normal)
	if err != nil {
		return nil, badURL("is no cluster URL")
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.DisableIdentity = true, -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, ioTimeout, ioTimeout
	o.ClusterStateReloadInterval = reloadCluster
	o.MaxRedirects = maxRedirects
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

// isClusterNode asks a server. One that does not answer is judged by what the store finds next.
func isClusterNode(ctx context.Context, client *redis.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var info string
	probe := &Store{}
	err := probe.persist(ctx, evenUncertain, func(ctx context.Context) (err error) {
		info, err = client.Info(ctx, "cluster").Result()
		return err
	})
	return err == nil && infoField(info, "cluster_enabled") == "1"
}

// splitHosts turns comma-separated hosts into the form that go-redis reads: the first in the URL and the rest as addr
// parameters.
func splitHosts(raw string) (normal string, several bool, err error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return "", false, badURL("is not of the form redis://host:port/db or rediss://host:port/db")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	all := strings.Split(hosts, ",")
	for i, h := range all {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h += ":6379"
		}
		if host, _, err := net.SplitHostPort(h); err != nil || host == "" {
			return "", false, badURL(fmt.Sprintf("host %d is empty or not host:port", i+1))
		}
		all[i] = h
	}
	u, err := url.Parse(scheme + "://" + user + all[0] + tail)
	if err != nil {
		return "", false, badURL("cannot be parsed")
	}
	query := u.Query()
	for _, h := range all[1:] {
		query.Add("addr", h)
	}
	u.RawQuery = query.Encode()
	return u.String(), len(all) > 1, nil
}

// badURL never quotes the URL: it may hold a password.
func badURL(problem string) error {
	return &dispatch.FieldError{Field: "url", Problem: problem}
}
