package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

// DescribeCall returns a call on one line: its tool and, shortened, the command, path, address or arguments with which
// it was made.
func DescribeCall(c *runs.ToolCall) string {
	args := c.Args
	if len(c.MadeWith) > 0 {
		args = c.MadeWith
	}
	return strings.TrimSpace(term.CleanLine(c.Tool) + " " + term.CleanLine(describeArgs(args)))
}

// NamePath returns the path of a conversation for people, without the run: agents by their names, and no teams.
func NamePath(path string) string {
	s := Describer{agents: map[string]string{}}
	path = strings.TrimSuffix(runs.PlainPath(path), "/")
	for id := range strings.SplitSeq(path, "/") {
		if name := team.AgentOf(id); name != "" {
			s.agents[id] = name
		}
	}
	return s.nameNode(path)
}

// DescribePermission says in a few words what was decided about a call: "allowed", "asked, allowed once", "denied".
func DescribePermission(c *runs.ToolCall) string {
	p := c.Permission
	switch {
	case p == nil && c.Refused:
		return "refused, not recorded why"
	case p == nil && !c.Reached && c.Status != "unrecorded" && c.Status != "open":
		return "nothing to decide"
	case p == nil:
		return "not recorded"
	case p.Verdict == "allow" && p.IsBoxed():
		return "allowed in the box"
	case p.Verdict == "allow":
		return "allowed"
	case p.Verdict == "deny":
		return "denied"
	}
	switch p.Answer {
	case "once":
		return "asked, allowed once"
	case "run", "words":
		return "asked, allowed in this run"
	case "always":
		return "asked, allowed always"
	case "edit":
		return "asked, changed"
	case "headless":
		return "asked, no one there"
	case "changed":
		return "asked, answer outdated"
	case "":
		return "asked, not answered"
	}
	return "asked, not allowed"
}

// maxHeldShown is how many of the things that the box held back are shown of a call.
const maxHeldShown = 5

// DescribeWhy returns for each call, in order, what was decided about it, and which rule, answer, default or box let it
// pass or stopped it. Lines are wrapped to a width; 0: they are not.
func (s *Describer) DescribeWhy(calls []runs.ToolCall, width int, colors term.Colors) string {
	w := &whyWriter{width: width, colors: colors}
	counts := map[string]int{}
	for i := range calls {
		c := &calls[i]
		text := DescribeCall(c)
		if node := s.nameNode(strings.TrimSuffix(runs.PlainPath(c.Path), "/")); node != "" {
			text = node + ": " + text
		}
		w.addLine("● ", "", text)
		w.addCall(c)
		counts[kindOf(c)]++
	}
	w.text.WriteString(wording.FormatCount(len(calls), "call"))
	separator := ": "
	for _, kind := range []string{"allowed", "asked", "denied", "not recorded", "nothing to decide"} {
		if counts[kind] > 0 {
			fmt.Fprintf(&w.text, "%s%d %s", separator, counts[kind], kind)
			separator = ", "
		}
	}
	w.text.WriteString("\n")
	return w.text.String()
}

// kindOf returns the word under which a call is counted.
func kindOf(c *runs.ToolCall) string {
	words := DescribePermission(c)
	switch {
	case c.Permission == nil && words != "nothing to decide":
		return "not recorded"
	case c.Permission == nil:
		return words
	case c.Permission.Verdict == "ask":
		return "asked"
	case c.Permission.Verdict == "deny":
		return "denied"
	}
	return "allowed"
}

// A whyWriter writes what was decided about calls.
type whyWriter struct {
	text   strings.Builder
	width  int
	colors term.Colors
}

// addCall adds the lines below a call.
func (w *whyWriter) addCall(c *runs.ToolCall) {
	p := c.Permission
	words := DescribePermission(c)
	if p == nil {
		w.addLine("  ", words, withoutRecord(c, words))
		return
	}
	grounds := make([]string, len(p.Grounds))
	for i, g := range p.Grounds {
		grounds[i] = term.CleanLine(g.Describe())
	}
	switch len(grounds) {
	case 0:
		w.addLine("  ", words, "")
	case 1:
		w.addLine("  ", words, ": "+grounds[0])
	default:
		w.addLine("  ", words, ":")
		for _, g := range grounds {
			w.addLine("    ", "", g)
		}
	}
	if p.More > 0 {
		w.addLine("    ", "", fmt.Sprintf("and %d more", p.More))
	}
	if text := describeAnswerOf(p, c.AnsweredBy); text != "" {
		w.addLine("  ", "", text)
	}
	for i, held := range c.Held {
		if i == maxHeldShown {
			w.addLine("  ", "", fmt.Sprintf("held back: %d more (--output json)", len(c.Held)-i))
			break
		}
		w.addLine("  ", "", "held back: "+term.CleanLine(held))
	}
}

// withoutRecord says why nothing is recorded about the permission of a call.
func withoutRecord(c *runs.ToolCall, words string) string {
	switch {
	case words == "nothing to decide" && c.Status == "failed":
		return ": the call was not made, because it could not be understood or is not possible"
	case words == "nothing to decide":
		return ": it changes only what the agent notes for itself"
	case c.Status == "open":
		return ": the call was not made yet"
	case c.Status == "unrecorded":
		return ": the process ended during the call"
	}
	return ": the run is from an older version of raddle, or from a program that lets every call pass"
}

// describeAnswerOf says who answered the question about a call, and what the answer allows; "" if there was none.
func describeAnswerOf(p *agent.Permission, by string) string {
	who := cmp.Or(term.CleanLine(by), "you")
	text := ""
	switch p.Answer {
	case "once":
		text = who + " allowed this call only"
	case "run", "words":
		text = who + " allowed it for this run"
	case "always":
		text = who + " allowed it always"
	case "no", "refused":
		text = who + " did not allow it"
	case "edit":
		text = who + " changed the call"
	case "changed":
		text = "your answer"
		if by != "" {
			text = "the answer of " + who
		}
		text += " did not count: what the call runs had changed since"
	}
	if len(p.Rules) > 0 {
		rules := slices.Clone(p.Rules)
		for i, r := range rules {
			rules[i] = term.CleanLine(r)
		}
		text += ", with the rule " + strings.Join(rules, ", ")
	}
	return text
}

// whyStyles are those of the words about a call.
var whyStyles = map[string]term.Style{"allowed": term.Green, "allowed in the box": term.Green, "denied": term.Red, "asked, no one there": term.Red, "asked, not allowed": term.Red}

// addLine adds a line, in which the first words are painted, wrapped below its indent.
func (w *whyWriter) addLine(indent, words, text string) {
	lines := []string{words + text}
	if w.width > 0 {
		lines = term.WrapPainted(words+text, max(1, w.width-term.TextWidth(indent)))
	}
	style, painted := whyStyles[words]
	if words != "" && !painted {
		style = term.Yellow
	}
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, words); ok && i == 0 && words != "" {
			line = w.colors.Paint(style, words) + rest
		}
		if i == 1 {
			indent = strings.Repeat(" ", term.TextWidth(indent))
		}
		w.text.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
}
