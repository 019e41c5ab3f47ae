package spec

import (
	"strconv"
	"strings"

	"raddle.dev/internal/jsonvalue"
)

// Path is a parsed placeholder: a key of the state and what to select in its
// value.
type Path struct {
	Text  string // as written between the braces
	Root  string
	steps []step
	Never bool // malformed: it has no value in any state
}

// step selects a member of an object or an element of an array.
type step struct {
	name  string
	index int // -1: select by name
}

// parsePath parses a text of letters, digits, underscores, dots and brackets.
// Every text is a path, though some never have a value: an empty key, a bracket
// that is not a closed [n], text after a closing bracket.
func parsePath(text string) Path {
	p := Path{Text: text}
	for i, segment := range strings.Split(text, ".") {
		name, indices, indexed := strings.Cut(segment, "[")
		if i == 0 {
			p.Root = name
			p.Never = name == ""
		} else if name != "" {
			p.steps = append(p.steps, step{name: name, index: -1})
		}
		if strings.Contains(name, "]") {
			p.Never = true
		}
		if indexed && !p.addIndices(indices) {
			p.Never = true
		}
	}
	if end := strings.IndexByte(p.Root, ']'); end >= 0 {
		p.Root = p.Root[:end]
	}
	return p
}

// addIndices parses the part of a segment after the first opening bracket.
func (p *Path) addIndices(text string) bool {
	for {
		digits, rest, closed := strings.Cut(text, "]")
		n, err := strconv.ParseUint(digits, 10, 63)
		if !closed || err != nil || n > maxIndex {
			return false
		}
		p.steps = append(p.steps, step{index: int(n)})
		if rest == "" {
			return true
		}
		if rest[0] != '[' {
			return false
		}
		text = rest[1:]
	}
}

// maxIndex is above the length of any array in memory.
const maxIndex = 1 << 30

// resolveValue returns the value of the path; ok is false if there is none.
func (p *Path) resolveValue(lookup func(key string) (any, bool)) (any, bool) {
	if p.Never {
		return nil, false
	}
	v, ok := lookup(p.Root)
	for i := 0; ok && i < len(p.steps); i++ {
		v, ok = p.steps[i].selectFrom(v)
	}
	return v, ok
}

func (s step) selectFrom(v any) (any, bool) {
	if s.index < 0 {
		o, _ := v.(*jsonvalue.Object)
		return o.Get(s.name)
	}
	if list, _ := v.([]any); s.index < len(list) {
		return list[s.index], true
	}
	return nil, false
}
