package spec

import (
	"fmt"
	"strconv"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
)

// Template is a text with {{path}} placeholders, parsed once and rendered
// often. A placeholder is two opening braces, one or more letters, digits or
// the characters _ . [ ], and two closing braces; anything else, including a
// space between the braces, is plain text. There is no escape. The zero value
// is the empty text. A Template is safe for concurrent use.
type Template struct {
	Text  string
	Parts []templatePart
}

// templatePart is plain text followed by a placeholder (nil: none).
type templatePart struct {
	text string
	Path *Path
}

// ParseTemplate parses a text. Every text is a template.
func ParseTemplate(text string) Template {
	t := Template{Text: text}
	done := 0
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			break
		}
		open += at
		end := open + 2
		for end < len(text) && inPath(text[end]) {
			end++
		}
		if end == open+2 || !strings.HasPrefix(text[end:], "}}") {
			at = open + 1
			continue
		}
		p := parsePath(text[open+2 : end])
		t.Parts = append(t.Parts, templatePart{text[done:open], &p})
		at = end + 2
		done = at
	}
	if t.Parts != nil && done < len(text) {
		t.Parts = append(t.Parts, templatePart{text[done:], nil})
	}
	return t
}

func inPath(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '.' || c == '[' || c == ']'
}

// String returns the text as written.
func (t Template) String() string { return t.Text }

// Paths returns the texts between the braces in order, including repeated ones.
func (t Template) Paths() []string {
	var paths []string
	for _, p := range t.Parts {
		if p.Path != nil {
			paths = append(paths, p.Path.Text)
		}
	}
	return paths
}

// Keys returns the keys of the state that the template reads, each once, in
// order. Placeholders that never have a value are ignored.
func (t Template) Keys() []string {
	var keys []string
	seen := map[string]bool{}
	for _, p := range t.Parts {
		if p.Path != nil && !p.Path.Never && !seen[p.Path.Root] {
			seen[p.Path.Root] = true
			keys = append(keys, p.Path.Root)
		}
	}
	return keys
}

// Render replaces every placeholder by the text of its value: a string
// unchanged, any other value as compact JSON. Placeholders inside a value are
// not replaced. If placeholders have no value, the error is a [*MissingError].
func (t Template) Render(lookup func(key string) (any, bool)) (string, error) {
	return t.RenderStrictWithin(lookup, 0)
}

// RenderStrictWithin is Render, and fails with a [*ValueSizeError] if the text would be larger than limit bytes; 0 and
// less: no limit.
func (t Template) RenderStrictWithin(lookup func(key string) (any, bool), limit int) (string, error) {
	text, missing, err := t.renderLimited(lookup, limit)
	if missing != nil {
		return "", &MissingError{Paths: missing}
	}
	return text, err
}

// RenderLenient is Render, except that placeholders without a value are
// replaced by the empty text.
func (t Template) RenderLenient(lookup func(key string) (any, bool)) string {
	text, _ := t.RenderLenientWithin(lookup, 0) // without a limit it cannot fail
	return text
}

// RenderLenientWithin is RenderLenient, and fails with a [*ValueSizeError] if the text would be larger than limit
// bytes; 0 and less: no limit.
func (t Template) RenderLenientWithin(lookup func(key string) (any, bool), limit int) (string, error) {
	text, _, err := t.renderLimited(lookup, limit)
	return text, err
}

// Eval returns the typed value if the template is exactly one placeholder with
// optional white space around it, and otherwise the rendered text. If a value
// is missing, the error is a [*MissingError].
func (t Template) Eval(lookup func(key string) (any, bool)) (any, error) {
	p := t.SinglePath()
	if p == nil {
		return t.trimSpace().Render(lookup)
	}
	v, ok := p.resolveValue(lookup)
	if !ok {
		return nil, &MissingError{Paths: []string{p.Text}}
	}
	return v, nil
}

// SinglePath returns the path of a template that is one placeholder, or nil.
func (t Template) SinglePath() *Path {
	text := strings.TrimSpace(t.Text)
	for i, p := range t.Parts {
		if i == 0 && p.Path != nil && len(text) == len(p.Path.Text)+len("{{}}") {
			return p.Path
		}
	}
	return nil
}

func (t Template) trimSpace() Template {
	if text := strings.TrimSpace(t.Text); text != t.Text {
		return ParseTemplate(text)
	}
	return t
}

// ValueSizeError says that a rendered text would be larger than Limit.
type ValueSizeError struct {
	Limit int // in bytes
}

// Error returns the limit, and what to do.
func (e *ValueSizeError) Error() string {
	return fmt.Sprintf("the rendered text is larger than %s: shorten the values in it, or raise `max_value` in raddle's config.yaml", spokenSize(e.Limit))
}

// spokenSize formats a number of bytes for people.
func spokenSize(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + " MiB"
	}
	return strconv.Itoa(n) + " bytes"
}

// renderLimited replaces the placeholders. With a limit above 0 it fails before it
// creates a text that is longer.
func (t Template) renderLimited(lookup func(key string) (any, bool), limit int) (text string, missing []string, err error) {
	if t.Parts == nil {
		if limit > 0 && len(t.Text) > limit {
			return "", nil, &ValueSizeError{limit}
		}
		return t.Text, nil, nil
	}
	out := make([]byte, 0, 2*len(t.Text))
	for _, p := range t.Parts {
		out = append(out, p.text...)
		if p.Path == nil {
			continue
		}
		v, ok := p.Path.resolveValue(lookup)
		if !ok {
			missing = append(missing, p.Path.Text)
			continue
		}
		if s, ok := v.(string); ok && limit > 0 && len(s) > limit-len(out) {
			return "", missing, &ValueSizeError{limit}
		}
		if out = AppendValue(out, v); limit > 0 && len(out) > limit {
			return "", missing, &ValueSizeError{limit}
		}
	}
	if limit > 0 && len(out) > limit {
		return "", missing, &ValueSizeError{limit}
	}
	return string(out), missing, nil
}

// AppendValue appends a value in the form in which templates show it.
func AppendValue(dst []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return append(dst, s...)
	}
	out, err := jsonvalue.Append(dst, v)
	if err != nil {
		return append(dst, "null"...)
	}
	return out
}

// MissingError lists the placeholders of a strict template that have no value,
// in order of appearance, including repeated ones.
type MissingError struct {
	Paths []string
}

// Error returns the placeholders.
func (e *MissingError) Error() string {
	return "Template interpolation failed: '" + strings.Join(e.Paths, "', '") + "' not found in state"
}
