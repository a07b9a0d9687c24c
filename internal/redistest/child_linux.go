package redistest

import "syscall"

// ParentDeath are attributes with which the kernel kills a child when the thread that forked it dies. So who starts the child locks
// its thread and stays there until the child is gone.
func ParentDeath() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
