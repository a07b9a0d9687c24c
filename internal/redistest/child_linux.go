package redistest

import "syscall"

// ParentDeath are attributes with which the kernel kills a child when the thread that forked it dies. So who starts the child locks
// its thread and stays there until the child is gone. The child is in a process group of its own: Ctrl-C in a terminal goes to the
// whole group of the parent, and when a child ends is the parent's to decide.
func ParentDeath() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
