package agent

import (
	"cmp"
	"fmt"
	"strings"

	"raddle.dev/llm"
)

// Window limits the size of requests to a model. It is checked before every
// call: what does not fit is left out of the request, from the beginning, never
// between a call and its outcome. The user's last message is always kept. The
// conversation's key keeps everything.
type Window struct {
	Tokens  int       // the model's context window, including the reply; 0: no limit is known, and nothing is left out
	Reply   int       // tokens reserved for the reply; 0: Request.MaxTokens, else a quarter of Tokens and at most 4096
	Summary llm.Model // summarizes what is left out; nil: a note replaces it
	Prompt  string    // the prompt for that model; empty: a default
	// Format returns the text that replaces the summarized messages; nil: a
	// note with their number, and the summary. It must be pure.
	Format func(summary string, messages int) string

	// Soft is the size of a request in tokens above which its beginning is
	// summarized although it would fit. The newest Keep messages stay as they
	// are. 0: never.
	Soft int
	Keep int
}

// View is the part of a conversation that one node sends.
type View struct {
	From    int    `json:"from,omitempty"`    // the entry at which requests start
	Left    int    `json:"left,omitempty"`    // number of messages left out
	Summary string `json:"summary,omitempty"` // of these messages
}

// WindowError says that a request is too long although it leaves out everything that it may.
type WindowError struct {
	Tokens, Limit int // estimated, without the reply
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("the request has about %d tokens, but the model's window has room for %d: shorten the system prompt, the tools or the message, or use a model with a larger window",
		e.Tokens, e.Limit)
}

const (
	maxReply   = 4096
	replyShare = 4 // 1/4 of the window
	// of the room is used after messages were left out, so that the next requests fit
	keepPercent = 60
	// 1/2 of Window.Soft is the least that is summarized, so that not every reply needs a summary
	crowdedShare = 2
	smallest     = 64                    // tokens that a shortened outcome keeps at least
	percent      = 100                   // makes factors integers
	leastFactor  = percent / 2           // tokens count for at least half of the estimate
	maxFactor    = percent * 4           // and for at most four times the estimate
	largestCut   = 8192                  // tokens of the longest outcome when outcomes are shortened
	shareMarker  = "\n[… shortened …]\n" // marks the gap in shortened texts
	leftOutNote  = "[%d earlier messages were left out to fit the context window.]"
	summaryNote  = "[Summary of %d earlier messages, which were left out to fit the context window.]\n%s"
)

// requestFitter is one attempt to make a request fit.
type requestFitter struct {
	lines  []foldedLine
	sizes  []int // of lines (estimate)
	head   int   // tokens of everything except messages
	factor int   // reported tokens in per cent of estimated tokens
	limit  int   // tokens for the request; 0: none
	soft   int   // tokens above which the request is shortened although it fits; 0: none
	keep   int   // number of messages that the soft limit keeps
	view   View
	from   int // the index of the line that view.From points to
	format func(summary string, messages int) string
}

// requestLimit returns how many tokens a request may have.
func (w *Window) requestLimit(r *llm.Request) int {
	if w.Tokens <= 0 {
		return 0
	}
	reply := cmp.Or(w.Reply, r.MaxTokens)
	if reply == 0 {
		reply = min(maxReply, w.Tokens/replyShare)
	}
	return max(1, w.Tokens-reply)
}

func newFitting(lines []foldedLine, r *llm.Request, view View, factor int) *requestFitter {
	f := &requestFitter{lines: lines, head: headTokens(r), factor: factor, view: view, sizes: make([]int, len(lines))}
	for i := range lines {
		f.sizes[i] = messageTokens(&lines[i].message)
	}
	if len(lines) == 0 || lines[0].entry >= view.From { // cleared since then, or no message is left
		f.view = View{}
		return f
	}
	for f.from < len(lines) && (lines[f.from].entry < view.From || lines[f.from].message.Role == llm.RoleTool) {
		f.from++
	}
	if f.from == len(lines) { // the key was reset to something shorter
		f.view = View{}
		f.from = 0
	}
	f.countLeft()
	return f
}

// lastUserLine returns the index of the user's last message in lines, or -1.
func (f *requestFitter) lastUserLine() int {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].by == "" && f.lines[i].message.Role == llm.RoleUser {
			return i
		}
	}
	return -1
}

// estimateTokens estimates the size of a request that starts at a line.
func (f *requestFitter) estimateTokens(from int) int {
	n := f.head
	if from > 0 {
		n += textTokens(leftOutNote) + textTokens(f.view.Summary)
	}
	if u := f.lastUserLine(); u >= 0 && u < from {
		n += f.sizes[u]
	}
	for _, s := range f.sizes[from:] {
		n += s
	}
	return n
}

func (f *requestFitter) scaleTokens(n int) int { return n * f.factor / percent }

// isWithinLimit reports whether the request fits with the view as it is.
func (f *requestFitter) isWithinLimit() bool {
	return f.limit <= 0 || f.scaleTokens(f.estimateTokens(f.from)) <= f.limit
}

// findSummaryStart reports whether it is worth summarizing older messages although the
// request fits. at is the line to start with then.
func (f *requestFitter) findSummaryStart() (at int, yes bool) {
	if f.soft <= 0 || f.scaleTokens(f.estimateTokens(f.from)) <= f.soft {
		return 0, false
	}
	at = max(len(f.lines)-max(f.keep, 1), 0)
	for at > f.from && f.lines[at].message.Role == llm.RoleTool {
		at--
	}
	old := 0
	for i := f.from; i < at; i++ {
		old += f.sizes[i]
	}
	return at, f.scaleTokens(old) >= f.soft/crowdedShare
}

// requestLimit returns the limit of a request, or a large number if there is none.
func (f *requestFitter) requestLimit() int {
	if f.limit <= 0 {
		return f.soft
	}
	return f.limit
}

// findCutLine returns the line to start with: the first one that leaves enough out, a
// line of the user if possible, else the last possible line.
func (f *requestFitter) findCutLine() int {
	target := f.limit * keepPercent / percent
	best := -1
	last := f.from
	for i := f.from + 1; i < len(f.lines); i++ {
		role := f.lines[i].message.Role
		if role == llm.RoleTool {
			continue
		}
		last = i
		if f.scaleTokens(f.estimateTokens(i)) > target {
			continue
		}
		if role == llm.RoleUser {
			return i
		}
		if best < 0 {
			best = i
		}
	}
	if best >= 0 {
		return best
	}
	return last
}

// moveViewTo moves the start of the view to a line.
func (f *requestFitter) moveViewTo(at int) {
	f.from = at
	f.view.From = f.lines[at].entry
	f.countLeft()
	if f.view.Left == 0 {
		f.view.Summary = ""
	}
}

// countLeft counts the messages before the view. The user's last message is not left out; in the
// next turn it is, because it is no longer the last one.
func (f *requestFitter) countLeft() {
	f.view.Left = f.from
	if u := f.lastUserLine(); u >= 0 && u < f.from {
		f.view.Left--
	}
}

// omissionNote returns the text that replaces what is left out.
func (f *requestFitter) omissionNote() string {
	v := f.view
	switch {
	case v.Left == 0:
		return ""
	case v.Summary == "":
		return fmt.Sprintf(leftOutNote, v.Left)
	case f.format != nil:
		return f.format(v.Summary, v.Left)
	}
	return fmt.Sprintf(summaryNote, v.Left, v.Summary)
}

// buildMessages returns the messages of the request, in a form that every provider
// accepts. If they are too long, outcomes are shortened.
func (f *requestFitter) buildMessages() ([]llm.Message, int, error) {
	var list []llm.Message
	if note := f.omissionNote(); note != "" {
		list = append(list, llm.User(note))
	}
	if u := f.lastUserLine(); u >= 0 && u < f.from {
		list = append(list, f.lines[u].message)
	}
	for _, l := range f.lines[f.from:] {
		list = append(list, l.message)
	}
	tokens := f.estimateTokens(f.from)
	if f.limit <= 0 || f.scaleTokens(tokens) <= f.limit {
		return normaliseMessages(list), tokens, nil
	}
	for most := largestCut; most >= smallest; most /= 2 {
		short := truncateOutcomes(list, most)
		tokens = f.head
		for i := range short {
			tokens += messageTokens(&short[i])
		}
		if f.scaleTokens(tokens) <= f.limit {
			return normaliseMessages(short), tokens, nil
		}
	}
	return nil, tokens, &WindowError{Tokens: f.scaleTokens(tokens), Limit: f.limit}
}

// truncateOutcomes returns the messages with outcomes of at most that many tokens.
func truncateOutcomes(list []llm.Message, most int) []llm.Message {
	out := make([]llm.Message, len(list))
	for i, m := range list {
		if out[i] = m; m.Role != llm.RoleTool {
			continue
		}
		parts := make([]llm.Part, len(m.Parts))
		for j, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				r.Content = truncateTexts(r.Content, most)
				p = r
			}
			parts[j] = p
		}
		out[i].Parts = parts
	}
	return out
}

func truncateTexts(parts []llm.Part, most int) []llm.Part {
	out := make([]llm.Part, len(parts))
	for i, p := range parts {
		if t, ok := p.(llm.Text); ok {
			p = llm.Text{Text: truncateMiddle(t.Text, most)}
		}
		out[i] = p
	}
	return out
}

// truncateMiddle keeps the start and the end of a text that has more than that many
// tokens.
func truncateMiddle(text string, most int) string {
	n := textTokens(text)
	if n <= most {
		return text
	}
	const headShare = 3
	keep := len(text) * most / n
	tail := keep / headShare
	return strings.ToValidUTF8(text[:keep-tail], "") + shareMarker + strings.ToValidUTF8(text[len(text)-tail:], "")
}
