package question

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/tool/permission"
)

// These are the choices of a question about permission that are no answers by themselves.
const (
	choiceReason  = "reason"
	choiceAlways  = "always"
	choiceEdit    = "edit"
	choiceExplain = "explain"
)

// A permit asks a person about a call.
type permit struct {
	who    term.Prompter
	q      graph.Question
	call   agent.CallData
	colors term.Colors
	cols   int // of the terminal; 0: the terminal only prints lines
	values []string
}

// newPermit returns what asks about a call, or nil if the question has no details, as those of older versions.
func newPermit(who term.Prompter, q graph.Question, colors term.Colors) *permit {
	p := &permit{who: who, q: q, call: DecodeCall(q), colors: colors}
	if q.Kind != agent.KindPermission || p.call.Detail == nil {
		return nil
	}
	if w, ok := who.(interface{ Columns() int }); ok {
		p.cols = w.Columns()
	}
	return p
}

// ask shows the question and returns the answer.
func (p *permit) ask(ctx context.Context) (any, error) {
	choices := p.listChoices()
	if err := p.who.ShowQuestion(ctx, p.describeCall(), choices); err != nil {
		return nil, err
	}
	menu := term.Menu{Choices: choices, First: slices.Index(p.values, "no")}
	if p.cols > 0 {
		menu.Frame, menu.Hint = "│", p.describePlace()
	}
	for {
		n, err := p.who.ChooseOne(ctx, menu)
		if err != nil {
			return nil, err
		}
		answer, err := p.finishChoice(ctx, p.values[n])
		if answer != nil || endsQuestion(err) {
			return answer, err
		}
	}
}

// askAgain asks for the last step of an answer that was refused.
func (p *permit) askAgain(ctx context.Context, wrong agent.PermissionAnswer) (any, error) {
	var answer any
	var err error
	switch wrong.Choice {
	case choiceAlways:
		answer, err = p.editRules(ctx, wrong.Rules)
	case choiceEdit:
		answer, err = p.editArguments(ctx)
	}
	if answer != nil || endsQuestion(err) {
		return answer, err
	}
	return p.ask(ctx)
}

// endsQuestion reports whether the person does not return to the choices after an error: Esc alone leads back to them.
func endsQuestion(err error) bool {
	return err != nil && (!errors.Is(err, term.ErrLeftOpen) || errors.Is(err, term.ErrInterrupted))
}

// finishChoice asks for what a choice needs. The answer is nil if the person shall choose again.
func (p *permit) finishChoice(ctx context.Context, value string) (answer any, err error) {
	switch value {
	case choiceReason:
		text, err := p.who.ReadText(ctx, "Reason: ", "")
		if err != nil {
			return nil, err
		}
		return "no: " + text, nil
	case choiceAlways:
		return p.editRules(ctx, p.call.Grant)
	case choiceEdit:
		return p.editArguments(ctx)
	case choiceExplain:
		return nil, p.who.ShowQuestion(ctx, p.explain(), nil)
	}
	return value, nil
}

// listChoices returns the choices, in the order of p.values.
func (p *permit) listChoices() []term.Choice {
	labels := map[string]string{"words": "Allow " + p.describeWords() + " in this run", "once": "Allow once", "run": "Allow in this run", "always": "Always allow …", "no": "No"}
	what := "arguments"
	if name, _ := p.soleText(); name == "command" {
		what = "command"
	}
	p.values = nil
	var choices []term.Choice
	add := func(value string, c term.Choice) {
		p.values = append(p.values, value)
		choices = append(choices, c)
	}
	for _, o := range p.q.Options {
		add(o, term.Choice{Label: cmp.Or(labels[o], term.CleanText(o)), Word: o, Step: o == choiceAlways})
	}
	add(choiceReason, term.Choice{Label: "No, and say why", Step: true})
	add(choiceEdit, term.Choice{Label: "Edit the " + what, Step: true, Key: "e", Word: choiceEdit})
	add(choiceExplain, term.Choice{Label: "Explain why it asks", Step: true, Key: "?", Word: choiceExplain})
	return choices
}

// describeWords returns the first words of the commands that "words" allows.
func (p *permit) describeWords() string {
	var list []string
	for _, rule := range p.call.Words {
		if text := permission.DescribeWords(rule); text != "" {
			list = append(list, revealLine(text))
		}
	}
	return strings.Join(list, " and ")
}

// describePlace says where the call works.
func (p *permit) describePlace() string {
	dir := p.call.Detail.Dir
	if dir == "" {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		if rel, err := filepath.Rel(home, dir); err == nil && filepath.IsLocal(rel) {
			dir = filepath.Join("~", rel)
		}
	}
	return "in " + term.CleanLine(dir)
}

// maxBlockLines is how many lines of a command or of a change the question shows.
const maxBlockLines = 40

// describeCall returns the question: which agent wants what, the command or the change, and why it
// asks.
func (p *permit) describeCall() string {
	who := cmp.Or(FormatAsker(p.q), p.call.Agent, "the agent")
	does := cmp.Or(p.call.Detail.Does, "call "+p.call.Tool)
	title := term.CleanLine(who) + " wants to " + term.CleanLine(revealLine(does))
	if p.call.Edited {
		title += " (with your arguments)"
	}
	var lines []string
	block := p.blockLines()
	lines = append(lines, block[:min(len(block), maxBlockLines)]...)
	if more := len(block) - maxBlockLines; more > 0 {
		lines = append(lines, p.colors.Paint(term.Dim, fmt.Sprintf("… %d more lines: ? shows them", more)))
	}
	lines = append(lines, p.reasonLines()...)
	if p.q.Rejected != "" {
		lines = append(lines, "("+term.CleanText(p.q.Rejected)+")")
	}
	if p.cols == 0 {
		return p.colors.Paint(term.Bold, title) + "\n" + strings.Join(prefixLines("  ", lines), "\n")
	}
	lines = prefixLines("│ ", p.wrapLines(lines))
	rule := ""
	if room := min(p.cols, 80) - term.TextWidth(title) - 4; room > 0 {
		rule = " " + strings.Repeat("─", room)
	}
	head := p.wrapLines([]string{title})
	head[0] = "┌ " + p.colors.Paint(term.Bold, head[0])
	for i := 1; i < len(head); i++ {
		head[i] = "│ " + p.colors.Paint(term.Bold, head[i])
	}
	if len(head) == 1 {
		head[0] += rule
	}
	return strings.Join(slices.Concat(head, lines, []string{"│"}), "\n")
}

func prefixLines(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
}

// wrapLines divides lines so that they fit behind the frame.
func (p *permit) wrapLines(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, term.WrapPainted(line, p.cols-3)...)
	}
	return out
}

// revealLine returns text as one line in which nothing is hidden.
func revealLine(text string) string { return term.OneLine(term.RevealText(text)) }

// blockLines returns the command, the change of a file or the arguments, as they are shown.
func (p *permit) blockLines() []string {
	d := p.call.Detail
	switch {
	case d.Command != "":
		return paintLines(p.colors, prefixLines("  ", splitRevealed(d.Command)), func(string) term.Style { return term.Bold })
	case d.Diff > 0 && d.Diff < len(p.q.Prompt):
		return paintLines(p.colors, prefixLines("  ", splitRevealed(p.q.Prompt[d.Diff:])), StyleDiff)
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(p.call.Args, &args) != nil {
		return prefixLines("  ", splitRevealed(string(p.call.Args)))
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		text := ""
		if json.Unmarshal(args[name], &text) != nil {
			text = UnescapeHTML(string(args[name]))
		}
		value := splitRevealed(text)
		lines = append(lines, "  "+revealLine(name)+": "+value[0])
		lines = append(lines, prefixLines("    ", value[1:])...)
	}
	return lines
}

// splitRevealed returns the lines of a text in which nothing is hidden.
func splitRevealed(text string) []string {
	return strings.Split(strings.ReplaceAll(strings.TrimRight(term.RevealText(text), "\n"), "\t", "    "), "\n")
}

// paintLines paints lines, each in the style for its text without the indentation.
func paintLines(colors term.Colors, lines []string, style func(line string) term.Style) []string {
	for i, l := range lines {
		if s := style(strings.TrimPrefix(l, "  ")); s != "" {
			lines[i] = colors.Paint(s, l)
		}
	}
	return lines
}

// StyleDiff returns the style of a line of a unified diff; "": none.
func StyleDiff(line string) term.Style {
	switch {
	case strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- "):
		return term.Bold
	case strings.HasPrefix(line, "+"):
		return term.Green
	case strings.HasPrefix(line, "-"):
		return term.Red
	case strings.HasPrefix(line, "@@"):
		return term.Cyan
	}
	return ""
}

// reasonLines returns the risks, and for each part of the call why it asks.
func (p *permit) reasonLines() (lines []string) {
	d := p.call.Detail
	var removed []string
	for _, part := range d.Parts {
		if part.Detail != "" {
			removed = append(removed, part.Detail)
		}
	}
	for _, risk := range d.Risks {
		line := "! " + risk
		if strings.HasPrefix(risk, "removes") && len(removed) > 0 {
			line += ": " + strings.Join(removed, ", ")
		}
		lines = append(lines, p.colors.Paint(term.Red, revealLine(line)))
	}
	for _, part := range d.Parts {
		text := part.Text
		if text == d.Command || text == p.call.Tool {
			text = "it"
		}
		lines = append(lines, p.colors.Paint(term.Dim, revealLine(text+" "+part.Why)))
	}
	return lines
}

// explain returns what decided about each part.
func (p *permit) explain() string {
	var b strings.Builder
	if block := p.blockLines(); len(block) > maxBlockLines {
		b.WriteString(strings.Join(block, "\n") + "\n")
	}
	fmt.Fprintf(&b, "tool: %s\n", term.CleanLine(p.call.Tool))
	for _, part := range p.call.Detail.Parts {
		rule := "no rule is about it; this is the default"
		if part.Rule != "" {
			rule = "the rule " + part.Rule
		}
		fmt.Fprintf(&b, "%s\n  %s\n  decided by: %s\n", revealLine(part.Text), revealLine(part.Why), revealLine(rule))
	}
	switch {
	case len(p.call.Detail.Risks) > 0:
		b.WriteString("It may do harm that cannot be undone, so it can only be allowed once.\n")
	case len(p.call.Grant) > 0:
		b.WriteString("\"Allow in this run\" adds the rules: " + revealLine(strings.Join(p.call.Grant, ", ")) + "\n")
		if len(p.call.Words) > 0 {
			b.WriteString("\"Allow " + p.describeWords() + " in this run\" adds: " + revealLine(strings.Join(p.call.Words, ", ")) + "\n")
		}
	default:
		b.WriteString("No rule could name what it does, so it can only be allowed once.\n")
	}
	b.WriteString("See: raddle help permissions")
	return p.frameLines(b.String())
}

// editRules lets the person make the rules narrower that "always" saves.
func (p *permit) editRules(ctx context.Context, rules []string) (any, error) {
	if err := p.who.ShowQuestion(ctx, p.frameLines("What a saved rule allows does not ask again. You can make it narrower; Enter saves it."), nil); err != nil {
		return nil, err
	}
	edited := make([]string, len(rules))
	for i, rule := range rules {
		text, err := p.readPreset(ctx, "Rule: ", rule)
		if err != nil {
			return nil, err
		}
		edited[i] = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	}
	if slices.Equal(edited, p.call.Grant) {
		return "always", nil
	}
	return map[string]any{"choice": choiceAlways, "rules": edited}, nil
}

// frameLines returns a text in the frame of the question.
func (p *permit) frameLines(text string) string {
	if p.cols == 0 {
		return text
	}
	return strings.Join(prefixLines("│ ", p.wrapLines(strings.Split(text, "\n"))), "\n")
}

// readPreset reads a text that begins as another one. A terminal that can only print lines shows that one, and an empty
// line keeps it.
func (p *permit) readPreset(ctx context.Context, prompt, text string) (string, error) {
	if p.cols > 0 {
		return p.who.ReadText(ctx, prompt, text)
	}
	if err := p.who.ShowQuestion(ctx, "now: "+revealLine(text), nil); err != nil {
		return "", err
	}
	answer, err := p.who.ReadText(ctx, prompt, text)
	if err == nil && strings.TrimSpace(answer) == "" {
		answer = text
	}
	return answer, err
}

// soleText returns the only argument of a call if it is a text, and its name.
func (p *permit) soleText() (name, text string) {
	var args map[string]json.RawMessage
	if json.Unmarshal(p.call.Args, &args) != nil || len(args) != 1 {
		return "", ""
	}
	for name, raw := range args {
		if json.Unmarshal(raw, &text) == nil {
			return name, text
		}
	}
	return "", ""
}

// editArguments lets the person change the arguments: the text of the only one, or all as JSON. The answer is nil if
// nothing was changed.
func (p *permit) editArguments(ctx context.Context) (any, error) {
	name, before := p.soleText()
	prompt := name + ": "
	if name == "" {
		prompt = "Arguments: "
		before = indentJSON(p.call.Args)
	}
	for text := before; ; {
		var err error
		if text, err = p.readPreset(ctx, prompt, text); err != nil {
			return nil, err
		}
		if text == before {
			return nil, nil
		}
		if name != "" {
			return map[string]any{"choice": choiceEdit, "args": map[string]any{name: text}}, nil
		}
		args, err := parseObject(text)
		if err == nil {
			return map[string]any{"choice": choiceEdit, "args": args}, nil
		}
		if err := p.who.ShowQuestion(ctx, p.frameLines("The arguments must be a JSON object: "+term.CleanText(err.Error())), nil); err != nil {
			return nil, err
		}
	}
}

func parseObject(text string) (object map[string]any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // large numbers stay exact
	switch err := d.Decode(&object); {
	case err != nil:
		return nil, err
	case object == nil:
		return nil, errors.New("it is null")
	case d.More():
		return nil, errors.New("there is text after the object")
	}
	return object, nil
}

func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return UnescapeHTML(b.String())
}
