package question

import (
	"context"
	"encoding/json"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
)

// These are texts of questions.
const (
	otherOption  = "Other…"
	otherPrompt  = "Your answer:"
	answerPrompt = "Your answer: "
)

// Ask asks a person and returns the answer.
func Ask(ctx context.Context, who term.Prompter, q graph.Question, colors term.Colors) (any, error) {
	if p := newPermit(who, q, colors); p != nil {
		return p.ask(ctx)
	}
	options := optionsOf(q)
	choices := make([]term.Choice, len(options))
	for i, o := range options {
		choices[i] = term.Choice{Label: o.label}
		if o.ask == "" {
			choices[i].Word = o.value
		}
	}
	if err := who.ShowQuestion(ctx, FormatPrompt(q, colors), choices); err != nil {
		return nil, err
	}
	switch {
	case len(options) == 0:
		return who.ReadText(ctx, answerPrompt, "")
	case q.Kind == agent.KindCheckbox:
		picked, err := who.ChooseSeveral(ctx, choices)
		chosen := []string{}
		for _, i := range picked {
			chosen = append(chosen, options[i].value)
		}
		return chosen, err
	}
	n, err := who.ChooseOne(ctx, term.Menu{Choices: choices, First: defaultOption(q, options), Quick: q.Kind == KindConfirm})
	if err != nil || options[n].ask == "" {
		return options[n].value, err
	}
	text, err := who.ReadText(ctx, options[n].ask, "")
	return options[n].value + text, err
}

// AskText asks a person for a text.
func AskText(ctx context.Context, who term.Prompter, prompt string) (string, error) {
	if err := who.ShowQuestion(ctx, "", nil); err != nil {
		return "", err
	}
	return who.ReadText(ctx, prompt, "")
}

// AskAgain repeats a question whose answer was wrong.
func AskAgain(ctx context.Context, who term.Prompter, q graph.Question, wrong any, colors term.Colors) (any, error) {
	if object, ok := wrong.(map[string]any); ok {
		var answer agent.PermissionAnswer
		if text, err := json.Marshal(object); err == nil && json.Unmarshal(text, &answer) == nil {
			if p := newPermit(who, q, colors); p != nil {
				return p.askAgain(ctx, answer)
			}
		}
	}
	if text, ok := wrong.(string); ok && len(optionsOf(q)) == 0 {
		return who.ReadText(ctx, "Another answer: ", text)
	}
	q.Rejected = ""
	return Ask(ctx, who, q, colors)
}
