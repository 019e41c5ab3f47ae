package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/keystore"
	"raddle.dev/internal/provider"
	"raddle.dev/internal/question"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// chooseModel returns the model of config.yaml or RADDLE_MODEL. If there is none, it asks the person at the terminal for one and saves it in config.yaml.
// Without a person, or if the person does not choose, the error ends in a command to paste.
func chooseModel(ctx context.Context, env *environment) (model string, err error) {
	if err := env.openProcess(); err != nil {
		return "", err
	}
	if env.process.Config.Model != "" {
		return env.process.Config.Model, nil
	}
	who := env.newPrompter()
	if who == nil {
		return "", noModelError(env, errors.New("no model is set"), "AGENT")
	}
	model, err = pickModel(ctx, env, who, "No model is set. Which one shall raddle use?")
	if errors.Is(err, term.ErrLeftOpen) {
		return "", noModelError(env, errors.New("no model is set"), "AGENT")
	}
	if err != nil {
		return "", err
	}
	return model, saveModel(env, model)
}

// ensureModel asks for a model before a conversation with an agent that needs one and has none. Without a person, the first turn reports that.
func ensureModel(ctx context.Context, env *environment, agent, model string) error {
	if env.process.Config.Model != "" || model != "" || env.newPrompter() == nil {
		return nil
	}
	a, err := env.process.Load(app.LoadRequest{Agent: agent})
	if err == nil {
		_, err = a.CompileGraph()
	}
	if _, missing := errors.AsType[*flow.MissingModelError](err); !missing {
		return nil
	}
	return askModel(ctx, env, app.Request{Agent: agent}, err)
}

// askModel asks for the model that a run lacks, as an error of its start says. Without a person, or if the person does not choose, it returns
// that error with a command to paste.
func askModel(ctx context.Context, env *environment, req app.Request, missing error) error {
	if req.Headless || req.Model != "" || env.process.Config.Model != "" {
		return noModelError(env, missing, req.Agent)
	}
	_, err := chooseModel(ctx, env)
	if own, ok := errors.AsType[*exitError](err); ok && own.code == exitInvalid {
		return noModelError(env, missing, req.Agent)
	}
	return err
}

// noModelError returns the error that no model is set, with a command to paste that names one.
func noModelError(env *environment, err error, agent string) error {
	return &exitError{code: exitInvalid, next: missingModelHint(env, agent), err: err}
}

// missingModelHint returns what to do when no model is set: commands to paste.
func missingModelHint(env *environment, agent string) string {
	model, needs := env.openWithFaults().Models.SuggestModel()
	run := "raddle run " + wording.QuoteWord(agent) + " --model " + model + " …  (or once and for all: raddle config set model " + model + ")"
	if agent == "AGENT" {
		run = "raddle config set model " + model
	}
	if needs == "" {
		return run
	}
	return "raddle login " + needs + "  (or set a key: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …)\nthen: " + run
}

// saveModel saves a model in config.yaml, and uses it in this process.
func saveModel(env *environment, model string) error {
	path, err := config.SetValue(env.process.Dirs.Config, "model", model, nil)
	if err != nil {
		return err
	}
	env.process.Config.Model = model
	env.printNote("%s %s is saved as your model in %s. To change it: raddle config set model CLIENT:MODEL", env.err.Paint(term.Green, "✓"), plainText(model), env.process.Dirs.ShortPath(path))
	return nil
}

// pickModel asks the person for a model: those that can be called now, those of servers on this machine, another one, or one of another provider.
func pickModel(ctx context.Context, env *environment, who term.Prompter, question string) (string, error) {
	models := env.process.Models.ListChoices("")
	local := env.process.Models.ListLocalModels(ctx)
	labels := modelLabels(models, local)
	if found := env.process.Models.ListKeysFound(); len(found) > 0 {
		question += " (found: " + strings.Join(found, ", ") + ")"
	}
	models = append(models, local...)
	if len(models) == 0 {
		env.err.PrintLine("No key of a provider was found, and no model on this machine.")
		return pickProvider(ctx, env, who)
	}
	n, err := chooseLabel(ctx, who, env.err.Paint(term.Bold, question), append(labels, "Another model …     type its id", "Another provider …  paste a key, and raddle stores it"))
	switch {
	case err != nil:
		return "", err
	case n < len(models):
		return models[n].ID, nil
	case n == len(models):
		return typeModel(ctx, env, who, "")
	}
	return pickProvider(ctx, env, who)
}

// chooseLabel asks for one of several lines.
func chooseLabel(ctx context.Context, who term.Prompter, question string, labels []string) (int, error) {
	choices := make([]term.Choice, len(labels))
	for i, l := range labels {
		choices[i] = term.Choice{Label: plainText(l)}
	}
	if err := who.ShowQuestion(ctx, question, choices); err != nil {
		return 0, err
	}
	return who.ChooseOne(ctx, term.Menu{Choices: choices, Leave: "cancel"})
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
func typeModel(ctx context.Context, env *environment, who term.Prompter, client string) (string, error) {
	prompt := "Model (CLIENT:MODEL): "
	if client != "" {
		prompt = "Model: " + client + ":"
	}
	for {
		text, err := question.AskText(ctx, who, prompt)
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(text)
		if client != "" {
			id = client + ":" + strings.TrimPrefix(id, client+":")
		}
		if err := env.process.Models.CheckNames(env.process.Dirs.Work, id, ""); err == nil && id != "" {
			return id, nil
		} else if err != nil {
			env.err.PrintLine(plainText(err.Error()))
		}
	}
}

// pickProvider asks for a provider, its key and one of its models. It stores the key.
func pickProvider(ctx context.Context, env *environment, who term.Prompter) (string, error) {
	var names, labels []string
	for _, p := range env.process.Models.ListProviders() {
		if !p.Ready {
			names = append(names, p.Name)
			labels = append(labels, fmt.Sprintf("%-10s  needs a key (%s)", p.Name, p.Variable))
		}
	}
	if len(names) == 0 {
		return typeModel(ctx, env, who, "")
	}
	n, err := chooseLabel(ctx, who, env.err.Paint(term.Bold, "Which provider?"), labels)
	if err != nil {
		return "", err
	}
	key, err := askKey(ctx, env, who, names[n])
	if err != nil {
		return "", err
	}
	if err := storeKey(env, names[n], key, false); err != nil {
		return "", err
	}
	models := env.process.Models.ListChoices(names[n])
	const another = "Another model …  type its name"
	m, err := chooseLabel(ctx, who, env.err.Paint(term.Bold, "Which model?"), append(modelLabels(models, nil), another))
	if err != nil {
		return "", err
	}
	if m == len(models) {
		return typeModel(ctx, env, who, names[n])
	}
	return models[m].ID, nil
}

// askKey asks for the key of a provider without showing it.
func askKey(ctx context.Context, env *environment, who term.Prompter, client string) (string, error) {
	for {
		if err := who.ShowQuestion(ctx, "", nil); err != nil {
			return "", err
		}
		text, err := who.ReadSecret(ctx, "Key of "+client+" (it is not shown): ")
		if err != nil {
			return "", err
		}
		key, err := checkKey(text)
		if err == nil {
			return key, nil
		}
		env.err.PrintLine(err.Error())
	}
}

// checkKey returns a key without the white space around it, or an error if it cannot be one.
func checkKey(text string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", badUsage("", "the key is empty")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", badUsage("copy only the key itself", "the key contains white space or characters that no key has")
	}
	return key, nil
}

// storeKey stores the key of a client and reports where. From then on the process uses it.
func storeKey(env *environment, client, key string, fileOnly bool) error {
	p := env.process
	place, why, err := p.Keys.Save(client, key, fileOnly)
	if err != nil {
		return fmt.Errorf("the key of %s cannot be stored: %w", client, err)
	}
	where := "the keychain of your system"
	if place == keystore.File {
		where = p.Dirs.ShortPath(filepath.Clean(p.Keys.Path())) + ", which only you can read"
	}
	if why != nil {
		env.printWarning(plainText(fmt.Sprintf("the keychain of your system cannot be used: %v", why)))
	}
	env.printNote("%s The key of %s is stored in %s. To remove it: raddle logout %s", env.err.Paint(term.Green, "✓"), client, where, client)
	err = env.reopenProcess()
	env.process.Tools.SecretSet().Add(key)
	return err
}

// askYesNo asks for yes or no; Enter alone means usual.
func askYesNo(ctx context.Context, env *environment, who term.Prompter, what, usual string) (bool, error) {
	options := []string{"yes", "no"}
	if usual == "no" {
		options = []string{"no", "yes"}
	}
	answer, err := question.Ask(ctx, who, graph.Question{Kind: question.KindConfirm, Prompt: what, Options: options}, env.err.Colors)
	return answer == "yes", err
}
