package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Messages is the conversation as a list of changes. It only grows, and each
// step records only what it adds; History combines the entries into messages.
// Write it with AppendMessages, ReplaceLastUser and RemoveAll.
var Messages = graph.Append[Entry]("messages")

// An Entry is one addition to a conversation.
type Entry struct {
	Message llm.Message `json:"message,omitzero"`
	Op      Op          `json:"op,omitempty"`
	By      string      `json:"by,omitempty"` // the node that wrote it; empty: the caller of the run

	// Run is the run that wrote the entry. Run, Path and Visit are empty in
	// entries that a caller sets before a run starts, and in journals that are
	// older than these fields.
	Run string `json:"run,omitempty"`
	// Path is that of the child graph: "" at the root, else the nodes above it, each with a '/'.
	Path  string `json:"path,omitempty"`
	Visit string `json:"visit,omitempty"` // distinguishes visits of one child graph in one run; "" at the root
	After int    `json:"after,omitempty"` // of OpSaid: how many entries its writer had seen
	// For is the node that made the calls that outcomes belong to; empty: they belong to the newest calls.
	For string `json:"for,omitempty"`

	Reply *ReplyInfo      `json:"reply,omitempty"` // of a model's reply
	Seen  []tool.SeenFile `json:"seen,omitempty"`  // of outcomes: the files whose content they have or have written

	// Said is what a person wrote, if Message contains it with more: documents, or the text
	// of a template. Empty: the text of Message.
	Said string `json:"said,omitempty"`

	// Sent is the id of a message that a person sent while the turn worked: see [WithMailbox].
	Sent string `json:"sent,omitempty"`
}

// UserEntry returns an entry with what a person wrote, for the node that ctx belongs to. m is the
// message that the model gets.
func UserEntry(ctx context.Context, m llm.Message, said string) Entry {
	e := stampEntry(ctx, Entry{Message: m})
	if said != m.Text() {
		e.Said = said
	}
	return e
}

// ReplyInfo describes a model's reply, apart from its message.
type ReplyInfo struct {
	ID       string         `json:"id,omitempty"` // the provider's id of the reply, if it has one
	Model    string         `json:"model,omitempty"`
	Usage    llm.Usage      `json:"usage,omitzero"`
	Stop     llm.StopReason `json:"stop,omitempty"`
	Estimate int            `json:"estimate,omitempty"` // the estimated tokens of the request
}

// An Op is what an Entry does to the messages before it.
type Op string

// These are the operations.
const (
	OpAppend Op = "" // appends Message
	// OpReplace replaces the parts of the last user message by those of Message; if there is none, it appends Message.
	OpReplace Op = "replace"
	OpClear   Op = "clear" // removes all messages before it
	OpSaid    Op = "said"  // appends Message, unless a parallel node of the same step has already added it
)

// AppendMessages adds messages to the conversation.
func AppendMessages(messages ...llm.Message) graph.Write { return Messages.Set(entriesOf(messages)) }

func entriesOf(messages []llm.Message) []Entry {
	entries := make([]Entry, len(messages))
	for i, m := range messages {
		entries[i] = Entry{Message: m}
	}
	return entries
}

// stampEntry sets the fields of an entry that say where it was written.
func stampEntry(ctx context.Context, e Entry) Entry {
	at := graph.TaskInfo(ctx)
	task := graph.TaskPath(ctx)
	e.Run, e.Path, e.Visit = at.Run, at.Path, task[:strings.LastIndexByte(task, '/')+1]
	return e
}

// ReplaceLastUser replaces the user's last message with a text. If there is
// none, the text is appended.
func ReplaceLastUser(text string) graph.Write {
	return Messages.Set([]Entry{{Message: llm.User(text), Op: OpReplace}})
}

// RemoveAll starts an empty conversation: requests no longer contain the
// earlier messages. The key and the journal still do.
func RemoveAll() graph.Write { return Messages.Set([]Entry{{Op: OpClear}}) }

// History returns the whole conversation as messages, without the limit of a
// Window.
func History(s graph.State) []llm.Message { return Conversation(Messages.Get(s)) }

// Conversation applies the operations of entries and returns the resulting
// messages. Every outcome follows its call.
func Conversation(entries []Entry) []llm.Message {
	lines := foldEntries(entries, nil)
	messages := make([]llm.Message, len(lines))
	for i, l := range lines {
		messages[i] = l.message
	}
	return messages
}

// LastResponse returns the text of the newest reply of any model, or "" if
// there is no reply yet.
func LastResponse(s graph.State) string { return lastReplyText(Messages.Get(s), nil) }

// Response returns the text of the newest reply to a node, or "" if there is no
// reply yet. The node may be an agent.
func Response(s graph.State, node string) string {
	return lastReplyText(Messages.Get(s), func(e *Entry) bool { return e.isWrittenBy(node) })
}

// isWrittenBy reports whether a node, or a node of the agent with this name, has written
// an entry.
func (e *Entry) isWrittenBy(node string) bool {
	rest, ok := strings.CutPrefix(e.By, node)
	return ok && (rest == "" || rest[0] == '/')
}

// Responses returns the text of the newest reply to each node that has one.
// Replies inside an agent count for the agent.
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

// LastResponseID returns the provider's id of the newest reply of any model, or
// "" if it has none.
func LastResponseID(s graph.State) string {
	entries := Messages.Get(s)
	for i := len(entries) - 1; i >= 0; i-- {
		if r := entries[i].Reply; r != nil {
			return r.ID
		}
	}
	return ""
}

// LastToolResponse returns the newest outcome of a call, as the model sees it,
// or "" if there is none yet.
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

func lastReplyText(entries []Entry, wanted func(*Entry) bool) string {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Message.Role == llm.RoleAssistant && (wanted == nil || wanted(e)) {
			return e.Message.Text()
		}
	}
	return ""
}

// A foldedLine is one message of a folded conversation.
type foldedLine struct {
	message llm.Message
	entry   int    // its index in the key
	by      string // the node that wrote it; empty: the caller of the run
}

// foldEntries applies the operations. An outcome moves to its call, even if other messages are
// between them; an outcome without a call is left out. Entries for which shown returns false are
// left out; if shown is nil, all are used. foldEntries does not change entries.
func foldEntries(entries []Entry, shown func(i int) bool) []foldedLine {
	lines := make([]foldedLine, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		switch {
		case shown != nil && !shown(i):
		case e.Op == OpClear:
			lines = lines[:0]
		case e.Op == OpSaid && isAlreadyAdded(entries, lines, e):
		case e.Op == OpReplace:
			lines = replaceLastUser(lines, foldedLine{e.Message, i, e.By})
		case e.Message.Role == llm.RoleTool:
			lines = attachOutcomes(lines, foldedLine{e.Message, i, e.By}, e.For)
		default:
			lines = append(lines, foldedLine{e.Message, i, e.By})
		}
	}
	return lines
}

// isAlreadyAdded reports whether a node that runs in parallel with the writer of an
// entry has already added it.
func isAlreadyAdded(entries []Entry, lines []foldedLine, e *Entry) bool {
	for i := len(lines) - 1; i >= 0 && lines[i].entry >= e.After; i-- {
		o := &entries[lines[i].entry]
		if o.Op == OpSaid && o.After == e.After && o.Message.Text() == e.Message.Text() {
			return true
		}
	}
	return false
}

func replaceLastUser(lines []foldedLine, with foldedLine) []foldedLine {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].message.Role == llm.RoleUser {
			lines[i].message, lines[i].by = with.message, with.by
			return lines
		}
	}
	return append(lines, with)
}

// attachOutcomes puts outcomes after the newest message with calls, or the newest one
// of a node. They become one tool message, in the order of the calls.
func attachOutcomes(lines []foldedLine, results foldedLine, of string) []foldedLine {
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
	results.message = llm.Message{Role: llm.RoleTool, Parts: pairOutcomes(lines[at].message.ToolCalls(), parts)}
	if len(results.message.Parts) == 0 {
		return lines
	}
	return slices.Insert(lines, at+1, results)
}

// pairOutcomes returns one outcome for each call that has one, in the order of the
// calls.
func pairOutcomes(calls []llm.ToolCall, outcomes []llm.Part) []llm.Part {
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

// ReadEntries returns the conversation that the stored values of a thread hold, as history.Inspect reads them; nil
// without one. If last is not 0, it reads only so many of the newest writes. The error says that the key of Messages
// holds something else, as in another kind of graph.
func ReadEntries(values []history.StoredValue, last int) (all []Entry, err error) {
	for _, v := range values {
		if v.Key != Messages.Name() {
			continue
		}
		parts := v.Parts
		if last > 0 {
			parts = parts[max(0, len(parts)-last):]
		}
		for _, part := range parts {
			var entries []Entry
			if err := json.Unmarshal(part, &entries); err != nil {
				return nil, fmt.Errorf("the stored messages: %w", err)
			}
			all = append(all, entries...)
		}
	}
	return all, nil
}
