package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph/internal/value"
)

// NamedBy is the method of graph.Question.
func (q *Question) NamedBy(word string) (distance int, ok bool) {
	path, _, _ := strings.Cut(q.ID, "#")
	if word == q.ID || word == path {
		return 0, word != ""
	}
	words, parts := strings.Split(word, "/"), strings.Split(path, "/")
	for n := len(parts); n >= len(words); n-- {
		if slices.EqualFunc(words, parts[n-len(words):n], isNamed) {
			return 1 + len(parts) - n, true
		}
	}
	return 0, false
}

// isNamed reports whether a word names a part of a path.
func isNamed(word, part string) bool {
	plain, _, _ := strings.Cut(part, "[")
	return word != "" && (word == part || word == plain)
}

// DescribeMismatch returns why an answer does not fit a question, or "".
func (q *Question) DescribeMismatch(answer []byte, refused string) string {
	if refused != "" {
		return ""
	}
	switch got := value.JSONTypeOf(answer); {
	case q.Integer != "" && got == "number" && isInteger(string(answer), q.Integer):
	case q.Integer != "":
		return fmt.Sprintf("it must be an integer (%s), not %s", q.Integer, answer)
	case q.Type != "" && got != q.Type:
		return fmt.Sprintf("it must be %s, not %s", withArticle(q.Type), withArticle(got))
	}
	if q.Free || q.Type != "string" {
		return ""
	}
	var s string
	if json.Unmarshal(answer, &s) == nil && slices.Contains(q.Options, s) {
		return ""
	}
	return "it must be one of " + strings.Join(q.Options, ", ")
}

// isInteger reports whether a JSON number is a value of a Go type of integers.
func isInteger(number, typ string) bool {
	var err error
	if bits := value.IntegerSizes[typ]; typ[0] == 'u' {
		_, err = strconv.ParseUint(number, 10, bits)
	} else {
		_, err = strconv.ParseInt(number, 10, bits)
	}
	return err == nil
}

// withArticle puts an article before the name of a type.
func withArticle(typ string) string {
	switch typ {
	case "array", "object":
		return "an " + typ
	case "null", "nothing":
		return typ
	}
	return "a " + typ
}

// AnswerOfTime returns what time answers to a question that is due: null, or for one with a deadline a refusal. timer
// says that the question is a timer.
func (q *Question) AnswerOfTime(timer bool) (answer []byte, refused string) {
	if timer {
		return []byte("null"), ""
	}
	return nil, "no one has answered before the deadline, " + q.Due.Format(time.RFC3339)
}
