// Package e2e tests Dispatch as its users run it: several processes, a real Redis, and faults between them. It holds
// tests only.
//
// The test binary starts itself again as the worker processes (child_test.go). They print one line per event, before
// anything follows from it, so that what a process did is known even when SIGKILL ends it; the test reads the lines into
// a ledger and judges. Processes are ended by their ID, by the kernel when the test binary dies, and by the end of their
// standard input.
//
// Times that are measured are logged. What is asserted is what must hold on any machine: nothing lost, nothing stuck,
// nothing early, and no loop that burns.
package e2e
