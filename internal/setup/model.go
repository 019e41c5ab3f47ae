package setup

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/internal/config"
	"raddle.dev/internal/provider"
	"raddle.dev/internal/question"
	"raddle.dev/internal/term"
)

// SaveModel saves a model in config.yaml, and uses it in this process.
func (g *Guide) SaveModel(model string) error {
	path, err := config.SetValue(g.Process.Dirs.Config, "model", model, g.Process.ConfigEnviron())
	if err != nil {
		return err
	}
	g.Process.Config.Model = model
	g.Note("%s %s is saved as your model in %s. To change it: raddle config set model CLIENT:MODEL", g.Screen.Paint(term.Green, "✓"), term.CleanText(model), g.Process.Dirs.ShortPath(path))
	return nil
}

// PickModel asks the person for a model: those that can be called now, those of servers on this machine, another one, or one of another provider.
func (g *Guide) PickModel(ctx context.Context, question string) (string, error) {
	models := g.Process.Models.ListChoices("")
	local := g.Process.Models.ListLocalModels(ctx)
	labels := modelLabels(models, local)
	if found := g.Process.Models.ListKeysFound(); len(found) > 0 {
		question += " (found: " + strings.Join(found, ", ") + ")"
	}
	models = append(models, local...)
	if len(models) == 0 {
		g.Screen.PrintLine("No key of a provider was found, and no model on this machine.")
		return g.pickProvider(ctx)
	}
	n, err := g.chooseLabel(ctx, g.Screen.Paint(term.Bold, question), append(labels, "Another model …     type its id", "Another provider …  paste a key, and raddle stores it"))
	switch {
	case err != nil:
		return "", err
	case n < len(models):
		return models[n].ID, nil
	case n == len(models):
		return g.typeModel(ctx, "")
	}
	return g.pickProvider(ctx)
}

// chooseLabel asks for one of several lines.
func (g *Guide) chooseLabel(ctx context.Context, question string, labels []string) (int, error) {
	choices := make([]term.Choice, len(labels))
	for i, l := range labels {
		choices[i] = term.Choice{Label: term.CleanText(l)}
	}
	if err := g.Prompter.ShowQuestion(ctx, question, choices); err != nil {
		return 0, err
	}
	return g.Prompter.ChooseOne(ctx, term.Menu{Choices: choices, Leave: "cancel"})
}

// modelLabels returns a line for each model: its id, how much it takes, and what it costs.
func modelLabels(models, local []provider.Model) []string {
	width := 0
	for _, m := range append(models[:len(models):len(models)], local...) {
		width = max(width, len(m.ID))
	}
	var labels []string
	for _, m := range models {
		window := "context unknown"
		if m.Window > 0 {
			window = shortCount(m.Window) + " context"
		}
		price := "price unknown"
		if m.Input != nil && m.Output != nil {
			price = fmt.Sprintf("$%.2f / $%.2f per million tokens", *m.Input, *m.Output)
		}
		labels = append(labels, fmt.Sprintf("%-*s  %-15s  %s", width, m.ID, window, price))
	}
	for _, m := range local {
		labels = append(labels, fmt.Sprintf("%-*s  local, running", width, m.ID))
	}
	return labels
}

// shortCount returns a number of tokens in thousands or millions.
func shortCount(n int) string {
	const thousand, million = 1000, 1_000_000
	if n >= million {
		return fmt.Sprintf("%.3gM", float64(n)/million)
	}
	return fmt.Sprintf("%dk", n/thousand)
}

// typeModel asks for the id of a model. client is its beginning, "" for any.
func (g *Guide) typeModel(ctx context.Context, client string) (string, error) {
	prompt := "Model (CLIENT:MODEL): "
	if client != "" {
		prompt = "Model: " + client + ":"
	}
	for {
		text, err := question.AskText(ctx, g.Prompter, prompt)
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(text)
		if client != "" {
			id = client + ":" + strings.TrimPrefix(id, client+":")
		}
		if err := g.Process.Models.CheckNames(g.Process.Dirs.Work, id, ""); err == nil && id != "" {
			return id, nil
		} else if err != nil {
			g.Screen.PrintLine(term.CleanText(err.Error()))
		}
	}
}

// pickProvider asks for a provider, its key and one of its models. It stores the key.
func (g *Guide) pickProvider(ctx context.Context) (string, error) {
	var names, labels []string
	for _, p := range g.Process.Models.ListProviders() {
		if !p.Ready {
			names = append(names, p.Name)
			labels = append(labels, fmt.Sprintf("%-10s  needs a key (%s)", p.Name, p.Variable))
		}
	}
	if len(names) == 0 {
		return g.typeModel(ctx, "")
	}
	n, err := g.chooseLabel(ctx, g.Screen.Paint(term.Bold, "Which provider?"), labels)
	if err != nil {
		return "", err
	}
	key, err := g.AskKey(ctx, names[n])
	if err != nil {
		return "", err
	}
	if err := g.StoreKey(names[n], key, false); err != nil {
		return "", err
	}
	models := g.Process.Models.ListChoices(names[n])
	const another = "Another model …  type its name"
	m, err := g.chooseLabel(ctx, g.Screen.Paint(term.Bold, "Which model?"), append(modelLabels(models, nil), another))
	if err != nil {
		return "", err
	}
	if m == len(models) {
		return g.typeModel(ctx, names[n])
	}
	return models[m].ID, nil
}
