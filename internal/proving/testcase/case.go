// Package testcase is the format of *.test.yaml: test cases of an agent, next to its graph.yaml or config.yaml. [Read]
// reads a file strictly, with every problem and its place; [Encode] writes cases as a file; a [Matcher] and a
// [Sequence] compare what was expected with what a run did; [Replace] writes other expected values into a file and
// keeps the rest of it. The package runs nothing.
package testcase

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm/script"
	"raddle.dev/rag"
)

// Suffix is the end of the names of files with test cases.
const Suffix = ".test.yaml"

// File is one file of test cases.
type File struct {
	Path  string
	Text  []byte
	Cases []*Case // in the order of the file
}

// Case is one run of an agent, what answers for the parts of it that are not real, and what is expected of it.
type Case struct {
	Name string
	Pos  strictyaml.Pos
	Setup
	Faults []Fault
	Expect Expect
}

// Setup is what a case may share with the other cases of its file. A case replaces what the file has by name.
type Setup struct {
	Prompt    string
	At        string // how much time passes, at the most, while the run waits: of [Setup.Passes]; empty: none
	Variables []strictyaml.Pair
	State     *jsonvalue.Object // first values of the state, in addition to those of the graph; nil: none
	Nodes     []NodeStub
	Replies   []Reply
	Tools     []ToolStub
	Real      []string // names and patterns of the tools that are called
	Searches  []SearchStub
	Answers   []Answer

	promptSet bool
}

// Passes returns how much time passes, at the most, while the run waits.
func (s *Setup) Passes() time.Duration {
	d, err := spec.ParseSpan(strings.TrimPrefix(s.At, "+"))
	if err != nil { // none is given
		return 0
	}
	return d
}

// NodeStub answers for a node. Outputs are its results in the order of its executions: the text or data of an llm or
// agent node, the object or text that a script prints.
type NodeStub struct {
	Node    string
	Pos     strictyaml.Pos
	Outputs []any
}

// Reply is a reply of a model, as in a transcript.
type Reply struct {
	Node string // the node that gets it, or the name of an agent that is not a graph; empty: any
	Pos  strictyaml.Pos
	script.Reply
}

// ToolStub answers for a tool. Results are used in order; those with a condition first.
type ToolStub struct {
	Tool    string
	Pos     strictyaml.Pos
	Results []ToolResult
}

// ToolResult is what a tool returns.
type ToolResult struct {
	Match string // a text that the arguments must contain, as JSON; empty: any
	Text  string
	JSON  bool // the text is data, and not what a tool prints
	Error bool // the call fails with the text
}

// SearchStub answers for the searches of a rag node, or of the documents of an agent.
type SearchStub struct {
	Node string // OwnDocuments: the documents of the agent itself
	Pos  strictyaml.Pos
	Hits []Hit
}

// OwnDocuments is the name of the documents of an agent itself in searches.
const OwnDocuments = "documents"

// Hit is one part of a document that a search finds.
type Hit struct {
	Source string
	Text   string
	Place  rag.Place // zero: not known
}

// Answer answers a question. The answers are used in order; the last one is not repeated.
type Answer struct {
	Question string // id of the node or name of the tool that asks, or a part of the question's text
	Pos      strictyaml.Pos
	Values   []any // texts, or lists of texts
}

// Kinds of faults.
const (
	FaultNone      = "none"
	FaultFail      = "fail"
	FaultTimeout   = "timeout"
	FaultMalformed = "malformed"
)

var faultKinds = []string{FaultFail, FaultTimeout, FaultMalformed, FaultNone}

// Fault says how the executions of a node fail, in order. Further executions do not fail.
type Fault struct {
	Node  string
	Pos   strictyaml.Pos
	Kinds []string
}

// Expect is what is expected of a run. A nil field expects nothing.
type Expect struct {
	Pos          strictyaml.Pos // of the case if there is none
	Status       string         // empty: done; failed if Error is set
	StatusPos    strictyaml.Pos
	ExitCode     *Matcher
	Error        *Matcher
	Output       *Matcher
	Path         *Sequence
	State        []Field
	Prompts      []TextsOf
	Instructions []TextsOf
	Calls        *Sequence
	Questions    *Sequence
	ModelCalls   *Matcher
	Cost         *Matcher
}

// statuses are the ends of a run that a case can expect.
var statuses = []string{"done", "failed", "waiting"}

// Field is the expectation about one value, by its path: key.member[0].
type Field struct {
	Path string
	Pos  strictyaml.Pos
	Matcher
}

// TextsOf is what the requests of a node must say. With InOrder there is one matcher for each request; otherwise one
// request must fit.
type TextsOf struct {
	Node     string
	Pos      strictyaml.Pos
	Matchers []Matcher
	InOrder  bool
}

// Matcher is what is expected of a value. All parts that are set must be true.
type Matcher struct {
	Pos      strictyaml.Pos
	Equal    *any
	Contains []string // of the text of the value
	Never    []string // texts that it must not contain
	Pattern  *regexp.Regexp
	Schema   *jsonschema.Resolved
	Above    *float64
	Below    *float64
	Absent   *bool

	schema any // as it was written
}

// Sequence is what is expected of things that happen in order.
type Sequence struct {
	Pos      strictyaml.Pos
	Exact    []Item // all things; nil: not set
	Contains []Item // some of them, in this order
	Never    []Item
}

// Item is one thing of a sequence: the node of a path, the tool of a call, or who asks a question.
type Item struct {
	Name string
	Pos  strictyaml.Pos
	Text *Matcher // of a question; nil: any
	Args []Field  // of a call
}

// Find returns the files of test cases at a path: the file itself, or those directly in a directory, sorted.
func Find(path string) ([]string, error) {
	if strings.HasSuffix(path, Suffix) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), Suffix) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}

// maxFile is the size in bytes above which a file of test cases is not read. Read checks the exact size.
const maxFile = 2 * strictyaml.MaxFileSize

// Load reads a file of test cases.
func Load(path string) (*File, error) {
	text, err := plainfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	return Read(path, text)
}

// Text returns a value as a run has it in texts: a text as it is, anything else as JSON.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	case json.RawMessage:
		return string(v)
	}
	return jsonvalue.Compact(v)
}
