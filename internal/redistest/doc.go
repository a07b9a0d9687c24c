// Package redistest starts real Redis servers for tests, benchmarks and examples.
//
// A simulated Redis proves the logic of a script. Only a real one proves its number formatting, its TTLs, that every
// key is declared in KEYS, and what happens when the server dies half-way. So the conformance suite runs on four
// back ends, three of which come from here:
//
//	Single   one plain server
//	Strict   a cluster of one node that owns all slots: refuses keys of two slots in one script
//	Masters  three masters: adds MOVED, "non local key" and NOSCRIPT per node
//
// Tests call [Start], [StartStrictCluster], [StartMasters], or [Shared] when a server of their own is not needed.
// Everything else calls [Launch] and [Server.Stop].
//
// # Lifetime of the servers
//
// A server never outlives the process that started it. Stop and t.Cleanup are the usual end; when the process panics,
// calls os.Exit or is killed by SIGKILL, the kernel ends the server (Linux: PR_SET_PDEATHSIG). That signal is bound to
// the *thread* that forked, not to the process, and the Go runtime destroys a thread when a goroutine that locked it
// returns. Each server therefore has one goroutine that locks its thread, forks, and stays in Wait until the server is
// gone: the thread lives exactly as long as its child, and the child is always reaped. See child.go. There, too, a server is
// in a process group of its own, so that Ctrl-C ends it only by way of the process that started it.
//
// # What this does not promise
//
// Kill is the crash of a process, not of a machine: what Redis has written survives in the page cache, so no test here
// says anything about power failure. Ports come from below the ephemeral range and are checked, not reserved: a
// collision at the first start is tried again, one during Restart is an error. On systems other than Linux a killed test
// binary leaves its servers behind, and everywhere it leaves its temporary directories. Windows is not supported.
// Clusters need Redis 7.
package redistest
