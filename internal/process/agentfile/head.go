package agentfile

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/skill"
)

// A Markdown is a file that may begin with a head of YAML between two lines "---".
type Markdown struct {
	Head map[string]any // nil: there is none
	Body string         // without white space around it
}

// ReadMarkdown reads a text. It never fails: a head that is not YAML, such as one whose description has a colon, is
// read line by line, and what is not KEY: VALUE in it is left out.
func ReadMarkdown(text []byte) Markdown {
	head, body := skill.SplitHead(string(text))
	m := Markdown{Body: strings.TrimSpace(body)}
	if strings.TrimSpace(head) == "" {
		return m
	}
	if yaml.Unmarshal([]byte(head), &m.Head) == nil && m.Head != nil {
		return m
	}
	m.Head = map[string]any{}
	for line := range strings.Lines(head) {
		key, value, ok := strings.Cut(line, ":")
		if ok && key != "" && !strings.ContainsAny(key, " \t#") {
			m.Head[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return m
}

// FindText returns a text of the head on one line, "" if it has none.
func (m Markdown) FindText(key string) string {
	text, _ := m.Head[key].(string)
	return strings.Join(strings.Fields(text), " ")
}

// ListNames returns the names in a field: a list, or a text with commas. ok is false if the field is not set.
func (m Markdown) ListNames(key string) (names []string, ok bool) {
	var words []string
	switch v := m.Head[key].(type) {
	case string:
		words = strings.Split(v, ",")
	case []any:
		for _, each := range v {
			if word, isText := each.(string); isText {
				words = append(words, word)
			}
		}
	default:
		return nil, false
	}
	for _, word := range words {
		if word = strings.TrimSpace(word); word != "" {
			names = append(names, word)
		}
	}
	return names, true
}
