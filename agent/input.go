package agent

import (
	"context"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// OneShot gives the next model node messages that replace the conversation in
// one request. The conversation itself is kept. If the last message is the
// user's, it replaces the user's last message in the conversation, and the
// reply is appended after it. The messages are used once: the next request
// contains the conversation again. OneShot without messages cancels an earlier
// OneShot.
func OneShot(messages ...llm.Message) graph.Write { return OneShotFor("", messages...) }

// OneShotFor is OneShot for one model node, by its name. Its messages take
// priority over those of OneShot, which stay for another node.
func OneShotFor(node string, messages ...llm.Message) graph.Write {
	return OneShots.Set(map[string][]llm.Message{node: messages})
}

// modelInput is the input of a turn of a model node.
type modelInput struct {
	lines  []foldedLine
	writes []graph.Write // written by the turn in addition to its reply
	next   int           // the index of the next entry
	once   bool          // lines are one-shot messages, not the conversation
	begins bool          // the user sent a message
}

// buildInput returns the input of a turn: one-shot messages for the node, one-shot messages for any
// node, what the user says, or the conversation as it is, in this order.
func (t *Think) buildInput(ctx context.Context, s graph.State, name string) modelInput {
	entries := Messages.Get(s)
	in := modelInput{lines: foldEntries(entries, t.Visibility.entryFilter(entries, newViewer(ctx, ""), true)), next: len(entries)}
	if r := newestRound(entries, name); len(r.pending) > 0 { // a new turn started before they had an outcome
		cut := stampEntry(ctx, Entry{Message: cutOffMessage(r.pending), By: name, For: name})
		in.addEntry(cut)
		in.lines = attachOutcomes(in.lines, foldedLine{message: cut.Message, entry: in.next - 1, by: name}, name)
	}
	in.lines = addPlaceholders(in.lines, name)
	once := OneShots.Get(s)
	for _, key := range []string{name, ""} {
		if messages := once[key]; len(messages) > 0 {
			in.oneShot(ctx, name, key, messages)
			return in
		}
	}
	from := t.Input
	if from == (graph.Key[string]{}) {
		from = UserInput
	}
	if text := from.Get(s); text != "" {
		in.addUserText(ctx, text)
		in.writes = append(in.writes, from.Set(""))
	}
	return in
}

// addPlaceholders adds a placeholder outcome to each call of another node that may still be
// running.
func addPlaceholders(lines []foldedLine, name string) []foldedLine {
	var open []foldedLine
	for i := len(lines) - 1; i >= 0 && lines[i].message.Role != llm.RoleUser; i-- {
		calls := lines[i].message.ToolCalls()
		if len(calls) == 0 || lines[i].by == name {
			continue
		}
		var outcomes []llm.Part
		if i+1 < len(lines) && lines[i+1].message.Role == llm.RoleTool {
			outcomes = lines[i+1].message.Parts
		}
		if rest := pendingCalls(calls, outcomes); len(rest) > 0 {
			open = append(open, foldedLine{message: placeholderMessage(rest), entry: lines[i].entry, by: lines[i].by})
		}
	}
	for _, l := range open {
		lines = attachOutcomes(lines, l, l.by)
	}
	return lines
}

func (in *modelInput) addEntry(e Entry) {
	in.writes = append(in.writes, Messages.Set([]Entry{e}))
	in.next++
}

func (in *modelInput) oneShot(ctx context.Context, name, key string, messages []llm.Message) {
	in.once = true
	in.lines = foldEntries(entriesOf(messages), nil)
	if last := messages[len(messages)-1]; last.Role == llm.RoleUser {
		in.addEntry(stampEntry(ctx, Entry{Message: last, Op: OpReplace, By: name}))
	}
	in.writes = append(in.writes, OneShotFor(key))
}

// addUserText adds what the user says. It replaces a message that was not answered
// yet, and is not added a second time if it is the same.
func (in *modelInput) addUserText(ctx context.Context, text string) {
	in.begins = true
	e := stampEntry(ctx, Entry{Message: llm.User(text)})
	n := len(in.lines)
	if n == 0 || in.lines[n-1].message.Role != llm.RoleUser {
		e.Op = OpSaid
		e.After = in.next
		in.addEntry(e)
		in.lines = append(in.lines, foldedLine{message: e.Message, entry: in.next - 1})
		return
	}
	if last := &in.lines[n-1]; last.message.Text() != text {
		e.Op = OpReplace
		in.addEntry(e)
		last.message = e.Message
		last.by = ""
	}
}
