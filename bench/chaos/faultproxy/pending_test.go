package faultproxy

import "testing"

// A probe is a command whose reply is replaced. It is replaced at its place, or the count is wrong.
func TestWhatIsNoReply(t *testing.T) {
	t.Parallel()
	const (
		message = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
		push    = ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
	)
	for _, tc := range []struct {
		name, requests, replies, want string
	}{
		{"subscription in RESP2", cmds("SUBSCRIBE a b", "PING probe"),
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + message + "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n" + message + "*2\r\n$4\r\npong\r\n$5\r\nprobe\r\n",
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + message + "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n" + message + "-ERR\r\n"},
		{"subscription in RESP3", cmds("SUBSCRIBE a b", "PING probe"),
			">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + push + ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n" + push + "$5\r\nprobe\r\n",
			">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + push + ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n" + push + "-ERR\r\n"},
		{"a reply like a message in RESP3", cmds("SUBSCRIBE a", "LRANGE x 0 9", "PING probe"),
			">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + message + "$5\r\nprobe\r\n",
			">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + message + "-ERR\r\n"},
		{"a reply like a message without subscription", cmds("LRANGE x 0 9", "PING probe"),
			message + "$5\r\nprobe\r\n", message + "-ERR\r\n"},
		{"a reply like a confirmation without subscription", cmds("LRANGE x 0 9", "LRANGE x 0 9", "PING probe"),
			"*1\r\n$9\r\nsubscribe\r\n" + message + "$5\r\nprobe\r\n", "*1\r\n$9\r\nsubscribe\r\n" + message + "-ERR\r\n"},
		{"end of all subscriptions", cmds("SUBSCRIBE a b", "PSUBSCRIBE c*", "UNSUBSCRIBE", "PUNSUBSCRIBE", "LRANGE x 0 9", "PING probe"),
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n*3\r\n$10\r\npsubscribe\r\n$2\r\nc*\r\n:3\r\n" +
				"*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n" + message + "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n" +
				"*3\r\n$12\r\npunsubscribe\r\n$2\r\nc*\r\n:0\r\n" + message + "$5\r\nprobe\r\n",
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n*3\r\n$10\r\npsubscribe\r\n$2\r\nc*\r\n:3\r\n" +
				"*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n" + message + "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n" +
				"*3\r\n$12\r\npunsubscribe\r\n$2\r\nc*\r\n:0\r\n" + message + "-ERR\r\n"},
		{"end of no subscription", cmds("UNSUBSCRIBE", "PING probe"),
			"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n$5\r\nprobe\r\n", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n-ERR\r\n"},
		{"refused subscription", cmds("SSUBSCRIBE a b", "PING probe"),
			"-MOVED 1 x:1\r\n$5\r\nprobe\r\n", "-MOVED 1 x:1\r\n-ERR\r\n"},
		{"slot of a subscription moves", cmds("SSUBSCRIBE a", "PING probe"),
			"*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n$5\r\nprobe\r\n",
			"*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n-ERR\r\n"},
		{"invalidation", cmds("GET a", "PING probe"),
			">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\n1\r\n$5\r\nprobe\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\n1\r\n-ERR\r\n"},
		{"attribute", cmds("GET a", "PING probe"),
			"|1\r\n+ttl\r\n:3\r\n$1\r\n1\r\n|1\r\n+ttl\r\n:3\r\n$5\r\nprobe\r\n", "|1\r\n+ttl\r\n:3\r\n$1\r\n1\r\n|1\r\n+ttl\r\n:3\r\n-ERR\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newEnds(t)
			e.Lose(Loss{Reply: true, Match: named("PING probe"), Error: "ERR"})
			client, server := e.connect()
			client.send(tc.requests)
			server.gets(tc.requests)
			server.send(tc.replies)
			client.gets(tc.want)
		})
	}
}

func TestScanReply(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		"+OK\r\n", "-ERR no\r\n", ":-5\r\n", "_\r\n", "#t\r\n", ",3.5\r\n", "(123\r\n",
		"$0\r\n\r\n", "$-1\r\n", "$4\r\n\r\n\r\n\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n",
		"*0\r\n", "*-1\r\n", "*2\r\n*2\r\n:1\r\n$1\r\nx\r\n%1\r\n+k\r\n*0\r\n", "~1\r\n:1\r\n", "%0\r\n",
		">2\r\n+a\r\n+b\r\n", "*2\r\n|1\r\n+ttl\r\n*1\r\n:3\r\n:1\r\n:2\r\n",
	} {
		r, err := scanReply([]byte(whole + "+next\r\n"))
		if err != nil || r.size != len(whole) || r.kind != whole[0] {
			t.Errorf("%q: got %c of %d bytes, %v", whole, r.kind, r.size, err)
		}
		for n := range len(whole) {
			if r, err := scanReply([]byte(whole[:n])); err != nil || r.size != 0 {
				t.Errorf("%q: got %d bytes, %v; want none yet", whole[:n], r.size, err)
			}
		}
	}
	for _, broken := range []string{"\r\n", "hello\r\n", "$x\r\n", "$-2\r\n", "*\r\n", "$?\r\n", "$1\r\nab\r\n", "$99999999999\r\n"} {
		if r, err := scanReply([]byte(broken)); err == nil {
			t.Errorf("%q: got %d bytes, want an error", broken, r.size)
		}
	}
}
