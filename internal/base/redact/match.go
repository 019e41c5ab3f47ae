package redact

// A matcher finds many patterns in one pass over a text (Aho-Corasick). The
// time is linear in the length of the text, whatever the patterns are.
type matcher struct {
	root  [256]int32
	nodes []node
}

// A node is a prefix of a pattern.
type node struct {
	child, sibling int32 // 0: none
	fail           int32 // the longest other prefix that this one ends with
	depth          int32 // length of the prefix
	match          int32 // length of the longest pattern that this prefix ends with; 0: none
	b              byte  // last byte of the prefix
}

// newMatcher returns a matcher of the patterns, which are not empty.
func newMatcher(patterns []string) *matcher {
	m := &matcher{nodes: make([]node, 1)}
	for _, p := range patterns {
		m.insertPattern(p)
	}
	m.linkFailures()
	return m
}

func (m *matcher) insertPattern(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		next := m.findChild(at, pattern[i])
		if next == 0 {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{sibling: m.nodes[at].child, depth: m.nodes[at].depth + 1, b: pattern[i]})
			m.nodes[at].child = next
			if at == 0 {
				m.root[pattern[i]] = next
			}
		}
		at = next
	}
	m.nodes[at].match = m.nodes[at].depth
}

// findChild returns the child of a node for a byte; 0: there is none.
func (m *matcher) findChild(at int32, b byte) int32 {
	if at == 0 {
		return m.root[b]
	}
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// linkFailures sets the node where the search continues after a mismatch, shorter prefixes first.
func (m *matcher) linkFailures() {
	var queue []int32
	for c := m.nodes[0].child; c != 0; c = m.nodes[c].sibling {
		queue = append(queue, c)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
			fail := m.nextState(m.nodes[at].fail, m.nodes[c].b)
			m.nodes[c].fail = fail
			if m.nodes[c].match == 0 {
				m.nodes[c].match = m.nodes[fail].match
			}
			queue = append(queue, c)
		}
	}
}

// nextState returns the longest prefix of a pattern that ends with the byte.
func (m *matcher) nextState(at int32, b byte) int32 {
	for {
		if at == 0 {
			return m.root[b]
		}
		if c := m.findChild(at, b); c != 0 {
			return c
		}
		at = m.nodes[at].fail
	}
}

// A span is the part of a text from one byte offset to another.
type span struct{ from, to int }

// findPatterns returns where the text holds patterns, as spans that do not overlap, in
// order. pending is the offset of the longest suffix of the last tail bytes that
// may become a pattern when other text follows.
func (m *matcher) findPatterns(text string, tail int) (found []span, pending int) {
	at := int32(0)
	for i := range len(text) {
		if i == tail {
			pending = tail - int(m.nodes[at].depth)
		}
		if at == 0 {
			at = m.root[text[i]]
		} else {
			at = m.nextState(at, text[i])
		}
		if n := int(m.nodes[at].match); n > 0 {
			found = addSpan(found, span{i + 1 - n, i + 1})
		}
	}
	if tail == len(text) {
		pending = tail - int(m.nodes[at].depth)
	}
	return found, pending
}

// addSpan adds a span that ends last, and merges it with those that it overlaps.
func addSpan(list []span, s span) []span {
	for len(list) > 0 && list[len(list)-1].to > s.from {
		s.from = min(s.from, list[len(list)-1].from)
		s.to = max(s.to, list[len(list)-1].to)
		list = list[:len(list)-1]
	}
	return append(list, s)
}
