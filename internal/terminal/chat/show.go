package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// choose asks the person to choose one of several lines and returns its index.
func (t *Terminal) choose(ctx context.Context, question string, labels []string) (int, error) {
	choices := make([]term.Choice, len(labels))
	for i, l := range labels {
		choices[i] = term.Choice{Label: term.CleanLine(l)}
	}
	if err := t.Prompter.ShowQuestion(ctx, question, choices); err != nil {
		return 0, err
	}
	return t.Prompter.ChooseOne(ctx, term.Menu{Choices: choices, Leave: "cancel"})
}

// isLeftOpen reports whether the person did not choose.
func isLeftOpen(err error) bool { return errors.Is(err, term.ErrLeftOpen) }

// printTable writes a table as wide as the terminal.
func (t *Terminal) printTable(table interface{ Format(width int) string }) {
	cols, _ := t.Screen.Size()
	t.Screen.PrintLine(strings.TrimRight(table.Format(cols-1), "\n"))
}

// describeAge says how long ago something was.
func describeAge(at time.Time) string {
	ago := time.Since(at)
	switch {
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return wording.FormatCount(int(ago.Minutes()), "minute") + " ago"
	case ago < 24*time.Hour:
		return wording.FormatCount(int(ago.Hours()), "hour") + " ago"
	}
	return wording.FormatCount(int(ago.Hours()/24), "day") + " ago"
}

func showInfo(ctx context.Context, s *Session, _ string) error {
	f := term.NewFields(13)
	f.AddField("agent", s.agent.Name+"  "+s.Process.Dirs.ShortPath(s.agent.Dir))
	f.AddField("model", s.currentModel())
	f.AddField("directory", placeName(s.Process))
	f.AddField("permissions", describeMode(s.mode.Mode()))
	if !s.talk.IsGraph() {
		f.AddField("conversation", s.talk.Name()+"  "+s.talk.Title())
		turns, err := s.talk.Turns(ctx)
		if err != nil {
			return err
		}
		f.AddField("messages", fmt.Sprint(len(turns)))
		if len(turns) > 0 {
			f.AddField("last run", turns[len(turns)-1].Run)
		}
	}
	f.AddField("runs", s.Process.Runs.StoreURL())
	s.Screen.PrintLine("\n" + strings.TrimRight(f.String(), "\n"))
	return nil
}

func showCost(_ context.Context, s *Session, _ string) error {
	rows := s.usage.list()
	if len(rows) == 0 {
		s.say("No model was called since this conversation was opened.")
		return nil
	}
	t := term.NewTable(
		term.NewColumn("MODEL", func(r modelUsage) string { return r.model }),
		term.NewColumn("CALLS", func(r modelUsage) string { return fmt.Sprint(r.calls) }),
		term.NewColumn("IN", func(r modelUsage) string { return wording.FormatTokens(r.usage.Input) }),
		term.NewColumn("CACHED", func(r modelUsage) string { return wording.FormatTokens(r.usage.Cached) }),
		term.NewColumn("OUT", func(r modelUsage) string { return wording.FormatTokens(r.usage.Output) }),
		term.NewColumn("COST", modelUsage.describeCost),
	)
	for _, r := range rows {
		t.AddRow(r)
	}
	s.printTable(t)
	return nil
}

// describeCost returns what the calls of a model have cost.
func (r modelUsage) describeCost() string {
	switch {
	case r.replays:
		return "none"
	case r.priced:
		return fmt.Sprintf("$%.4f", r.cost)
	}
	return "unknown"
}

// showContext shows what fills the window of the model.
func showContext(ctx context.Context, s *Session, _ string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	messages, err := s.talk.Messages(ctx)
	if err != nil {
		return err
	}
	system, _ := s.agent.OpeningMessages("")
	type part struct {
		name   string
		tokens int
	}
	parts := []part{{"instructions", countTokens(system)}, {"tools", 0}, {"your messages", 0}, {"replies", 0}, {"tool calls", 0}, {"tool results", 0}}
	for _, t := range s.agent.AvailableTools() {
		spec := t.Spec()
		parts[1].tokens += countTokens(spec.Name + spec.Description + string(spec.Schema))
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				at := 3
				if m.Role == llm.RoleUser {
					at = 2
				}
				parts[at].tokens += countTokens(p.Text)
			case llm.ToolCall:
				parts[4].tokens += countTokens(p.Name + string(p.Args))
			case llm.ToolResult:
				parts[5].tokens += countTokens(fmt.Sprint(p.Content))
			}
		}
	}
	sum := 0
	for _, p := range parts {
		sum += p.tokens
	}
	window := s.Process.Models.Facts("", s.modelID()).Window
	s.Screen.PrintLine("")
	for _, p := range parts {
		const wide = 24
		bar := strings.Repeat("█", p.tokens*wide/max(sum, 1))
		s.Screen.PrintLine(fmt.Sprintf("  %-14s %8s  %s", p.name, wording.FormatTokens(p.tokens), s.Screen.Paint(term.Cyan, bar)))
	}
	line := fmt.Sprintf("  %-14s %8s  tokens, estimated", "together", wording.FormatTokens(sum))
	if window > 0 {
		line += fmt.Sprintf("; %d%% of %s's %s", sum*100/window, s.currentModel(), wording.FormatTokens(window))
	}
	s.Screen.PrintLine(line)
	return nil
}

// countTokens estimates the tokens of a text.
func countTokens(text string) int { return (len(text) + 3) / 4 }

func showTodo(ctx context.Context, s *Session, _ string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	turns, err := s.talk.Turns(ctx)
	if err != nil {
		return err
	}
	var list agent.TodoList
	if len(turns) > 0 {
		d, err := s.Process.Runs.ReadRunDetail(ctx, turns[len(turns)-1].Run)
		if err != nil {
			return err
		}
		for _, v := range d.Snapshot.Values {
			if v.Key == agent.Todo.Name() {
				// another version of raddle may have another form
				_ = json.Unmarshal(flow.StoredValue(v.Tag, v.Parts), &list)
			}
		}
	}
	if len(list.Items) == 0 {
		s.say("There is no list of tasks in this conversation.")
		return nil
	}
	s.Screen.PrintLine("\n" + term.CleanText(list.String()))
	return nil
}

// showDetails shows the results and the reasoning of the last turn in full.
func (s *Session) showDetails() {
	text := s.usage.details.format(s.Screen.Paint)
	if text == "" {
		s.setNotice("There are no results and no reasoning to show.")
		return
	}
	s.Screen.PrintLine(text)
}

// modelID returns the id of the model that answers.
func (s *Session) modelID() string {
	if s.model != "" {
		return s.model
	}
	if models := s.agent.Models(); len(models) > 0 {
		return models[0]
	}
	return ""
}

// changeTheme changes the colours of this conversation.
func changeTheme(_ context.Context, s *Session, name string) error {
	const next = "write: /theme auto, dark, light or mono"
	if name == "" {
		return failure.NewUsage(next, "/theme needs the name of a theme")
	}
	if !s.SetTheme(name) {
		return failure.NewUsage(next, "unknown theme %q", name)
	}
	s.say("Theme: " + name)
	return nil
}

// noteWaiting says that a question of a graph is open.
func (s *Session) noteWaiting(res graph.Result) {
	s.say(fmt.Sprintf("Run %s waits for an answer. Answer it with: /inbox", res.Run))
}
