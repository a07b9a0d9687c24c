// Chaos runs real worker processes against real redis-servers, breaks both, and has an independent checker look for what went
// wrong.
//
//	go run ./chaos -all -quick              the short forms of all scenarios, of about 10 s each
//	go run ./chaos -all -seed 7             the long forms, with the faults of seed 7
//	go run ./chaos -run '^kill-nine$'       those whose names match
//	go run ./chaos -all -quick -json        a line of JSON per scenario
//	go run ./chaos -planted -quick          bugs that are planted one by one, each of which a scenario must find
//	go run ./chaos -list                    the names of scenarios and what they hold; with -planted the bugs
//
// A [Scenario] says what is done and what must hold. It works on a [Run]: servers behind proxies, worker processes that are this
// program started again, a client, and a ledger to which all of them append what they ask, get and do. When the scenario is over,
// package audit reads the ledger and the raw keys in Redis, and decides; it shares no code with the product. The exit code is 1
// when any row fails, when something could not be tried, and when a signal (SIGINT, SIGTERM, SIGHUP) has ended the program; it is 2 when
// there is nothing to run, or no Redis to run it on. What a failed run left, with the line that replays it, stays in the directory
// of -keep.
//
// # What this does not promise
//
// A seed repeats the faults and the load, not the instants at which processes of an operating system run: a rare failure may need
// several runs to come back. Times are those of one machine, shared with whatever else runs there. Nothing here says anything
// about a machine that loses its power.
package main
