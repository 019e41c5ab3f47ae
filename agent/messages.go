package agent

import (
	"context"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Messages is the conversation: what was said, and what was done to it. It only
// grows, by what each step adds, so that journals grow with what is said and
// nothing is lost; History folds it into messages. Write it with Append,
// ReplaceLastUser and RemoveAll.
var Messages = graph.Append[Entry]("messages")

// An Entry is one addition to a conversation.
type Entry struct {
	Message llm.Message `json:"message,omitzero"`
	Op      Op          `json:"op,omitempty"`
	By      string      `json:"by,omitempty"` // the node that wrote it; empty: it came from outside

	// Where it was written; empty for what a caller sets before a run begins, and
	// in journals that are older than these fields.
	Run   string `json:"run,omitempty"`
	Path  string `json:"path,omitempty"`  // of the child graph: "" at the root, else the nodes above it, each with a '/'
	Visit string `json:"visit,omitempty"` // tells visits of one child graph in one run apart; "" at the root
	After int    `json:"after,omitempty"` // of OpSaid: how many entries its writer has seen
	For   string `json:"for,omitempty"`   // of outcomes: the node whose calls they are of; empty: of the newest calls

	Reply *ReplyInfo `json:"reply,omitempty"` // of a model's reply
}

// ReplyInfo is what is known of a model's reply besides its message.
type ReplyInfo struct {
	ID       string         `json:"id,omitempty"` // the provider's name for it, if it has one
	Model    string         `json:"model,omitempty"`
	Usage    llm.Usage      `json:"usage,omitzero"`
	Stop     llm.StopReason `json:"stop,omitempty"`
	Estimate int            `json:"estimate,omitempty"` // tokens the request was taken for
}

// An Op is what an Entry does to the messages before it.
type Op string

// The operations.
const (
	OpAppend  Op = ""        // Message follows them
	OpReplace Op = "replace" // Message's parts take the place of the last user message's; without one it follows
	OpClear   Op = "clear"   // they are left out from here on
	OpSaid    Op = "said"    // Message follows them, unless a node beside, in the same step, has heard it too
)

// Append adds messages to the conversation.
func Append(messages ...llm.Message) graph.Write { return Messages.Set(entriesOf(messages)) }

func entriesOf(messages []llm.Message) []Entry {
	entries := make([]Entry, len(messages))
	for i, m := range messages {
		entries[i] = Entry{Message: m}
	}
	return entries
}

// mark says on an entry where it was written.
func mark(ctx context.Context, e Entry) Entry {
	at := graph.TaskInfo(ctx)
	task := graph.TaskPath(ctx)
	e.Run, e.Path, e.Visit = at.Run, at.Path, task[:strings.LastIndexByte(task, '/')+1]
	return e
}

// ReplaceLastUser puts a text in the place of what the user said last. Where the
// user has said nothing it is appended.
func ReplaceLastUser(text string) graph.Write {
	return Messages.Set([]Entry{{Message: llm.User(text), Op: OpReplace}})
}

// RemoveAll begins the conversation anew: requests no longer hold what was said
// before. The key and the journal still do.
func RemoveAll() graph.Write { return Messages.Set([]Entry{{Op: OpClear}}) }

// History is the conversation as a model would be told it, if it all fitted.
func History(s graph.State) []llm.Message { return Conversation(Messages.Get(s)) }

// Conversation is what entries add up to: the operations are applied, and every
// outcome stands behind its call.
func Conversation(entries []Entry) []llm.Message {
	lines := fold(entries, nil)
	messages := make([]llm.Message, len(lines))
	for i, l := range lines {
		messages[i] = l.message
	}
	return messages
}

// LastResponse is the text of the newest reply of any model, empty before the
// first.
func LastResponse(s graph.State) string { return response(Messages.Get(s), nil) }

// Response is the text of the newest reply that a node has got, empty before the
// first. The node may be an agent.
func Response(s graph.State, node string) string {
	return response(Messages.Get(s), func(e *Entry) bool { return e.by(node) })
}

// by tells whether a node has written an entry, or a node of the agent that it is.
func (e *Entry) by(node string) bool {
	rest, ok := strings.CutPrefix(e.By, node)
	return ok && (rest == "" || rest[0] == '/')
}

// Responses is the text of the newest reply of each node that has got one. The
// replies inside an agent count for the agent.
func Responses(s graph.State) map[string]string {
	texts := map[string]string{}
	for _, e := range Messages.Get(s) {
		if e.Message.Role == llm.RoleAssistant && e.By != "" {
			node, _, _ := strings.Cut(e.By, "/")
			texts[node] = e.Message.Text()
		}
	}
	return texts
}

// LastResponseID is the provider's name for the newest reply of any model, empty
// where it has none.
func LastResponseID(s graph.State) string {
	entries := Messages.Get(s)
	for i := len(entries) - 1; i >= 0; i-- {
		if r := entries[i].Reply; r != nil {
			return r.ID
		}
	}
	return ""
}

// LastToolResponse is the newest outcome of a call, as the model reads it; empty
// before the first.
func LastToolResponse(s graph.State) string {
	entries := Messages.Get(s)
	for i := len(entries) - 1; i >= 0; i-- {
		if parts := entries[i].Message.Parts; entries[i].Message.Role == llm.RoleTool && len(parts) > 0 {
			if r, ok := parts[len(parts)-1].(llm.ToolResult); ok {
				return llm.Message{Parts: r.Content}.Text()
			}
		}
	}
	return ""
}

func response(entries []Entry, wanted func(*Entry) bool) string {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Message.Role == llm.RoleAssistant && (wanted == nil || wanted(e)) {
			return e.Message.Text()
		}
	}
	return ""
}

// A line is one message of a folded conversation.
type line struct {
	message llm.Message
	entry   int    // where it stands in the key
	by      string // who wrote it; empty: it came from outside
}

// fold applies the operations. An outcome goes to its call, even where something
// was said in between; one without a call is left out. It changes no entry. What
// shown says is not shown, if there is one, is left out.
func fold(entries []Entry, shown func(i int) bool) []line {
	lines := make([]line, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		switch {
		case shown != nil && !shown(i):
		case e.Op == OpClear:
			lines = lines[:0]
		case e.Op == OpSaid && heard(entries, lines, e):
		case e.Op == OpReplace:
			lines = replaceLastUser(lines, line{e.Message, i, e.By})
		case e.Message.Role == llm.RoleTool:
			lines = attach(lines, line{e.Message, i, e.By}, e.For)
		default:
			lines = append(lines, line{e.Message, i, e.By})
		}
	}
	return lines
}

// heard tells whether a node beside the writer of an entry has added it already.
func heard(entries []Entry, lines []line, e *Entry) bool {
	for i := len(lines) - 1; i >= 0 && lines[i].entry >= e.After; i-- {
		o := &entries[lines[i].entry]
		if o.Op == OpSaid && o.After == e.After && o.Message.Text() == e.Message.Text() {
			return true
		}
	}
	return false
}

func replaceLastUser(lines []line, with line) []line {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].message.Role == llm.RoleUser {
			lines[i].message, lines[i].by = with.message, with.by
			return lines
		}
	}
	return append(lines, with)
}

// attach puts outcomes behind the newest message with calls, or that of a node: one
// tool message, in the order of the calls.
func attach(lines []line, results line, of string) []line {
	at := len(lines) - 1
	for at >= 0 && (of != "" && lines[at].by != of || len(lines[at].message.ToolCalls()) == 0) {
		at--
	}
	if at < 0 {
		return lines
	}
	parts := slices.Clone(results.message.Parts)
	if at+1 < len(lines) && lines[at+1].message.Role == llm.RoleTool {
		parts = append(slices.Clone(lines[at+1].message.Parts), parts...)
		lines = slices.Delete(lines, at+1, at+2)
	}
	results.message = llm.Message{Role: llm.RoleTool, Parts: paired(lines[at].message.ToolCalls(), parts)}
	if len(results.message.Parts) == 0 {
		return lines
	}
	return slices.Insert(lines, at+1, results)
}

// paired is one outcome for each call that has one, in the order of the calls.
func paired(calls []llm.ToolCall, outcomes []llm.Part) []llm.Part {
	var parts []llm.Part
	for _, c := range calls {
		for _, p := range outcomes {
			if r, ok := p.(llm.ToolResult); ok && r.CallID == c.ID {
				parts = append(parts, r)
				break
			}
		}
	}
	return parts
}
