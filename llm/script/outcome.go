package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/llm"
)

// outcomeTexts returns the texts of all outcomes of calls in a conversation, in
// order.
func outcomeTexts(r llm.Request) (texts []string) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if o, ok := p.(llm.ToolResult); ok {
				texts = append(texts, llm.Message{Parts: o.Content}.Text())
			}
		}
	}
	return texts
}

// lastOutcomeText returns the text of the outcomes after the last reply.
func lastOutcomeText(r llm.Request) string {
	from := len(r.Messages)
	for from > 0 && r.Messages[from-1].Role != llm.RoleAssistant {
		from--
	}
	return strings.Join(outcomeTexts(llm.Request{Messages: r.Messages[from:]}), "\n")
}

// place matches the placeholder of a value of an outcome.
var place = pattern.CompileLater(`\{\{outcome\.(-?[0-9]+)((?:\.[A-Za-z0-9_-]+)*)\}\}`)

// fillValues replaces the placeholders of a reply with values of the conversation's
// outcomes.
func (e *entry) fillValues(r llm.Request) (*entry, error) {
	if !e.fills {
		return e, nil
	}
	filled := *e
	all := outcomeTexts(r)
	var failed error
	put := func(text string, escape func(string) string) string {
		return place().ReplaceAllStringFunc(text, func(found string) string {
			parts := place().FindStringSubmatch(found)
			value, err := valueAt(all, parts[1], strings.TrimPrefix(parts[2], "."))
			if err != nil && failed == nil {
				failed = fmt.Errorf("%s of the reply in line %d: %w", found, e.line, err)
			}
			return escape(value)
		})
	}
	filled.text = put(e.text, func(s string) string { return s })
	filled.calls = make([]llm.ToolCall, len(e.calls))
	for i, c := range e.calls {
		c.Args = json.RawMessage(put(string(c.Args), inString))
		filled.calls[i] = c
	}
	return &filled, failed
}

// hasPlaceholders reports whether a reply has placeholders.
func (e *entry) hasPlaceholders() bool {
	return place().MatchString(e.text) || slices.ContainsFunc(e.calls, func(c llm.ToolCall) bool { return place().Match(c.Args) })
}

// inString returns a text as it is written between the quotes of a JSON string.
func inString(s string) string {
	b, _ := json.Marshal(s) // cannot fail for a string
	return string(b[1 : len(b)-1])
}

// valueAt returns a value of an outcome. number is the position of the outcome:
// 1 is the first, -1 the last.
func valueAt(all []string, number, path string) (string, error) {
	n, err := strconv.Atoi(number)
	if n < 0 {
		n += len(all) + 1
	}
	if err != nil || n < 1 || n > len(all) {
		return "", fmt.Errorf("the conversation has %d outcomes", len(all))
	}
	var value any = all[n-1]
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		next, ok := lookupMember(value, name)
		if !ok {
			return "", fmt.Errorf("there is no %q in %s", name, truncateLine(formatValue(value), 120))
		}
		value = next
	}
	return formatValue(value), nil
}

// lookupMember returns a member of an object or an element of a list. The object or
// list may also be a text that is JSON.
func lookupMember(value any, name string) (any, bool) {
	if text, ok := value.(string); ok {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&value) != nil {
			return nil, false
		}
	}
	switch v := value.(type) {
	case map[string]any:
		found, ok := v[name]
		return found, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// formatValue returns a value as text: a text itself, other values as JSON.
func formatValue(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(b)
}
