package setup

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/mcplogin"
	"raddle.dev/internal/storage/keystore"
)

// LogInServer logs in to an MCP server in the browser, and stores the tokens. Ctrl-C ends the wait.
func (g *Guide) LogInServer(ctx context.Context, id string) error {
	address, login, err := g.Process.Tools.FindLogin(id)
	if err != nil {
		return err
	}
	if g.Prompter == nil {
		return failure.NewUsage("run it at a terminal, or write a credential into the headers of the entry", "a login to %s needs a person at a terminal", id)
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	grant, err := (&mcplogin.Login{
		Server:       address,
		ClientID:     login.ClientID,
		ClientSecret: login.ClientSecret,
		Port:         login.Port,
		Show:         g.showLogin,
	}).Run(ctx)
	if errors.Is(err, context.Canceled) {
		return term.ErrInterrupted
	}
	if err != nil {
		return err
	}
	p := g.Process
	p.Tools.SecretSet().Add(grant.Access, grant.Refresh)
	place, why, err := mcplogin.SaveGrant(p.Keys, grant)
	if err != nil {
		return err
	}
	where := "the keychain of your system"
	if place == keystore.File {
		where = p.Dirs.ShortPath(filepath.Clean(p.Keys.Path())) + ", which only you can read"
	}
	if why != nil {
		g.PrintWarning(term.CleanText("the keychain of your system cannot be used: " + why.Error()))
	}
	g.PrintNote("%s The login to %s is stored in %s. To remove it: raddle mcp logout %[2]s", g.Screen.Paint(term.Green, "✓"), id, where)
	return nil
}

// LogOutServer removes the stored login to an MCP server.
func (g *Guide) LogOutServer(id string) error {
	address, _, err := g.Process.Tools.FindLogin(id)
	if err != nil {
		return err
	}
	place, err := mcplogin.RemoveGrant(g.Process.Keys, address)
	if err == nil && place == keystore.Nowhere {
		err = failure.NewUsage("", "no login to %s is stored", id)
	}
	return err
}
