//go:build !linux

package main

import "syscall"

// endWithParent has no counterpart here: a child survives a bench that is killed.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}
