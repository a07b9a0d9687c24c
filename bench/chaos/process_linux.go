package main

import "syscall"

// parentDeath asks the kernel to kill the child when the thread that forked it dies; Process.keep keeps that thread alive.
func parentDeath() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
