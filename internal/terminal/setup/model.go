package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/process/sandbox"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// SaveModel saves a model in config.yaml, and uses it in this process.
func (g *Guide) SaveModel(model string) error {
	_, err := os.Lstat(filepath.Join(g.Process.Dirs.Config, config.FileName))
	isNew := errors.Is(err, fs.ErrNotExist)
	path, err := config.SetValue(g.Process.Dirs.Config, "model", model, g.Process.ConfigEnviron)
	if err != nil {
		return err
	}
	g.Process.Config.Model = model
	if isNew {
		if err := g.saveMode(); err != nil {
			return err
		}
	}
	g.PrintNote("%s %s is saved as your model in %s. To change it: raddle config set model CLIENT:MODEL", g.Screen.Paint(term.Green, "✓"), term.CleanText(model), g.Process.Dirs.ShortPath(path))
	return nil
}

// saveMode saves the mode edits in the config.yaml of a new installation if a box holds here, so that conversations
// begin in it, too: what they change can be taken back, and what they run is held.
func (g *Guide) saveMode() error {
	_, tb, err := sandbox.OpenBox(g.Process.Tools, g.Process.Dirs.Work)
	if err != nil {
		return nil
	}
	defer tb.Close()
	if _, err := config.SetValue(g.Process.Dirs.Config, "permission_mode", string(permission.ModeEdits), g.Process.ConfigEnviron); err != nil {
		return err
	}
	g.Process.Config.Mode = permission.ModeEdits
	g.PrintNote("%s a box holds here: agents change files of your working directory without a question, and commands run in the box. To be asked first: raddle config set permission_mode ask", g.Screen.Paint(term.Green, "✓"))
	return nil
}

// PickModel asks the person for a model: those that can be called now, those of servers on this machine, another one,
// or one of another provider.
func (g *Guide) PickModel(ctx context.Context, question string) (string, error) {
	models := g.Process.Models.ListChoices("")
	local := g.Process.Models.ListLocalModels(ctx)
	labels := modelLabels(models, local)
	if found := g.Process.Models.ListKeysFound(); len(found) > 0 {
		question += " (found: " + strings.Join(found, ", ") + ")"
	}
	models = append(models, local...)
	var ways []way
	if len(models) == 0 {
		g.Screen.PrintLine("No key of a provider was found, and no model on this machine.")
		question = "What shall raddle use?"
		ways = g.providerWays()
	} else {
		ways = append(ways, way{"Another model …", "type its id", func(ctx context.Context) (string, error) { return g.typeModel(ctx, "") }},
			way{"Another provider …", "paste a key, and raddle stores it", g.pickProvider})
	}
	ways = append(ways, way{"Another address …", "a server of yours", g.pickAddress})
	if g.OffersLook {
		ways = append(ways, way{"No model …", "look at recorded agents", func(context.Context) (string, error) { return "", ErrLook }})
	}
	n, err := g.ChooseLabel(ctx, g.Screen.Paint(term.Bold, question), append(labels, wayLabels(ways)...))
	switch {
	case err != nil:
		return "", err
	case n < len(models):
		return models[n].ID, nil
	}
	return ways[n-len(models)].pick(ctx)
}

// ErrLook reports that the person wants to look at recorded agents, and has chosen no model.
var ErrLook = errors.New("no model is chosen: recorded agents are to be shown")

// A way is a line of a menu that leads to a model.
type way struct {
	name, what string
	pick       func(context.Context) (string, error)
}

// wayLabels returns the lines, aligned.
func wayLabels(ways []way) (labels []string) {
	width := 0
	for _, w := range ways {
		width = max(width, utf8.RuneCountInString(w.name))
	}
	for _, w := range ways {
		labels = append(labels, fmt.Sprintf("%-*s  %s", width, w.name, w.what))
	}
	return labels
}

// providerWays returns a way for each provider that lacks only a key.
func (g *Guide) providerWays() (ways []way) {
	for _, p := range g.Process.Models.ListProviders() {
		if !p.Ready {
			ways = append(ways, way{p.Name, "needs a key (" + p.Variable + ")", func(ctx context.Context) (string, error) { return g.pickKeyed(ctx, p.Name) }})
		}
	}
	return ways
}

// ChooseLabel asks for one of several lines.
func (g *Guide) ChooseLabel(ctx context.Context, question string, labels []string) (int, error) {
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
	ways := g.providerWays()
	if len(ways) == 0 {
		return g.typeModel(ctx, "")
	}
	n, err := g.ChooseLabel(ctx, g.Screen.Paint(term.Bold, "Which provider?"), wayLabels(ways))
	if err != nil {
		return "", err
	}
	return ways[n].pick(ctx)
}

// pickKeyed asks for the key of a provider and one of its models. It stores the key.
func (g *Guide) pickKeyed(ctx context.Context, client string) (string, error) {
	key, err := g.AskKey(ctx, client)
	if err != nil {
		return "", err
	}
	if err := g.StoreKey(client, key, false); err != nil {
		return "", err
	}
	models := g.Process.Models.ListChoices(client)
	n, err := g.chooseOrType(ctx, modelLabels(models, nil))
	switch {
	case err != nil:
		return "", err
	case n == len(models):
		return g.typeModel(ctx, client)
	}
	return models[n].ID, nil
}

// chooseOrType asks for one of several models. It returns their number if the person wants to type a name, and at once
// if there are none.
func (g *Guide) chooseOrType(ctx context.Context, labels []string) (int, error) {
	if len(labels) == 0 {
		return 0, nil
	}
	return g.ChooseLabel(ctx, g.Screen.Paint(term.Bold, "Which model?"), append(slices.Clone(labels), "Another model …  type its name"))
}
