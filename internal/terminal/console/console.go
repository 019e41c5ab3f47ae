// Package console is what every command knows of the terminal that it was started on: its streams, how much is said and
// in which look, and what asks the person. It knows nothing of agents, runs or configuration.
package console

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/markdown"
)

// A Console is the streams of a command, with what the flags of all commands say about them. Use [New].
type Console struct {
	In       *os.File
	Out      *term.Output   // results
	Screen   *term.Screen   // standard error: progress, notes and questions
	Keyboard *term.Keyboard // the keys of In

	Quiet    bool           // errors and open questions only
	Verbose  bool           // details of what happens
	Color    string         // "auto", "always" or "never"
	Progress string         // "auto", or [PlainProgress]
	Plain    bool           // write lines only: the cursor never moves
	Leave    string         // what Esc does at a question; "": it is answered later
	Theme    markdown.Theme // of formatted text

	Answered bool // the command has written its result; an error is only printed
	Headed   bool // the last line says what failed, so that only the cause is left to say
}

// These are the formats of results. All commands with a result have the first two, and those that show a run also the
// last: a line for each event, and the result in the last one.
const (
	FormatText   = "text"
	FormatJSON   = "json"
	FormatStream = "stream-json"
)

// PlainProgress is the value of Progress for the lines that are written off a terminal.
const PlainProgress = "plain"

// New returns a console on three streams, without colours until Color is applied. What is written goes through clean,
// which removes secrets.
func New(in, out, err *os.File, clean func([]byte) []byte) *Console {
	screen := term.NewScreen(err)
	c := &Console{
		In:       in,
		Out:      term.NewOutput(out),
		Screen:   screen,
		Keyboard: term.NewKeyboard(in, screen),
		Color:    "auto",
		Theme:    markdown.Default,
	}
	c.Out.Clean = clean
	c.Screen.Clean = clean
	return c
}

// ShowsBlocks reports whether what runs do is shown in the lines for terminals.
func (c *Console) ShowsBlocks() bool {
	return c.Screen.IsTerminal() && c.Progress != PlainProgress
}

// HasPerson reports whether all streams are a terminal, with a person before it.
func (c *Console) HasPerson() bool {
	return term.IsTerminal(c.In) && c.Screen.IsTerminal() && c.Out.IsTerminal()
}

// NewPrompter returns a prompter for the person at the terminal, or nil unless In and Screen are a terminal.
func (c *Console) NewPrompter() term.Prompter {
	if c.Plain {
		return term.NewLinePrompter(c.In, c.Screen, c.Keyboard)
	}
	return term.NewPrompter(c.In, c.Screen, c.Keyboard, c.Leave)
}

// PrintNote writes a line about what was done, unless Quiet is set.
func (c *Console) PrintNote(format string, args ...any) {
	if !c.Quiet {
		c.Screen.PrintLine(fmt.Sprintf(format, args...))
	}
}

// PrintWarning writes a warning.
func (c *Console) PrintWarning(text string) {
	c.Screen.PrintLine("raddle: " + c.Screen.Paint(term.Yellow, "warning:") + " " + text)
}

// PrintJSON writes a value on one line. The error says why it cannot be JSON.
func (c *Console) PrintJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Out.PrintExact(string(b))
	return nil
}

// PrintResult writes a result in the format: as JSON, or as the text that makeText returns.
func (c *Console) PrintResult(format string, value any, makeText func() string) error {
	if format == FormatJSON {
		return c.PrintJSON(value)
	}
	c.Out.PrintText(makeText())
	return nil
}

// PrintTable writes a table; on a terminal it is cut to its width.
func (c *Console) PrintTable(table interface {
	Paint(width int, colors term.Colors) string
}) {
	width := 0
	if c.Out.IsTerminal() {
		width, _ = c.Out.Size()
	}
	c.Out.PrintExact(table.Paint(width, c.Out.Colors))
}

// MarksStatus reports whether lists have signs before the status of a run.
func (c *Console) MarksStatus() bool { return c.Out.IsTerminal() && !term.IsDumb() }

// SetTheme changes the colours of formatted text. It returns false for an unknown name, and changes nothing.
func (c *Console) SetTheme(name string) bool {
	theme, ok := markdown.FindTheme(name)
	if ok {
		c.Theme = theme
	}
	return ok
}

// MarkdownRenderer returns what formats Markdown for Out, or nil if the text is to be shown as it is: Out is not a
// terminal with colours, or raw is true.
func (c *Console) MarkdownRenderer(raw bool) *markdown.Renderer {
	if raw || !c.Out.IsTerminal() || !bool(c.Out.Colors) {
		return nil
	}
	cols, _ := c.Out.Size()
	return &markdown.Renderer{Width: cols - 1, Theme: c.Theme, Links: ShowsLinks(os.Getenv)}
}

// RenderReply returns the text of a model, or of a run, for a person. On a terminal Markdown is formatted, and JSON is
// shown as it is.
func (c *Console) RenderReply(text string, raw bool) string {
	r := c.MarkdownRenderer(raw)
	if r == nil || json.Valid([]byte(text)) {
		return text
	}
	return r.RenderText(text)
}

// ShowsLinks reports whether the terminal is known to show links (OSC 8). Others ignore them, so that their readers
// would not see where a link leads.
func ShowsLinks(getenv func(string) string) bool {
	for _, name := range []string{"VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR"} {
		if getenv(name) != "" && getenv("TMUX") == "" {
			return true
		}
	}
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "mintty":
		return true
	}
	name := getenv("TERM")
	return strings.HasPrefix(name, "foot") || strings.HasPrefix(name, "alacritty") || strings.HasPrefix(name, "xterm-kitty")
}
