package faultproxy

// Request is one command as a client sent it.
type Request struct {
	// Name is the command in capitals, without its subcommand.
	Name string

	// Args are all parts, the name as it was sent among them. They are valid during the call that they are given to.
	Args [][]byte

	// SHA is the hash of the script, in lower case, of EVALSHA and of EVAL alike: a client that is told NOSCRIPT sends
	// the same script again by EVAL. It is empty for other commands.
	SHA string
}
