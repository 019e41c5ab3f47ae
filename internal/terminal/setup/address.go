package setup

import (
	"context"
	"errors"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/config"
)

// pickAddress asks for the address of a server, for a key if it needs one, and for one of its models. It adds a client
// to config.yaml and stores the key.
func (g *Guide) pickAddress(ctx context.Context) (string, error) {
	for {
		text, err := question.AskText(ctx, g.Prompter, "Address, such as localhost:8080/v1: ")
		if err != nil {
			return "", err
		}
		address, err := provider.ParseServerAddress(text)
		if err != nil {
			g.printError(err)
			continue
		}
		for {
			key, ok, err := g.askServerKey(ctx, address)
			if err != nil {
				return "", err
			}
			if !ok {
				break
			}
			base, models, err := provider.ListServerModels(ctx, address, key)
			if err == nil {
				return g.addServer(ctx, address, base, key, models)
			}
			if ctx.Err() != nil {
				return "", err
			}
			g.printError(err)
			if !errors.Is(err, provider.ErrKeyNeeded) {
				break // the person may correct the address
			}
		}
	}
}

// printError prints an error with what to do about it.
func (g *Guide) printError(err error) {
	g.Screen.PrintLine(g.Screen.Paint(term.Red, "✗") + " " + term.CleanText(err.Error()))
	if f, ok := errors.AsType[*failure.Error](err); ok && f.Next != "" {
		g.Screen.PrintLine("  " + term.CleanText(f.Next))
	}
}

// askServerKey asks for the key of a server; "" is none. It reports false if the person does not want to send the key
// over plain HTTP.
func (g *Guide) askServerKey(ctx context.Context, address provider.ServerAddress) (key string, ok bool, err error) {
	for {
		if err := g.Prompter.ShowQuestion(ctx, "", nil); err != nil {
			return "", false, err
		}
		text, err := g.Prompter.ReadSecret(ctx, "Key (it is not shown; Enter: none): ")
		if err != nil {
			return "", false, err
		}
		key = strings.TrimSpace(text)
		if key == "" {
			return "", true, nil
		}
		if why := provider.JudgeKey("", key); why != "" {
			g.Screen.PrintLine("this can be no key: " + why)
			continue
		}
		break
	}
	if !address.Plain {
		return key, true, nil
	}
	yes, err := g.AskYesNo(ctx, "The key goes to "+term.CleanText(address.Host)+" over plain HTTP: everyone on the way can read it. Send it?")
	return key, yes, err
}

// addServer writes the client of a server, stores its key, and asks for one of its models.
func (g *Guide) addServer(ctx context.Context, address provider.ServerAddress, base, key string, models []string) (string, error) {
	g.PrintNote("%s %s has %s.", g.Screen.Paint(term.Green, "✓"), term.CleanText(base), wording.FormatCount(len(models), "model"))
	name := g.Process.Models.NameServer(address)
	model, err := g.chooseName(ctx, models)
	if err != nil {
		return "", err
	}
	path, err := config.AddClient(g.Process.Dirs.Config, config.Client{
		Name: name,
		Type: "openai-compatible",
		Base: base,
	}, g.Process.ConfigEnviron)
	if err != nil {
		return "", err
	}
	g.PrintNote("%s The client %q is added to %s.", g.Screen.Paint(term.Green, "✓"), name, g.Process.Dirs.ShortPath(path))
	if g.Process, err = g.Reopen(); err != nil {
		return "", err
	}
	if key != "" {
		if err := g.StoreKey(name, key, false); err != nil {
			return "", err
		}
	}
	return name + ":" + model, nil
}

// chooseName asks for the name of a model of a server that lists some.
func (g *Guide) chooseName(ctx context.Context, models []string) (string, error) {
	const most = 200 // others can be typed
	models = models[:min(len(models), most)]
	n, err := g.chooseOrType(ctx, models)
	if err != nil {
		return "", err
	}
	if n < len(models) {
		return models[n], nil
	}
	for {
		text, err := question.AskText(ctx, g.Prompter, "Model: ")
		if name := strings.TrimSpace(text); err != nil || name != "" {
			return name, err
		}
	}
}
