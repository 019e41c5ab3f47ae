package script

import (
	"encoding/json"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// A Reply is one reply of a transcript. The package comment explains the keys that its fields stand for.
type Reply struct {
	Line  int      // in the file; 0: it was not read from one
	Match []string // texts that the request must contain
	Turn  int      // number of the request in its conversation; 0: any
	After []string // texts that the outcomes of the last calls must contain

	Text      string
	Reasoning string
	Calls     []llm.ToolCall // an empty ID is replaced
	Err       error          // instead of a reply
	Delay     time.Duration
	Repeat    bool // the reply can be used any number of times
	Usage     llm.Usage
	Stop      llm.StopReason // "": tools if there are calls, else end
}

// New returns a transcript with replies. name is its file in errors and in the IDs of replies.
func New(name string, replies []Reply) *Transcript {
	t := &Transcript{file: name, used: make([]bool, len(replies))}
	for _, r := range replies {
		t.entries = append(t.entries, r.newEntry())
	}
	return t
}

func (r Reply) newEntry() *entry {
	e := &entry{
		line:      r.Line,
		match:     r.Match,
		turn:      r.Turn,
		after:     r.After,
		text:      r.Text,
		reasoning: r.Reasoning,
		calls:     r.Calls,
		err:       r.Err,
		delay:     r.Delay,
		repeat:    r.Repeat,
		usage:     r.Usage,
		stop:      r.Stop,
	}
	for i := range e.calls {
		if e.calls[i].Args == nil {
			e.calls[i].Args = json.RawMessage("{}")
		}
	}
	e.fills = e.hasPlaceholders()
	return e
}

// ReadReply reads one reply of a file that holds more than replies: a mapping with the keys of a transcript, or the
// text of the reply alone. own reads the keys that the file has in addition. Problems are added to the document.
func ReadReply(d *strictyaml.Document, n *yaml.Node, own map[string]func(*yaml.Node)) Reply {
	l := &loader{Document: d}
	if n = l.resolve(n); n == nil {
		return Reply{}
	}
	if n.Kind == yaml.ScalarNode && !strictyaml.IsEmpty(n) {
		return Reply{Line: n.Line, Text: n.Value}
	}
	e := l.parseEntry(n, own)
	return Reply{
		Line:      e.line,
		Match:     e.match,
		Turn:      e.turn,
		After:     e.after,
		Text:      e.text,
		Reasoning: e.reasoning,
		Calls:     e.calls,
		Err:       e.err,
		Delay:     e.delay,
		Repeat:    e.repeat,
		Usage:     e.usage,
		Stop:      e.stop,
	}
}

// MakeNode returns the reply as a mapping that ReadReply reads.
func (r Reply) MakeNode() (*yaml.Node, error) { return r.newEntry().yamlNode(yaml.LiteralStyle) }
