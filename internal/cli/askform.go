package cli

import (
	"context"

	"charm.land/huh/v2"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// A formPrompter asks on a terminal: arrow keys choose an option. The question and
// the answer stay on the screen as plain lines, whatever their size; only the
// choice itself is drawn.
type formPrompter struct{ env *environment }

func (p *formPrompter) askQuestion(ctx context.Context, q graph.Question) (any, error) {
	p.env.err.printLine(promptOf(q, p.env.err.colors))
	options := optionsOf(q)
	switch {
	case len(options) == 0:
		return p.askText(ctx, answerPrompt)
	case q.Kind == agent.KindCheckbox:
		return p.chooseSeveral(ctx, options)
	}
	n, err := p.chooseOne(ctx, options, defaultOption(q, options))
	if err != nil {
		return "", err
	}
	p.env.err.printLine("> " + options[n].label)
	if options[n].ask == "" {
		return options[n].value, nil
	}
	text, err := p.readText(ctx, options[n].ask, "", false)
	return options[n].value + text, err
}

// chooseOne returns the index of the chosen option. Enter alone chooses the one at chosen.
func (p *formPrompter) chooseOne(ctx context.Context, options []option, chosen int) (int, error) {
	field := huh.NewSelect[int]().Options(shownOptions(options)...).Value(&chosen)
	if rows := p.optionRows(); len(options) > rows {
		field = field.Height(rows)
	}
	err := p.runForm(ctx, form{field: field, hint: "arrow keys and Enter; Esc leaves the question open", guarded: true})
	return chosen, err
}

// chooseSeveral returns any number of the options.
func (p *formPrompter) chooseSeveral(ctx context.Context, options []option) (any, error) {
	var picked []int
	field := huh.NewMultiSelect[int]().Options(shownOptions(options)...).Filterable(false).Value(&picked)
	if rows := p.optionRows(); len(options) > rows {
		field = field.Height(rows)
	}
	err := p.runForm(ctx, form{field: field, hint: "Space chooses, Enter is done; Esc leaves the question open", guarded: true})
	if err != nil {
		return nil, err
	}
	chosen := []string{}
	for _, i := range picked {
		chosen = append(chosen, options[i].value)
	}
	p.env.err.printLine("> " + orElse(plainText(joinWords(chosen)), "none"))
	return chosen, nil
}

func shownOptions(options []option) []huh.Option[int] {
	var shown []huh.Option[int]
	for i, o := range options {
		shown = append(shown, huh.NewOption(o.label, i))
	}
	return shown
}

// optionRows returns how many options are shown at once.
func (p *formPrompter) optionRows() int {
	const around, least = 4, 3
	_, rows := p.env.err.Size()
	return max(rows-around, least)
}

// askText asks for a text.
func (p *formPrompter) askText(ctx context.Context, prompt string) (string, error) {
	return p.readText(ctx, prompt, "", true)
}

// editText asks for a text, starting with another one.
func (p *formPrompter) editText(ctx context.Context, prompt, text string) (string, error) {
	return p.readText(ctx, prompt, text, false)
}

// readText reads a text that starts as text. guarded is as in form.
func (p *formPrompter) readText(ctx context.Context, prompt, text string, guarded bool) (string, error) {
	field := huh.NewInput().Prompt(prompt).Value(&text)
	if err := p.runForm(ctx, form{field: field, hint: "Enter is done; Esc leaves the question open", guarded: guarded}); err != nil {
		return "", err
	}
	p.env.err.printLine(prompt + text)
	return text, nil
}
