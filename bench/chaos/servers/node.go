package servers

import (
	"net"
	"sync"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// Node is one redis-server process behind a proxy. Its methods may be called from several goroutines.
type Node struct {
	server   *redistest.Server
	returned func(*Node) error // what a node does that comes back; nil: nothing

	mu    sync.Mutex
	proxy *faultproxy.Proxy
	down  bool // killed or paused
}

// startNode starts a server and the proxy in front of it. A member of a cluster announces the proxy's port.
func startNode(cfg Config, member bool) (*Node, error) {
	proxy, err := faultproxy.Listen("")
	if err != nil {
		return nil, err
	}
	// A replica that waits for others that may come, as is the default, cannot be promoted for five seconds.
	args := []string{"--repl-diskless-sync-delay", "0"}
	if member {
		host, port := split(proxy.Addr())
		args = append(args, "--cluster-announce-ip", host, "--cluster-announce-port", port)
	}
	server, err := redistest.Launch(redistest.Config{
		AOF: cfg.AOF, Args: append(args, cfg.Args...), LogDir: cfg.LogDir, Member: member,
	})
	if err != nil {
		proxy.Close()
		return nil, err
	}
	proxy.SetTarget(server.Addr())
	return &Node{server: server, proxy: proxy}, nil
}

// split parts an address, which is one of ours and well formed.
func split(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

// Addr is the proxy's address, which clients know.
func (n *Node) Addr() string { return n.Proxy().Addr() }

// Direct is the server's own address.
func (n *Node) Direct() string { return n.server.Addr() }

// Proxy stands in front of the server. Promote changes which one that is.
func (n *Node) Proxy() *faultproxy.Proxy {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proxy
}

// stand puts another proxy in front of the server. Connections that pass it elsewhere are cut.
func (n *Node) stand(proxy *faultproxy.Proxy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proxy = proxy
	proxy.SetTarget(n.server.Addr())
	proxy.Cut()
}

// Kill ends the process with SIGKILL, as a crash does. Files stay, and Restart finds them.
func (n *Node) Kill() {
	n.setDown(true)
	n.server.Kill()
}

// Pause stops the process with SIGSTOP: to its peers it is a hang or a network that drops packets. A paused node of a
// cluster is declared failed after about a second. A paused replica falls behind, except that what fits into the buffers of
// its connection, up to some megabytes, arrives when it goes on: more than that must be written for a loss.
func (n *Node) Pause() error {
	n.setDown(true)
	return n.server.Pause()
}

// Resume undoes Pause. A primary that lost its place meanwhile becomes the replica at once, and loses what it has more.
func (n *Node) Resume() error {
	if err := n.server.Resume(); err != nil {
		return err
	}
	return n.back()
}

// Restart starts the process again at the same address, after an orderly end if it still runs, and returns when it
// serves. One that lost its place to a replica comes back as the replica, in a cluster as soon as it has heard of it.
func (n *Node) Restart() error {
	if err := n.server.Restart(); err != nil {
		return err
	}
	return n.back()
}

func (n *Node) back() error {
	n.setDown(false)
	if n.returned == nil {
		return nil
	}
	return n.returned(n)
}

// Command sends one command directly to the server over a connection of its own, and returns the reply as text: see
// redistest.Server.Command.
func (n *Node) Command(args ...string) (string, error) { return n.server.Command(args...) }

// running says whether the node has been neither killed nor paused.
func (n *Node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.down
}

func (n *Node) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// close ends server and proxy.
func (n *Node) close() {
	n.server.Stop()
	n.Proxy().Close()
}
