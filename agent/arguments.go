package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"raddle.dev/internal/base/toolschema"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
)

// CheckArguments returns why the arguments of a call do not match the schema of its tool, or nil. A tool that checks
// arguments itself decides; otherwise a schema that cannot be used, for example because it refers to another document,
// checks nothing: the tool itself decides.
func CheckArguments(t tool.Tool, args json.RawMessage) error {
	if t.Check != nil {
		if err := t.Check(args); err != nil {
			return fmt.Errorf("the arguments of %s are wrong: %w", t.Name, err)
		}
		return nil
	}
	if err := toolschema.CheckArguments(t.Schema, args); err != nil {
		return fmt.Errorf("the arguments of %s do not match its schema: %w", t.Name, err)
	}
	return nil
}

// argsObject returns the arguments of a call as a JSON object. Empty arguments are
// an empty object, and a JSON string may contain an object.
func argsObject(args json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(args, &text) == nil {
		args = json.RawMessage(text)
		if object, ok := repairObject(text); ok {
			args = object
		}
	}
	var o map[string]json.RawMessage
	switch {
	case len(args) == 0:
		return json.RawMessage("{}"), true
	case json.Unmarshal(args, &o) != nil || o == nil:
		return nil, false
	}
	return args, true
}

// repairObject returns the JSON object that a model meant by a text that is almost one: inside a fence, with text after
// it, with a comma after the last member, with texts in single quotes, or with line breaks inside texts. It returns
// false for any other text, and if the text may mean more than one object.
func repairObject(text string) (json.RawMessage, bool) {
	text = normalizeJSON(wording.StripFence(text))
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(text))
	var object json.RawMessage
	if dec.Decode(&object) != nil {
		return nil, false
	}
	rest, err := io.ReadAll(io.MultiReader(dec.Buffered()))
	if err != nil || strings.ContainsAny(string(rest), "{}[]") {
		return nil, false
	}
	return object, true
}

// normalizeJSON writes texts in double quotes, line breaks in texts as escapes, and leaves out commas before a closing
// bracket.
func normalizeJSON(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '"', '\'':
			i = normalizeText(&b, s, i)
		case ',':
			if after := strings.TrimLeft(s[i+1:], " \t\r\n"); after == "" || after[0] != '}' && after[0] != ']' {
				b.WriteByte(',')
			}
			i++
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}

// normalizeText writes the quoted text that begins at start in double quotes, and returns where it ends.
func normalizeText(b *strings.Builder, s string, start int) int {
	quote := s[start]
	b.WriteByte('"')
	for i := start + 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			b.WriteByte('"')
			return i + 1
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\'' { // JSON has no escape for it
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case c == '"':
			b.WriteString(`\"`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(c)
		}
	}
	return len(s)
}
