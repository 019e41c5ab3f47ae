package updates

import (
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A Reply is one message of a model.
type Reply struct {
	Place  string // the task that gives it, with its path
	Path   string // of its conversation, each node followed by a slash; "": the agent of the run speaks to the user
	Node   string // the node, with the path as the event had it
	Number int    // among the replies of its task, from 1
	Again  int    // how often it was withdrawn
	Done   bool   // it is complete

	text, reasoning passage
	why             string      // it begins again; "": it does not, or no reason is known
	newest          graph.Event // the newest piece
}

// ID returns the place and the number of a reply, which no other reply of the run has. Every receiver gets the same.
func (r *Reply) ID() string { return r.Place + "/" + strconv.Itoa(r.Number) }

// Text returns what the model has written of the reply since it began the last time.
func (r *Reply) Text() string { return r.text.written.String() }

// Reasoning returns what the model has thought before the reply.
func (r *Reply) Reasoning() string { return r.reasoning.written.String() }

// beginAgain withdraws what was passed on, or keeps it until the new text differs. It returns what of it was withdrawn.
func (r *Reply) beginAgain(why string, replaces bool) (list []RunUpdate) {
	r.why = why
	text := r.text.beginAgain(!replaces)
	reasoning := r.reasoning.beginAgain(!replaces)
	if replaces && (text || reasoning) {
		r.Again++
		list = append(list, ReplyWithdrawn{Reply: r, Why: why})
	}
	return list
}

// addText returns the updates of a piece of the text.
func (r *Reply) addText(piece string) []RunUpdate {
	first := r.text.passedOn() == ""
	more, differs := r.text.add(piece)
	return r.passText(TextAdded{Reply: r, Text: more, First: first || differs}, differs)
}

// passText returns the updates of a text that is passed on.
func (r *Reply) passText(added TextAdded, differs bool) (list []RunUpdate) {
	if differs {
		r.Again++
		list = append(list, ReplyWithdrawn{Reply: r, Why: r.why, AtEnd: added.AtEnd})
	}
	if added.Text != "" {
		list = append(list, added)
	}
	return list
}

// addReasoning returns the updates of a piece of the reasoning.
func (r *Reply) addReasoning(piece string) []RunUpdate {
	more, differs := r.reasoning.add(piece)
	return r.passReasoning(ReasoningAdded{Reply: r, Text: more}, differs)
}

// passReasoning returns the updates of reasoning that is passed on.
func (r *Reply) passReasoning(added ReasoningAdded, differs bool) (list []RunUpdate) {
	if differs {
		list = append(list, ReplyWithdrawn{Reply: r, Why: r.why, Reasoning: true, AtEnd: added.AtEnd})
	}
	if added.Text != "" {
		list = append(list, added)
	}
	return list
}

// finish returns the updates of a whole reply: what was not passed on yet.
func (r *Reply) finish(m llm.Message) (list []RunUpdate, missing bool) {
	r.Done = true
	var thoughts strings.Builder
	for _, p := range m.Parts {
		if thought, ok := p.(llm.Reasoning); ok {
			thoughts.WriteString(thought.Text)
		}
	}
	again := r.reasoning.before != ""
	more, differs := r.reasoning.finish(thoughts.String())
	// otherwise it is the same in other words: a provider may send reasoning in another form at the end
	if again || !differs {
		list = append(list, r.passReasoning(ReasoningAdded{Reply: r, Text: more, AtEnd: true}, differs)...)
	}
	first := r.text.passedOn() == ""
	more, differs = r.text.finish(m.Text())
	return append(list, r.passText(TextAdded{Reply: r, Text: more, First: first || differs, AtEnd: true}, differs)...), more != ""
}

// A passage is a text that comes in pieces.
type passage struct {
	written strings.Builder // since the model began the last time
	// what was passed on before that and still counts: nothing is passed on until the new text continues it or differs
	before string
}

// passedOn returns what receivers have got of the passage.
func (p *passage) passedOn() string {
	if p.before != "" {
		return p.before
	}
	return p.written.String()
}

// beginAgain begins the passage again, and reports whether something of it was passed on. keep says that this still
// counts.
func (p *passage) beginAgain(keep bool) bool {
	passed := p.passedOn()
	p.written.Reset()
	p.before = ""
	if keep {
		p.before = passed
	}
	return passed != ""
}

// add takes a piece, and returns what to pass on. differs says that it replaces what was passed on before.
func (p *passage) add(piece string) (more string, differs bool) {
	p.written.WriteString(piece)
	if p.before == "" {
		return piece, false
	}
	now := p.written.String()
	if strings.HasPrefix(p.before, now) {
		return "", false
	}
	rest, same := strings.CutPrefix(now, p.before)
	p.before = ""
	return rest, !same
}

// finish takes the whole passage, and returns what to pass on. differs says that it replaces what was passed on before.
func (p *passage) finish(whole string) (more string, differs bool) {
	rest, same := strings.CutPrefix(whole, p.passedOn())
	p.written.Reset()
	p.written.WriteString(whole)
	p.before = ""
	return rest, !same
}

// Event returns a piece of the reply as an event, for a receiver that comes in the middle: value is an
// [agent.TextDelta] or an [agent.ReasoningDelta] with what the model has written so far.
func (r *Reply) Event(value any) graph.Event {
	ev := r.newest
	ev.Body = graph.ValueEmitted{Value: value}
	return ev
}
