//go:build !linux

package main

import "syscall"

// parentDeath changes nothing: a child whose input has ended ends itself.
func parentDeath() *syscall.SysProcAttr { return nil }
