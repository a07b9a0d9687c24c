package faultproxy

// reply is one whole answer, or something else that a server sent in between.
type reply struct {
	kind byte // its first byte: '+', '*', '>' and so on
	size int  // in bytes; 0 while it is not whole

	// words are the first two elements of an array or a push message, where they are strings: what kind of message it is,
	// and of which channel.
	words [2][]byte
}

// scanReply measures the first reply in b, whatever is nested in it.
func scanReply(b []byte) (reply, error) {
	var (
		r    reply
		size int
	)
	for element, missing := 0, 1; missing > 0; element++ {
		kind, value, children, n, err := scanElement(b[size:])
		if n == 0 || err != nil {
			return reply{}, err
		}
		size += n
		missing += children - 1
		switch {
		case element == 0:
			r.kind = kind
		case kind == '|': // stands before an element, and is none
			missing++
		case element <= len(r.words) && (r.kind == '*' || r.kind == '>'):
			r.words[element-1] = value
		}
	}
	r.size = size
	return r, nil
}

// scanElement measures one element without its children, and says how many they are. value is nil if it is no string.
func scanElement(b []byte) (kind byte, value []byte, children, n int, err error) {
	head, n, err := line(b)
	if n == 0 {
		return 0, nil, 0, 0, err
	}
	if len(head) == 0 {
		return 0, nil, 0, 0, errNotRESP
	}
	kind, text := head[0], head[1:]
	switch kind {
	case '+':
		return kind, text, 0, n, nil
	case '-', ':', ',', '#', '(', '_':
		return kind, nil, 0, n, nil
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return 0, nil, 0, 0, errNotRESP
	}
	size, err := count(text)
	switch {
	case err != nil:
		return 0, nil, 0, 0, err
	case size < 0:
		return kind, nil, 0, n, nil
	case kind == '%' || kind == '|':
		return kind, nil, 2 * size, n, nil
	case kind == '*' || kind == '~' || kind == '>':
		return kind, nil, size, n, nil
	}
	value, m, err := bulk(b[n:], size)
	if m == 0 {
		return 0, nil, 0, 0, err
	}
	return kind, value, 0, n + m, nil
}
