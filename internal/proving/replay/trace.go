package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/agent"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A trace is what one execution asked of models, scripts, tools, searches and agents, and how it ended.
type trace struct {
	asks   map[string]*ask // by the key of the effect, or the path of the task of an agent
	order  []string        // keys, as they were asked first
	failed map[string]bool // keys of what has no recorded result, although its step is recorded
	state  map[string]string
	output string
}

func newTrace() *trace {
	return &trace{asks: map[string]*ask{}, failed: map[string]bool{}, state: map[string]string{}}
}

// add adds what was asked. A task that runs again asks the same again.
func (t *trace) add(key string, a *ask) {
	if t.asks[key] == nil {
		t.order = append(t.order, key)
	}
	t.asks[key] = a
}

// Kinds of what is asked.
const (
	kindModel  = "model"
	kindScript = "script"
	kindTool   = "tool"
	kindSearch = "search"
	kindAgent  = "agent"
)

// An ask is what one effect asks.
type ask struct {
	kind  string
	name  string // of the tool, model or effect
	path  string // of the task
	visit int
	parts []askText
	user  string // what the user says in a request

	thread string // of the record that has the answer
	record int64  // its number; 0: no answer is recorded
}

// An askText is one text of an ask.
type askText struct{ name, text string }

// text returns the text of a part.
func (a *ask) text(name string) string {
	if i := slices.IndexFunc(a.parts, func(p askText) bool { return p.name == name }); i >= 0 {
		return a.parts[i].text
	}
	return ""
}

// newModelAsk returns the parts of a request.
func newModelAsk(id string, r *llm.Request) *ask {
	tools, _ := json.MarshalIndent(r.Tools, "", "  ") // a schema that is not JSON was refused before
	settings, _ := json.Marshal(struct {
		Temperature *float64        `json:"temperature,omitempty"`
		TopP        *float64        `json:"top_p,omitempty"`
		MaxTokens   int             `json:"max_tokens,omitempty"`
		Effort      string          `json:"effort,omitempty"`
		Stop        []string        `json:"stop,omitempty"`
		Schema      json.RawMessage `json:"schema,omitempty"`
	}{r.Temperature, r.TopP, r.MaxTokens, r.Effort, r.Stop, r.Schema})
	return &ask{kind: kindModel, name: id, user: userText(r.Messages), parts: []askText{{"instructions", r.System}, {"prompt", promptText(r.Messages)}, {"tools", string(tools)}, {"model", id}, {"settings", string(settings)}}}
}

// userText returns the text of the user's messages.
func userText(messages []llm.Message) string {
	var texts []string
	for _, m := range messages {
		if text := m.Text(); m.Role == llm.RoleUser && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// promptText returns messages as a text. A single message without calls is its text.
func promptText(messages []llm.Message) string {
	if len(messages) == 1 && messages[0].Role != llm.RoleTool && len(messages[0].ToolCalls()) == 0 {
		return messages[0].Text()
	}
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s]\n", m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				b.WriteString(p.Text + "\n")
			case llm.ToolCall:
				fmt.Fprintf(&b, "call %s %s\n", p.Name, p.Args)
			case llm.ToolResult:
				fmt.Fprintf(&b, "result of %s: %s\n", p.CallID, llm.Message{Parts: p.Content}.Text())
			}
		}
	}
	return b.String()
}

// Difference is the first thing that is not as it was recorded.
type Difference struct {
	// What is one of prompt, instructions, tools, model, settings, input, arguments, query, question, call, path,
	// status, output, state.
	What   string `json:"what"`
	Node   string `json:"node,omitempty"`   // path of the node; empty: the run as a whole
	Visit  int    `json:"visit,omitempty"`  // how often the node has run, with this time
	Run    string `json:"run,omitempty"`    // that has the record
	Record int64  `json:"record,omitempty"` // number of the recorded result or step; 0: there is none
	Was    string `json:"was"`
	Is     string `json:"is"`
	// Recorded is the recorded answer: the reply, output or result.
	Recorded string `json:"recorded,omitempty"`
	Message  string `json:"message"`
}

// Error says what differs and where, in one line.
func (d *Difference) Error() string {
	if d.Node == "" {
		return d.Message
	}
	if d.Visit > 1 {
		return fmt.Sprintf("node %s (visit %d): %s", d.Node, d.Visit, d.Message)
	}
	return fmt.Sprintf("node %s: %s", d.Node, d.Message)
}

// Diff returns the lines that differ, as a unified diff without its head.
func (d *Difference) Diff() string {
	end := func(s string) string {
		if s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
		return s
	}
	was := end(d.Was)
	is := end(d.Is)
	text := udiff.Unified("recorded", "now", was, is)
	var b strings.Builder
	for i, line := range strings.SplitAfter(text, "\n") {
		if i > 1 && !strings.HasPrefix(line, "@@") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// nodeOf returns the path of a task for people: without numbers, and without the nodes of raddle's own loops.
func nodeOf(path string) string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		task, name, named := strings.Cut(part, "#")
		_, rest, _ := strings.Cut(task, ".")
		node := rest
		index := ""
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			node = rest[:i]
			index = rest[i+1:]
		}
		switch {
		case named && name == team.Lead:
		case named:
			names = append(names, name)
		case node == agent.NodeThink || node == agent.NodeAct || node == "begin" || node == team.Node || node == "":
		case index != "" && index != "0":
			names = append(names, node+"["+index+"]")
		default:
			names = append(names, node)
		}
	}
	return strings.Join(names, "/")
}
