// Package lint holds the rules of this repository that no compiler knows, as tests that `go test ./...` runs.
//
//	imports.go    which package may import which: the layout, as a table
//	closure_test  what a program that imports only the root links
//	godoc.go      exported names are documented; package docs say what they do not promise
//	clock.go      no wall clock outside tests, examples and benchmarks
//	size.go       no file outgrows its reader
//	lua.go …      script headers tell the truth, and scripts stay inside what every Redis and miniredis can run
//	gomod.go      the root go.mod can be used as a dependency
//
// Each rule is a function from the source tree to its findings. The tree is an fs.FS, so a rule is tested on a planted
// violation as easily as it runs on the repository: a rule that has never been red proves nothing.
//
// Files are read in this process, not by a go list of each package. So all build tags and nested modules are seen, code
// that does not compile yet is judged too, and the test cache notices every change.
//
// # What this does not promise
//
// The Lua rules read text, not syntax: they catch the usual slip, not somebody who wants to get round them. The strict
// cluster of the conformance suite is what proves that no undeclared key is touched.
package lint
