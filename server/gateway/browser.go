package gateway

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"

	"raddle.dev/internal/base/browser"
)

// OpenBrowser opens the browser of the user at [Gateway.LoginAddress]. Arguments of programs can be seen by other users
// of the machine: the browser gets a file that only the user can read, which leads to the address. The file is removed
// after the log-in. OpenBrowser returns when the program that opens the browser has ended. page is as in LoginAddress.
func (g *Gateway) OpenBrowser(ctx context.Context, page string) error {
	address, err := g.LoginAddress(ctx, page)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><title>raddle</title>\n", html.EscapeString(address))
	if err := writePrivate(g.openerPath(), []byte(text)); err != nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	if err := browser.Open(g.openerPath()); err != nil {
		g.removeOpener()
		return err
	}
	return nil
}

func (g *Gateway) openerPath() string { return filepath.Join(g.tokens.dir, "open.html") }

// removeOpener removes the file that leads a browser to the log-in.
func (g *Gateway) removeOpener() { _ = os.Remove(g.openerPath()) }
