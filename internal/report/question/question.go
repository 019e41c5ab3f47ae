// Package question asks people the questions of runs at a terminal, and says in words who asks what and which answers
// there are.
package question

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/team"
)

// KindConfirm is a question that is answered with yes or no and nothing else.
const KindConfirm = "confirm"

// An option is an answer to choose: its value, and its text for people.
type option struct {
	value string
	label string
	ask   string // not empty if the person completes it with a text; then it is the question for that text
}

// optionsOf returns the answers that a person may choose from.
func optionsOf(q graph.Question) []option {
	var list []option
	for _, o := range q.Options {
		list = append(list, option{value: o, label: term.CleanText(labelOf(q, o))})
	}
	switch {
	case len(list) == 0:
		return nil
	case q.Kind == agent.KindPermission:
		return append(list, option{value: "no: ", label: "no, and say why", ask: "Reason: "})
	case q.Free && q.Kind != KindConfirm && q.Kind != agent.KindCheckbox:
		return append(list, option{label: otherOption, ask: otherPrompt + " "})
	}
	return list
}

// labelOf explains the answers that are raddle's own words.
func labelOf(q graph.Question, value string) string {
	var what string
	switch q.Kind {
	case agent.KindPermission:
		what = map[string]string{
			"once": "allow this call", "run": "allow it for the rest of the run", "no": "refuse",
			"words":  "allow it for the rest of the run: " + strings.Join(DecodeCall(q).Words, ", "),
			"always": "allow it from now on: " + strings.Join(DecodeCall(q).Grant, ", "),
		}[value]
	case agent.KindDoubt:
		what = map[string]string{"retry": "make the call again", "skip": "leave it, and tell the model"}[value]
	}
	if what == "" {
		return value
	}
	return value + " (" + what + ")"
}

// defaultOption returns the index of the option that Enter alone chooses: the default
// of the question, "no" if it asks for permission, otherwise the first.
func defaultOption(q graph.Question, options []option) int {
	first := q.Default
	if first == "" && q.Kind == agent.KindPermission {
		first = "no"
	}
	return max(0, slices.IndexFunc(options, func(o option) bool { return o.ask == "" && o.value == first }))
}

// DecodeCall returns the call of a tool that a question is about; it has no name for other
// questions.
func DecodeCall(q graph.Question) agent.CallData {
	var c agent.CallData
	if json.Unmarshal(q.Data, &c) != nil {
		return agent.CallData{}
	}
	return c
}

// FormatName returns a question's id, with the tool that asks.
func FormatName(q graph.Question) string {
	if c := DecodeCall(q); c.Tool != "" {
		return q.ID + " (" + term.CleanText(c.Tool) + ")"
	}
	return q.ID
}

// parentPath returns the path of the source of a question, without the node that asks:
// "" for the run's own nodes.
func parentPath(id string) string {
	path, _, _ := strings.Cut(id, "#")
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}

// FormatAsker returns who asks, for people: a spawned agent by its name and id, others by the
// nodes above them. "" means the agent of the run.
func FormatAsker(q graph.Question) string {
	path := parentPath(q.ID)
	parts := strings.Split(path, "/")
	for i, part := range slices.Backward(parts) {
		if name := team.AgentOf(part); name != "" {
			return term.CleanText(strings.Join(append([]string{name + " (" + part + ")"}, parts[i+1:]...), ", "))
		}
	}
	if rest, lead := strings.CutSuffix(path, leadOf); lead {
		path = strings.TrimSuffix(rest, "/")
	}
	return term.CleanText(path)
}

// leadOf is the end of the path of a team's lead.
const leadOf = team.Node + "/" + team.Lead

// FormatAskerLine returns the line above a question that says who asks it, and its number if there
// are several; "" if that is obvious.
func FormatAskerLine(q graph.Question, n, of int) string {
	who := FormatAsker(q)
	switch {
	case of > 1 && who != "":
		return fmt.Sprintf("%d/%d %s asks:", n, of, who)
	case of > 1:
		return fmt.Sprintf("%d/%d", n, of)
	case who != "":
		return who + " asks:"
	}
	return ""
}

// FormatPrompt returns a question as lines. The first one is highlighted, and so are the lines
// of a change to a file below it.
func FormatPrompt(q graph.Question, colors term.Colors) string {
	lines := strings.Split(strings.TrimRight(term.RevealText(q.Prompt), "\n"), "\n")
	about := DecodeCall(q).Tool != ""
	if about {
		lines[0] = UnescapeHTML(lines[0])
	}
	for i, l := range lines {
		color := StyleDiff(l)
		switch {
		case i == 0 || !about:
			color = term.Bold
		case strings.HasPrefix(l, "Careful: "):
			color = term.Red
		}
		if color != "" {
			lines[i] = colors.Paint(color, l)
		}
	}
	if q.Kind == agent.KindDoubt {
		lines = append(lines, doubtHelp)
	}
	if q.Rejected != "" {
		lines = append(lines, "("+term.CleanText(q.Rejected)+")")
	}
	return strings.Join(lines, "\n")
}

var escapedForHTML = strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">")

// UnescapeHTML undoes the escapes that keep JSON safe in HTML, unless the text may contain
// such escapes of its own.
func UnescapeHTML(s string) string {
	if strings.Contains(s, `\\u`) {
		return s
	}
	return escapedForHTML.Replace(s)
}

// DescribeAnswers says how a question can be answered on a command line.
func DescribeAnswers(q graph.Question) string {
	switch options := strings.Join(q.Options, ", "); {
	case len(q.Options) == 0:
		return ""
	case q.Kind == agent.KindPermission:
		return "answers: " + options + "; " + q.ID + "=REASON refuses it with a reason"
	case q.Kind == agent.KindCheckbox:
		return "answers: any of " + options + ", with commas between them"
	case q.Free && q.Kind != KindConfirm:
		return "answers: " + options + ", or any other text"
	default:
		return "answers: " + options
	}
}

// doubtHelp says how to avoid questions about calls that were interrupted.
const doubtHelp = "A tool that may be repeated can say so, and is then not asked about: `# raddle: idempotent`, or `# raddle: read-only` if it changes nothing. " +
	"`raddle resume --in-doubt retry|skip` answers all such questions."
