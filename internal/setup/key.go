package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"raddle.dev/internal/failure"
	"raddle.dev/internal/keystore"
	"raddle.dev/internal/provider"
	"raddle.dev/internal/term"
)

// AskKey asks for the key of a provider without showing it.
func (g *Guide) AskKey(ctx context.Context, client string) (string, error) {
	for {
		if err := g.Prompter.ShowQuestion(ctx, "", nil); err != nil {
			return "", err
		}
		text, err := g.Prompter.ReadSecret(ctx, "Key of "+client+" (it is not shown): ")
		if err != nil {
			return "", err
		}
		key, err := CheckKey(g.Process.Models, client, text)
		if err == nil {
			return key, nil
		}
		g.Screen.PrintLine(err.Error())
	}
}

// CheckKey returns a key of a client without the white space around it, or an error if it cannot be one.
func CheckKey(models *provider.Resolver, client, text string) (string, error) {
	key := strings.TrimSpace(text)
	if key == "" {
		return "", failure.NewUsage("", "the key is empty")
	}
	if why := models.JudgeKeyFor(client, key); why != "" {
		return "", failure.NewUsage("copy only the key itself", "this can be no key of %s: %s", client, why)
	}
	return key, nil
}

// StoreKey stores the key of a client and reports where. From then on the process uses it.
func (g *Guide) StoreKey(client, key string, fileOnly bool) error {
	p := g.Process
	place, why, err := p.Keys.Save(client, key, fileOnly)
	if err != nil {
		return fmt.Errorf("the key of %s cannot be stored: %w", client, err)
	}
	where := "the keychain of your system"
	if place == keystore.File {
		where = p.Dirs.ShortPath(filepath.Clean(p.Keys.Path())) + ", which only you can read"
	}
	if why != nil {
		g.Warn(term.CleanText(fmt.Sprintf("the keychain of your system cannot be used: %v", why)))
	}
	g.Note("%s The key of %s is stored in %s. To remove it: raddle logout %s", g.Screen.Paint(term.Green, "✓"), client, where, client)
	g.Process, err = g.Reopen()
	g.Process.Tools.SecretSet().Add(key)
	return err
}
