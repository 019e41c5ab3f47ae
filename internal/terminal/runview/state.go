package runview

import (
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/story"
)

// maxStateLines is how many lines of a value of the state are shown, and maxStateText how many characters of a line.
const (
	maxStateLines = 3
	maxStateText  = 160
)

// FormatState returns a state as YAML, in the order of its keys, without empty values. If whole is not set, it cuts each
// value after some lines, and of a conversation it leaves out what raddle keeps there itself.
func FormatState(state json.RawMessage, talks, whole bool) string {
	v, err := jsonvalue.Parse(state)
	o, ok := v.(*jsonvalue.Object)
	if err != nil || !ok {
		return string(state)
	}
	var b strings.Builder
	for key, value := range o.All() {
		if isEmptyValue(value) || !whole && talks && key != agent.Todo.Name() {
			continue
		}
		lines := yamlLines(term.CleanText(key), value)
		if more := len(lines) - maxStateLines; !whole && more > 1 {
			lines = append(lines[:maxStateLines], fmt.Sprintf("  … %s: --state", wording.FormatCount(more, "more line")))
		}
		for _, l := range lines {
			if !whole {
				l = wording.CutText(l, maxStateText, "…")
			}
			b.WriteString(strings.TrimRight(term.CleanText(l), " ") + "\n")
		}
	}
	return b.String()
}

// isEmptyValue reports whether a value of a state says nothing.
func isEmptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case *jsonvalue.Object:
		return v.Len() == 0
	}
	return false
}

// yamlLines returns a member of a mapping as lines of YAML.
func yamlLines(key string, v any) []string {
	switch v := v.(type) {
	case *jsonvalue.Object:
		if v.Len() == 0 {
			return []string{key + ": {}"}
		}
		lines := []string{key + ":"}
		for k, member := range v.All() {
			for _, l := range yamlLines(k, member) {
				lines = append(lines, "  "+l)
			}
		}
		return lines
	case []any:
		if len(v) == 0 {
			return []string{key + ": []"}
		}
		lines := []string{key + ":"}
		for _, item := range v {
			for i, l := range yamlItem(item) {
				if i == 0 {
					l = "- " + l
				} else {
					l = "  " + l
				}
				lines = append(lines, l)
			}
		}
		return lines
	case string:
		if strings.Contains(strings.TrimRight(v, "\n"), "\n") {
			lines := []string{key + ": |"}
			for l := range strings.SplitSeq(strings.TrimRight(v, "\n"), "\n") {
				lines = append(lines, "  "+l)
			}
			return lines
		}
	}
	return []string{key + ": " + story.ListValueLines([]byte(jsonvalue.Compact(v)))[0]}
}

// yamlItem returns an item of a list as lines of YAML, without its dash.
func yamlItem(v any) []string {
	switch v := v.(type) {
	case *jsonvalue.Object:
		var lines []string
		for k, member := range v.All() {
			lines = append(lines, yamlLines(k, member)...)
		}
		if len(lines) > 0 {
			return lines
		}
	case []any:
		if len(v) > 0 {
			return yamlLines("", v)[1:]
		}
	}
	lines := yamlLines("", v)
	lines[0] = strings.TrimPrefix(lines[0], ": ")
	return lines
}
