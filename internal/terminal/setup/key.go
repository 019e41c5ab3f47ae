package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"raddle.dev/internal/base/browser"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
)

// FindKeyClient returns the name of a client that a key can be stored for.
func FindKeyClient(models *provider.Resolver, name string) (string, error) {
	info, known := models.FindKey(name)
	if !known {
		var names []string
		for _, c := range models.ListClients() {
			names = append(names, c.Client)
		}
		next := "the providers are " + strings.Join(names, ", ") + "; others are clients of config.yaml (raddle help command-line)"
		return "", failure.NewUsage(cmp.Or(config.ClientHint(name), wording.SuggestNearest(name, names, ""), next), "there is no provider %q", name)
	}
	if info.Type == "script" {
		return "", failure.NewUsage("", "client %q replays a transcript and needs no key", info.Client)
	}
	return info.Client, nil
}

// AskKey asks for the key of a provider without showing it. OpenRouter also makes one if the person agrees in the
// browser.
func (g *Guide) AskKey(ctx context.Context, client string) (string, error) {
	if g.Process.Models.IsOpenRouter(client) {
		n, err := g.ChooseLabel(ctx, g.Screen.Paint(term.Bold, "How do you sign in to OpenRouter?"), []string{"In the browser  it makes a key for raddle", "With a key      paste one that you have"})
		if err != nil {
			return "", err
		}
		if n == 0 {
			return g.fetchKey(ctx)
		}
	}
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

// fetchKey signs in to OpenRouter in the browser. Ctrl-C ends the wait.
func (g *Guide) fetchKey(ctx context.Context) (string, error) {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	key, err := NewOpenRouterLogin(g.showLogin).FetchKey(ctx)
	if errors.Is(err, context.Canceled) {
		return "", term.ErrInterrupted
	}
	return key, err
}

// showLogin prints the address of a login, and opens the browser if there is one. The browser gets a file that only the
// user can read: arguments of programs can be seen by others.
func (g *Guide) showLogin(address string) {
	g.Screen.PrintLine("Open this on this machine (Ctrl-C ends the wait):")
	g.Screen.PrintLine(address)
	if !browser.IsThere(g.Process.Environ()) {
		return
	}
	dir, remove, err := tempdir.New("login-*")
	if err != nil {
		return // the person has the address
	}
	page := filepath.Join(dir, "login.html")
	text := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><title>raddle</title>\n", html.EscapeString(address))
	if os.WriteFile(page, []byte(text), 0o600) != nil || browser.Open(page) != nil {
		remove()
		return
	}
	time.AfterFunc(openRouterWait, remove) // browsers read it after their opener has ended
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
		g.PrintWarning(term.CleanText(fmt.Sprintf("the keychain of your system cannot be used: %v", why)))
	}
	g.PrintNote("%s The key of %s is stored in %s. To remove it: raddle logout %s", g.Screen.Paint(term.Green, "✓"), client, where, client)
	g.Process, err = g.Reopen()
	g.Process.Tools.SecretSet().Add(key)
	return err
}
