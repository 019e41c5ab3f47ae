// Package story says what happened in a run, from its journal: in words, line by line, and in a picture of its graph.
package story

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

// A Describer describes what happened in one run, in words for people.
type Describer struct {
	agents map[string]string // names of spawned agents by their ids
	lead   string            // name of the agent of the run
	events []string          // ids of the questions that wait for an event and not for an answer
}

// NewDescriber returns a Describer of one run. Spawned agents get their name, and a number if several have it.
func NewDescriber(story []runs.Moment, info *runs.Info) *Describer {
	s := &Describer{agents: map[string]string{}, lead: info.Agent}
	var ids []string
	count := map[string]int{}
	for _, m := range story {
		if m.Kind == journal.KindQuestion && m.Question.Kind == graph.KindEvent {
			s.events = append(s.events, m.Question.ID)
		}
		for id := range strings.SplitSeq(m.Node, "/") {
			if name := team.AgentOf(id); name != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
				count[name]++
			}
		}
	}
	number := map[string]int{}
	for _, id := range ids {
		name := team.AgentOf(id)
		s.agents[id] = name
		if number[name]++; count[name] > 1 {
			s.agents[id] = fmt.Sprintf("%s·%d", name, number[name])
		}
	}
	return s
}

// nameNode returns the path of a node or agent for people: agents by their name, without the node of their team.
func (s *Describer) nameNode(path string) string {
	var parts []string
	for id := range strings.SplitSeq(path, "/") {
		switch name, ok := s.agents[id]; {
		case ok:
			parts = append(slices.DeleteFunc(parts, func(p string) bool { return p == team.Node }), name)
		case id != "" && id != team.Lead:
			parts = append(parts, id)
		}
	}
	return strings.Join(parts, "/")
}

// nameAgents replaces the ids of agents in a text by their names.
func (s *Describer) nameAgents(text string) string {
	for _, id := range slices.Sorted(maps.Keys(s.agents)) {
		text = strings.ReplaceAll(text, id, s.agents[id])
	}
	return text
}

// DescribeMoment describes a moment on one line, "" if it says nothing to people.
func (s *Describer) DescribeMoment(m *runs.Moment) string { return s.nameAgents(s.describeRecord(m)) }

// describeRecord is DescribeMoment with the ids of agents.
func (s *Describer) describeRecord(m *runs.Moment) string {
	node := s.nameNode(m.Node)
	at := func(text string) string {
		if node == "" {
			return text
		}
		return node + ": " + text
	}
	switch m.Kind {
	case journal.KindStart:
		if m.Inner {
			return "started"
		}
		return "started" + ArrowTo(m.Next) + WrittenText(m.Keys)
	case journal.KindClaim:
		return "resumed" + WrittenText(m.Keys)
	case journal.KindCall:
		switch {
		case !m.Inner:
			return at("started" + ArrowTo(m.Next))
		case node == "": // the lead of a team
			return ""
		}
		return at("started")
	case journal.KindStep:
		if m.Inner || len(m.From) == 0 {
			return ""
		}
		if len(m.FailedNodes) > 0 {
			return at(strings.Join(m.From, ", ") + " failed: " + ShortenLine(m.Failure) + ArrowTo(m.Next) + WrittenText(m.Keys))
		}
		return at(strings.Join(m.From, ", ") + cmp.Or(ArrowTo(m.Next), " → end") + WrittenText(m.Keys))
	case journal.KindTask:
		switch {
		case m.Failure != "":
			return at("failed: " + ShortenLine(m.Failure))
		case m.Inner:
			return ""
		}
		return at("done" + WrittenText(m.Keys))
	case journal.KindVoid:
		return at("its results were dropped: " + m.What)
	case journal.KindIntent, journal.KindEffect, journal.KindFailure:
		return at(s.describeEffect(m))
	case journal.KindQuestion:
		if m.Question.Rejected != "" {
			return at("the answer was not accepted: " + m.Question.Rejected)
		}
		if m.Question.Kind == graph.KindTimer {
			return at("waits until " + m.Question.Due.Local().Format(time.DateTime))
		}
		if m.Question.Kind == graph.KindEvent {
			return at(m.Question.Prompt)
		}
		return at("asked " + QuoteText(m.Question.Prompt))
	case journal.KindAnswer:
		return at(describeAnswer(m))
	case journal.KindReturn:
		if node == "" || m.What != "" { // the lead of a team, or one that was collected
			return ""
		}
		return at("ended")
	case journal.KindEdit:
		return at(cmp.Or(m.By, "you") + " edited " + m.What + ArrowTo(m.Next))
	case journal.KindFork:
		return "forked from " + runs.Point{Run: m.Entry.From.Thread, At: m.Entry.From.Seq}.String() + byName(m) + ArrowTo(m.Next)
	case journal.KindSnapshot:
		return ""
	case journal.KindEnd:
		return s.describeEnd(m)
	}
	return at(m.Kind.String() + " " + m.What)
}

// describeEnd describes why a drive stopped.
func (s *Describer) describeEnd(m *runs.Moment) string {
	switch m.What {
	case graph.Waiting.String():
		if len(m.Open) == 0 && !m.Due.IsZero() {
			return "waits for a time"
		}
		if len(m.Open) > 0 && !slices.ContainsFunc(m.Open, func(id string) bool { return !slices.Contains(s.events, id) }) {
			return "waits for an event"
		}
		return "waits for an answer"
	case graph.Failed.String():
		return "failed: " + cmp.Or(flow.PlainReason(m.Reason), "no reason is recorded")
	case graph.CleanedUp.String():
		return "cleaned up after: " + ShortenLine(flow.PlainReason(m.Reason))
	case graph.Paused.String(), graph.Canceled.String():
		return "stopped (" + m.What + ")"
	}
	return m.What + byName(m)
}

// byName says who asked for what a record has done, if that is recorded.
func byName(m *runs.Moment) string {
	if m.By == "" {
		return ""
	}
	return " by " + m.By
}

// describeSent describes what people have said to an agent while it worked.
func describeSent(sent []agent.SentMessage) string {
	var texts []string
	for _, m := range sent {
		text := QuoteText(m.Text)
		if m.By != "" {
			text += " of " + m.By
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// describeEffect describes an effect without its node.
func (s *Describer) describeEffect(m *runs.Moment) string {
	failed := m.Kind == journal.KindFailure
	open := m.Kind == journal.KindIntent
	switch {
	case agent.IsInterruptRecord(m.ID):
		return agent.InterruptReason
	case m.Failure != "" && m.Call == nil && len(m.FailedNodes) > 0:
		return "failed" + tookText(m) + ": " + ShortenLine(m.Failure)
	case m.Failure != "" && m.Call == nil: // of a task of a queue
		return ShortenLine(m.Failure)
	case m.Call != nil:
		return describeCall(m)
	case m.Hook != nil:
		return cmp.Or(m.Hook.Describe(), m.Hook.DescribeRun()) + tookText(m)
	case len(m.Sent) > 0:
		return "took up " + describeSent(m.Sent)
	case m.Effect == agent.HookEffect && open:
		return "a hook was cut off: it may or may not have done its work, and does not run again"
	case m.Reply != nil && m.Reply.Interrupted:
		return "the reply was cut off"
	case m.Reply != nil:
		text := modelName(m.Reply.Model) + " answered"
		if m.Effect == "summary" {
			text = modelName(m.Reply.Model) + " summarised the conversation"
		}
		if n := m.Reply.Usage.Input + m.Reply.Usage.Output; n > 0 {
			text += ", " + wording.FormatTokens(n) + " tokens"
		}
		if !provider.IsReplay(m.Reply.Model) { // a transcript takes no time
			text += tookText(m)
		}
		var names []string
		for _, c := range m.Asks {
			names = append(names, c.Name)
		}
		if len(names) > 0 {
			text += ", and calls " + strings.Join(slices.Compact(names), ", ")
		}
		if m.Reply.Flaw != "" {
			text += " (" + m.Reply.Flaw + ")"
		}
		return text
	case m.Search != nil:
		return fmt.Sprintf("searched %s: %s", QuoteText(m.Search.Query), wording.FormatCount(len(m.Search.Chunks), "passage"))
	case m.Effect == "script" && failed:
		return "its script failed" + tookText(m)
	case m.Effect == "script" && open:
		return "runs its script"
	case m.Effect == "script":
		return "ran its script" + tookText(m)
	case m.Effect == "instructions":
		return "the instructions are made"
	case m.Effect == "sources" && !open && !failed:
		return "looked which servers of tools are ready" + tookText(m)
	case failed:
		return cmp.Or(m.Effect, "an effect") + " failed" + tookText(m)
	case open:
		return cmp.Or(m.Effect, "an effect") + " began; its outcome is not recorded"
	}
	return cmp.Or(m.Effect, "an effect") + " done" + tookText(m)
}

// describeCall describes the call of a tool with its outcome.
func describeCall(m *runs.Moment) string {
	c := m.Call
	text := strings.TrimRight("called "+c.Tool+" "+describeArgs(c.Args), " ") + ": "
	switch {
	case m.Kind == journal.KindFailure, c.Status == "failed":
		text += "failed"
	case m.Kind == journal.KindIntent:
		return text + "its outcome is not recorded"
	default:
		text += "ok"
	}
	text += tookText(m)
	if c.Status == "failed" && c.Outcome != "" {
		text += ": " + outcomeLine(c)
	}
	return text
}

// describeArgs returns the arguments of a call on one line: the value alone if there is one, otherwise names and
// values.
func describeArgs(args json.RawMessage) string {
	var named map[string]any
	if json.Unmarshal(args, &named) != nil {
		return wording.CutText(question.UnescapeHTML(string(args)), maxArgText, "…")
	}
	for _, key := range []string{"command", "path", "pattern", "query", "url", "name", "prompt", "message"} {
		if text, ok := named[key].(string); ok && text != "" {
			first, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
			if more != "" {
				first += " …"
			}
			return wording.CutText(first, maxArgText, "…")
		}
	}
	if len(named) == 0 {
		return ""
	}
	return wording.CutText(question.UnescapeHTML(string(args)), maxArgText, "…")
}

// maxArgText is how many characters of the arguments of a call are shown on its line.
const maxArgText = 80

// maxOutcomeLines is how many lines of an outcome are shown.
const maxOutcomeLines = 3

// previewOutcome returns the first lines of an outcome: of the text that a script printed, if it is one.
func previewOutcome(outcome string) string {
	var printed struct {
		Output *string `json:"output"`
	}
	if json.Unmarshal([]byte(outcome), &printed) != nil || printed.Output == nil {
		return ShortenLine(outcome)
	}
	lines := strings.Split(strings.TrimSpace(*printed.Output), "\n")
	more := len(lines) - maxOutcomeLines
	if more > 0 {
		lines = lines[:maxOutcomeLines]
	}
	for i, l := range lines {
		lines[i] = ShortenLine(l)
	}
	if more > 0 {
		lines = append(lines, "… "+wording.FormatCount(more, "more line"))
	}
	return strings.Join(lines, "\n    ")
}

// outcomeLine returns the line of a failed outcome that says most: the last one of an error output in JSON, the error
// of an agent that was collected, otherwise the first.
func outcomeLine(c *runs.ToolCall) string {
	outcome := c.Outcome
	switch failures, reason := team.ReadCollected(c.Tool, outcome); {
	case failures == 1:
		return ShortenLine(reason)
	case failures > 1:
		return ShortenLine(fmt.Sprintf("%s: %s", wording.FormatCount(failures, "agent"), reason))
	}
	var wrapped struct {
		Stderr string `json:"stderr"`
		Error  string `json:"tool_call_error"`
	}
	if json.Unmarshal([]byte(outcome), &wrapped) == nil {
		lines := strings.Split(strings.TrimSpace(wrapped.Stderr), "\n")
		outcome = cmp.Or(lines[len(lines)-1], wrapped.Error, outcome)
	}
	return ShortenLine(outcome)
}

// describeAnswer describes an answer and who gave it.
func describeAnswer(m *runs.Moment) string {
	switch {
	case m.Expired && m.Refused != "":
		return ShortenLine(m.Refused)
	case m.Expired:
		return "its time has come"
	}
	if q := m.Question; q != nil && q.Kind == graph.KindEvent && m.Refused == "" {
		return "the event came with " + QuoteText(answerValue(m.Answer))
	}
	who := cmp.Or(m.By, "you") + " answered "
	if m.Ahead {
		who = "answered ahead: "
	}
	if m.Refused != "" {
		return cmp.Or(m.By, "you") + " refused: " + ShortenLine(m.Refused)
	}
	answer := answerValue(m.Answer)
	if q := m.Question; !m.Ahead && m.By == "" && q != nil && q.Default != "" && q.Default == answer {
		return "answered with the default " + QuoteText(answer) // by a person, or by raddle without one
	}
	return who + QuoteText(answer)
}

// answerValue returns an answer as its person has given it.
func answerValue(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// modelName returns a model for people.
func modelName(model string) string {
	switch {
	case model == "":
		return "the model"
	case provider.IsReplay(model):
		return "the transcript"
	}
	return model
}

// tookText returns how long an effect took and how often it was tried again, after a comma; "" if that is unknown.
func tookText(m *runs.Moment) string {
	if n := m.Timing.Retries; n > 0 {
		return ", " + FormatSeconds(m.Took) + " (tried again " + wording.FormatCount(n, "time") + ")"
	}
	if m.Took <= 0 {
		return ""
	}
	return ", " + FormatSeconds(m.Took)
}

// FormatSeconds returns a duration for people: "0.1 s", "41 s", "2m05s".
func FormatSeconds(d time.Duration) string {
	switch {
	case d < 9950*time.Millisecond: // what is more would be 10.0
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(10, int(d.Seconds())))
	}
	return wording.FormatDuration(d)
}

// ArrowTo returns an arrow to the nodes that run next, "" if none does.
func ArrowTo(next []string) string {
	if len(next) == 0 {
		return ""
	}
	return " → " + strings.Join(next, ", ")
}

// WrittenText returns the keys that a record has written, after two spaces.
func WrittenText(keys []string) string {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == agent.Messages.Name() })
	if len(keys) == 0 {
		return ""
	}
	return "  wrote " + strings.Join(keys, ", ")
}

// QuoteText returns the first line of a text in quotes, cut to a length.
func QuoteText(text string) string {
	first, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = wording.CutText(first, 60, "…")
	if more != "" && !strings.HasSuffix(first, "…") {
		first += " …"
	}
	return `"` + first + `"`
}

// These limits say how much of what was said is shown to people.
const (
	maxSaid      = 40 // replies, calls and answers
	maxReplyText = 12 // lines of a reply
)

// DescribeSaid returns what was said in a run: replies of models, calls of tools with their outcomes, questions and
// answers. calls are those of the run, with the outcomes that are no effects.
func (s *Describer) DescribeSaid(story []runs.Moment, calls []runs.ToolCall) string {
	var blocks []string
	several := slices.ContainsFunc(story, func(m runs.Moment) bool { return (m.Reply != nil || m.Kind == journal.KindAnswer) && m.Node != "" })
	add := func(node, text string) {
		if text = strings.TrimRight(text, "\n"); text == "" {
			return
		}
		if several {
			text = cmp.Or(s.nameNode(node), s.lead) + ": " + text
		}
		blocks = append(blocks, text)
	}
	for i := range story {
		switch m := &story[i]; {
		case m.Reply != nil:
			add(m.Node, cutLines(m.Reply.Text, maxReplyText))
			for _, c := range m.Asks {
				if at := slices.IndexFunc(calls, func(k runs.ToolCall) bool { return k.Path == m.Path && k.ID == c.ID }); at >= 0 && !isEmptyLook(calls[at]) {
					add(m.Node, describeCallLines(&calls[at]))
				}
			}
		case m.Kind == journal.KindAnswer && m.Question != nil && m.Question.Kind != graph.KindRemote && m.Question.Kind != graph.KindTimer:
			asks := "asks " + QuoteText(m.Question.Prompt)
			if m.Question.Kind == graph.KindEvent {
				asks = m.Question.Prompt
			}
			add(m.Node, asks+"\n  "+describeAnswer(m))
		}
	}
	if more := len(blocks) - maxSaid; more > 0 {
		blocks = append([]string{fmt.Sprintf("(%d before: raddle runs history)", more)}, blocks[more:]...)
	}
	return term.CleanText(strings.Join(blocks, "\n"))
}

// cutLines returns the first lines of a text, wrapped nowhere, and says how many are left out.
func cutLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	more := len(lines) - most
	if more > 1 {
		lines = append(lines[:most], fmt.Sprintf("… %s", wording.FormatCount(more, "more line")))
	}
	return strings.Join(lines, "\n")
}

// describeCallLines returns a call and, on the next line, its outcome.
func describeCallLines(c *runs.ToolCall) string {
	outcome := c.Status
	switch c.Status {
	case "done":
		outcome = "ok"
	case "unrecorded":
		outcome = "its outcome is not recorded"
	}
	switch {
	case c.Outcome != "" && c.Status == "failed":
		outcome += ": " + outcomeLine(c)
	default:
		if text := previewOutcome(c.Outcome); text != "" {
			outcome += ": " + text
		}
	}
	return "● " + term.CleanText(c.Tool) + " " + term.CleanText(cmp.Or(describeArgs(c.Args), "{}")) + "\n  " + outcome
}

// isEmptyLook reports whether a call has looked for messages and found none.
func isEmptyLook(c runs.ToolCall) bool {
	var box struct{ Messages *[]json.RawMessage }
	return c.Tool == "agent__check_inbox" && json.Unmarshal([]byte(c.Outcome), &box) == nil && box.Messages != nil && len(*box.Messages) == 0
}

// maxCallText is how many characters of a text are shown on one line.
const maxCallText = 160

// ShortenLine returns a text on one line, cut to a maximum length.
func ShortenLine(s string) string {
	s = term.CleanText(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > maxCallText {
		return string(r[:maxCallText]) + "..."
	}
	return s
}

// DescribeMoments returns moments as lines with their numbers and times, and a line above the first moment of each day.
// paint styles a text.
func (s *Describer) DescribeMoments(moments []runs.Moment, paint func(term.Style, string) string) string {
	var b strings.Builder
	day := ""
	for i := range moments {
		text := s.DescribeMoment(&moments[i])
		if text == "" {
			continue
		}
		at := moments[i].Time.Local()
		if date := at.Format(time.DateOnly); date != day {
			day = date
			b.WriteString(paint(term.Dim, date) + "\n")
		}
		fmt.Fprintf(&b, "%6d  %s  %s\n", moments[i].Seq, paint(term.Dim, at.Format(time.TimeOnly)), term.CleanLine(text))
	}
	return b.String()
}

// FormatMilliseconds returns a time in milliseconds, for people: those below a second as a whole number of them.
func FormatMilliseconds(ms float64) string {
	if ms < 950 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return FormatSeconds(time.Duration(ms * float64(time.Millisecond)))
}
