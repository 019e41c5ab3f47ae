package spec

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
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

// Scopes are the names before which a placeholder reads a value that outlives runs, unless the state has a key of
// that name: {{user.key}} a value of the user, and {{app.key}} one of the agent for all its users.
var Scopes = []string{"user", "app"}

// A Scope is what a lookup returns for the name of a scope: the values that outlive runs. A value that it lacks is the
// empty text in every template, and so is each part of it.
type Scope struct{ Values *jsonvalue.Object }

// ScopedKey returns the scope and the key of a path such as user.key; "" if it is not one.
func (p *Path) ScopedKey() (scope, key string) {
	if p.Never || len(p.steps) == 0 || p.steps[0].index >= 0 || !slices.Contains(Scopes, p.Root) {
		return "", ""
	}
	return p.Root, p.steps[0].name
}

// Steps returns what the path selects after its key: the name of a member with the index -1, or the index of an item.
func (p *Path) Steps() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, s := range p.steps {
			if !yield(s.name, s.index) {
				return
			}
		}
	}
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
	scope, scoped := v.(Scope)
	if scoped && len(p.steps) == 0 {
		return nil, false
	}
	for i := 0; ok && i < len(p.steps); i++ {
		if scoped && i == 0 {
			if v, ok = p.steps[0].selectFrom(scope.Values); !ok {
				return "", true
			}
			continue
		}
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
