// Package measure says how well searches of a knowledge base find what they should: questions with known answers, and
// for each way to search recall, mean reciprocal rank and nDCG with intervals.
//
//	questions, err := measure.ReadQuestions("questions.jsonl", text)
//	results, err := measure.Compare(ctx, base, questions, settings, 10)
package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/rag"
)

// A Question is a question with what its search should find.
type Question struct {
	// Text is the query.
	Text string
	// Relevant are the documents that should be found: their paths, or the ends of these, from a slash on. It may be
	// empty if Answer is not.
	Relevant []string
	// Answer is a text that a passage must hold, with any white space between its words, to count; empty: every passage
	// of a relevant document counts.
	Answer string
}

// maxFaults is how many mistakes of a file are reported.
const maxFaults = 50

// ReadQuestions reads a file with one JSON object a line: {"question": "…", "relevant": ["leave.md"], "answer": "…"},
// of which relevant or answer may be missing. Blank lines are left out. The error names all mistakes, each in a line
// that begins with name:line:column.
func ReadQuestions(name string, text []byte) ([]Question, error) {
	var questions []Question
	var faults []error
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := lineReader{line: line}
		q := r.readQuestion()
		slices.SortStableFunc(r.faults, func(a, b fault) int { return a.offset - b.offset })
		for _, f := range r.faults {
			column := utf8.RuneCount(line[:f.offset]) + 1
			faults = append(faults, fmt.Errorf("%s:%d:%d: %s", name, n, column, f.message))
		}
		questions = append(questions, q)
	}
	if len(faults) > maxFaults {
		more := fmt.Errorf("and %d more", len(faults)-maxFaults)
		faults = append(faults[:maxFaults], more)
	}
	if len(faults) == 0 && len(questions) == 0 {
		return nil, fmt.Errorf(`%s: there are no questions: write one a line, as {"question": "…", "relevant": ["PATH"]}`, name)
	}
	return questions, errors.Join(faults...)
}

// A fault is a mistake in a line.
type fault struct {
	offset  int // in bytes
	message string
}

// A lineReader reads one line and collects its mistakes.
type lineReader struct {
	line   []byte
	faults []fault
}

func (r *lineReader) addFault(offset int, format string, args ...any) {
	r.faults = append(r.faults, fault{min(offset, len(r.line)), fmt.Sprintf(format, args...)})
}

// fieldNames are the fields of a question.
var fieldNames = []string{"question", "relevant", "answer"}

func (r *lineReader) readQuestion() (q Question) {
	start := len(r.line) - len(bytes.TrimLeft(r.line, " \t"))
	if r.line[start] != '{' {
		r.addFault(start, `expected an object, as {"question": "…", "relevant": ["PATH"]}`)
		return q
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(r.line, new(json.RawMessage)); errors.As(err, &syntax) {
		r.addFault(max(0, int(syntax.Offset)-1), "not JSON, one object a line: %v", err)
		return q
	}
	seen := map[string]bool{}
	r.eachField(func(name string, at, valueAt int, value json.RawMessage) {
		switch {
		case !slices.Contains(fieldNames, name):
			r.addFault(at, "unknown field %q: there are %s", name, strings.Join(fieldNames, ", "))
			return
		case seen[name]:
			r.addFault(at, "the field %q is there twice", name)
		}
		seen[name] = true
		r.readField(&q, name, valueAt, value)
	})
	if !seen["question"] {
		r.addFault(start, `the field "question" is missing`)
	}
	if !seen["relevant"] && !seen["answer"] {
		r.addFault(start, `"relevant" or "answer" is needed: which documents, or which words, should be found`)
	}
	return q
}

// eachField calls do for each member of the object that the line is, with the places of its name and its value.
func (r *lineReader) eachField(do func(name string, at, valueAt int, value json.RawMessage)) {
	d := json.NewDecoder(bytes.NewReader(r.line))
	_, _ = d.Token() // the line is valid JSON
	for d.More() {
		before := int(d.InputOffset())
		token, _ := d.Token()
		name, _ := token.(string)
		at := before + max(0, bytes.IndexByte(r.line[before:], '"'))
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return
		}
		do(name, at, int(d.InputOffset())-len(value), value)
	}
}

// readField reads the value of a field at a place.
func (r *lineReader) readField(q *Question, name string, at int, value json.RawMessage) {
	if name == "relevant" {
		if json.Unmarshal(value, &q.Relevant) != nil {
			r.addFault(at, `"relevant" must be a list of paths, as ["leave.md"]`)
			return
		}
		if len(q.Relevant) == 0 || slices.Contains(q.Relevant, "") {
			r.addFault(at, `"relevant" must name documents, and none of them may be empty`)
		}
		return
	}
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		r.addFault(at, "%q must be a text", name)
		return
	}
	if strings.TrimSpace(text) == "" {
		r.addFault(at, "%q is empty", name)
	}
	if name == "question" {
		q.Text = text
	} else {
		q.Answer = text
	}
}

// targets returns how many things a search should find.
func (q *Question) targets() int {
	if q.Answer != "" {
		return 1
	}
	return len(q.Relevant)
}

// findTarget returns which of the targets a hit is, from zero; -1: none.
func (q *Question) findTarget(h rag.Hit) int {
	document := slices.IndexFunc(q.Relevant, func(path string) bool { return endsWithPath(h.Path, path) })
	if q.Answer == "" {
		return document
	}
	if len(q.Relevant) > 0 && document < 0 || !strings.Contains(plainText(h.Text), plainText(q.Answer)) {
		return -1
	}
	return 0
}

// endsWithPath reports whether path is end, or ends with a slash and it.
func endsWithPath(path, end string) bool {
	path = filepath.ToSlash(path)
	end = strings.TrimPrefix(filepath.ToSlash(end), "./")
	return path == end || strings.HasSuffix(path, "/"+end)
}

// plainText returns a text with one space wherever it has white space.
func plainText(text string) string { return strings.Join(strings.Fields(text), " ") }
