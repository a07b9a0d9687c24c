package servers

import "github.com/dispatchkit/dispatch/bench/chaos/faultproxy"

// Node is one redis-server process behind a proxy. Its methods may be called from several goroutines.
type Node struct{}

// Addr is the proxy's address, which clients know.
func (n *Node) Addr() string { panic("not yet") }

// Direct is the server's own address.
func (n *Node) Direct() string { panic("not yet") }

// Proxy stands in front of the server. Promote changes which one that is.
func (n *Node) Proxy() *faultproxy.Proxy { panic("not yet") }

// Kill ends the process with SIGKILL, as a crash does. Files stay, and Restart finds them.
func (n *Node) Kill() { panic("not yet") }

// Pause stops the process with SIGSTOP: to its peers it is a hang or a network that drops packets. A paused replica falls
// behind. A paused node of a cluster is declared failed after about a second.
func (n *Node) Pause() error { panic("not yet") }

// Resume undoes Pause.
func (n *Node) Resume() error { panic("not yet") }

// Restart starts the process again at the same address, after an orderly end if it still runs, and returns when it
// serves. One that lost its place to a replica comes back as the replica.
func (n *Node) Restart() error { panic("not yet") }

// Command sends one command directly to the server over a connection of its own, and returns the reply as text: see
// redistest.Server.Command.
func (n *Node) Command(args ...string) (string, error) { panic("not yet") }
