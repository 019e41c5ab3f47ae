package cli

import (
	"encoding/json"
	"os"
	"strings"

	"raddle.dev/internal/term/markdown"
)

// markdownRenderer returns what formats Markdown for standard output, or nil if the text is to be shown as it is: standard
// output is not a terminal with colours, or raw is true.
func (env *environment) markdownRenderer(raw bool) *markdown.Renderer {
	if raw || !env.out.IsTerminal() || !bool(env.out.Colors) {
		return nil
	}
	cols, _ := env.out.Size()
	return &markdown.Renderer{Width: cols - 1, Theme: env.theme, Links: showsLinks(os.Getenv)}
}

// printReply writes the text of a model, or of a run, for a person. On a terminal Markdown is formatted, and JSON is shown as it is.
func (env *environment) printReply(text string, raw bool) {
	env.out.PrintText(env.renderReply(text, raw))
}

// renderReply returns a text of a model as printReply shows it.
func (env *environment) renderReply(text string, raw bool) string {
	r := env.markdownRenderer(raw)
	if r == nil || json.Valid([]byte(text)) {
		return text
	}
	return r.RenderText(text)
}

// showsLinks reports whether the terminal is known to show links (OSC 8). Others ignore them, so that their readers would not see
// where a link leads.
func showsLinks(getenv func(string) string) bool {
	for _, name := range []string{"VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR"} {
		if getenv(name) != "" && getenv("TMUX") == "" {
			return true
		}
	}
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "mintty":
		return true
	}
	return strings.HasPrefix(getenv("TERM"), "foot") || strings.HasPrefix(getenv("TERM"), "alacritty") || strings.HasPrefix(getenv("TERM"), "xterm-kitty")
}
