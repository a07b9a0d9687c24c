// Bench measures Dispatch, its peers and the bare limits side by side.
package main

func main() {}
