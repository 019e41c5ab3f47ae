// Package triggerview shows triggers to a person at a terminal, and asks before they are enabled.
package triggerview

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runlimits"
)

// EnableOptions say how triggers are enabled.
type EnableOptions struct {
	Hash string // of the files that the person has seen; "": a person is asked
	Run  runlimits.Limits
	Day  agent.Limits
}

// shownTicks is how many ticks of a schedule are shown before it is enabled.
const shownTicks = 3

// Enable shows what the triggers of an agent will start, asks the person at the terminal, and enables them. Without a
// terminal the options must name the hash that was shown.
func Enable(ctx context.Context, con *console.Console, p *app.Process, name string, o EnableOptions) error {
	for _, n := range []float64{o.Run.Money, float64(o.Run.Calls), float64(o.Run.Tokens), o.Day.Money, float64(o.Day.Calls), float64(o.Day.Tokens)} {
		if n < 0 {
			return failure.NewUsage("leave it out for no limit", "%v is no budget", n)
		}
	}
	set, err := trigger.Open(p)
	if err != nil {
		return err
	}
	offer, err := trigger.ReadOffer(p, name)
	if err != nil {
		return err
	}
	_, now, err := set.ListAll(ctx)
	if err != nil {
		return err
	}
	budget := trigger.Budget{Run: o.Run.Limits, Deadline: o.Run.Deadline, Day: o.Day}
	con.Out.PrintText(describeOffer(p, offer, budget, now))
	if err := askPerson(ctx, con, offer, o.Hash); err != nil {
		return err
	}
	enabled, err := set.EnableOffer(ctx, offer, budget, describePerson())
	if err != nil {
		return err
	}
	con.PrintNote("enabled: %s; a server fires them: raddle serve", wording.FormatCount(len(enabled), "trigger"))
	return nil
}

// askPerson returns an error unless a person agrees to an offer.
func askPerson(ctx context.Context, con *console.Console, offer *trigger.Offer, hash string) error {
	switch {
	case hash == offer.Hash:
		return nil
	case hash != "":
		return failure.NewUsage("look at what is above, and name its hash", "the files of agent '%s' have the hash %s, and not %s", offer.Agent, offer.Hash, hash)
	case !con.HasPerson():
		return failure.NewUsage("after a person has read what is above: raddle triggers enable "+offer.Agent+" --hash "+offer.Hash,
			"no trigger is enabled without a person, and there is no terminal to ask at")
	}
	answer, err := question.Ask(ctx, con.NewPrompter(), graph.Question{
		Kind:    question.KindConfirm,
		Prompt:  "Shall these start runs of " + offer.Agent + " without asking anyone?",
		Options: []string{"no", "yes"},
	}, con.Screen.Colors)
	if err == nil && answer != "yes" {
		err = failure.NewUsage("", "nothing was enabled")
	}
	return err
}

// describePerson returns who works at this terminal, and where.
func describePerson() string {
	name := "someone"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + cmp.Or(host, "unknown")
}

// describeOffer says what an offer would start.
func describeOffer(p *app.Process, offer *trigger.Offer, budget trigger.Budget, now time.Time) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Agent %s, files %s:\n", offer.Agent, offer.Hash)
	for _, src := range offer.Sources {
		_, _ = fmt.Fprintf(&b, "  %s\n", src.Path)
	}
	b.WriteString("Triggers:\n")
	for i := range offer.Triggers {
		t := &offer.Triggers[i]
		_, _ = fmt.Fprintf(&b, "  %s: %s; %s\n", t.Name, t.String(), overlapWords[t.Overlap])
		for _, at := range trigger.NextTicks(t, now, shownTicks) {
			_, _ = fmt.Fprintf(&b, "    %s\n", at.Format("Mon 2006-01-02 15:04 MST"))
		}
		for _, name := range variablesOf(t) {
			set := "which is set here"
			if value, _ := p.LookupVariable(name); value == "" {
				set = "which is not set here: the server needs it"
			}
			_, _ = fmt.Fprintf(&b, "    proved with %s, %s\n", name, set)
		}
		if t.Prompt != "" {
			_, _ = fmt.Fprintf(&b, "    prompt: %s\n", wording.CutText(strings.Join(strings.Fields(t.Prompt), " "), 100, "…"))
		}
		for _, value := range t.State {
			_, _ = fmt.Fprintf(&b, "    state: %s = %s\n", value.Key, wording.CutText(strings.Join(strings.Fields(value.Value), " "), 100, "…"))
		}
	}
	_, _ = fmt.Fprintf(&b, "Budget of a run: %s; of 24 hours: %s\n", describeLimits(budget.Run), describeLimits(budget.Day))
	if budget.Deadline > 0 {
		_, _ = fmt.Fprintf(&b, "A run is ended %s after its start, also while it waits.\n", wording.FormatDuration(budget.Deadline))
	}
	b.WriteString("Runs are headless: no one is asked, and what would ask is refused or runs in the box.\n")
	return b.String()
}

// overlapWords say what the words for overlaps mean.
var overlapWords = map[string]string{
	"skip":   "not while its last run works",
	"queue":  "one run after the other",
	"cancel": "a new run ends the one before",
	"allow":  "also while others of its runs work",
}

// variablesOf returns the variables of the environment that a trigger needs.
func variablesOf(t *spec.Trigger) (names []string) {
	if t.Webhook == nil {
		return nil
	}
	return slices.DeleteFunc([]string{t.Webhook.Secret, t.Webhook.Token}, func(name string) bool { return name == "" })
}

// describeLimits says what may be spent.
func describeLimits(l agent.Limits) string {
	var parts []string
	if l.Money > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", l.Money))
	}
	if l.Calls > 0 {
		parts = append(parts, wording.FormatCount(l.Calls, "model call"))
	}
	if l.Tokens > 0 {
		parts = append(parts, wording.FormatCount(l.Tokens, "token"))
	}
	if parts == nil {
		return "what the agent itself allows"
	}
	return strings.Join(parts, ", ")
}

// A Line is what lists show of a trigger.
type Line struct {
	Trigger string    `json:"trigger"`
	Agent   string    `json:"agent"`
	What    string    `json:"what"`
	Status  string    `json:"status"` // on, paused, off, or new: it was never enabled
	Reason  string    `json:"reason,omitempty"`
	Next    time.Time `json:"next,omitzero"`
	Last    *Past     `json:"last,omitempty"`
}

// statusNew is the status of a trigger that no one has enabled.
const statusNew = "new"

// A Past is a tick that has come.
type Past struct {
	Trigger string    `json:"trigger"`
	Key     string    `json:"key"`
	Time    time.Time `json:"time"`
	State   string    `json:"state"`
	Run     string    `json:"run,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// pastOf returns a tick for lists.
func pastOf(t *journal.Tick) Past {
	return Past{Trigger: t.Trigger, Key: t.Key, Time: t.Time, State: t.State, Run: t.Run, Note: t.Note}
}

// ReadLines returns the triggers of the store, and those of agents of the catalogue that no one has enabled.
func ReadLines(ctx context.Context, p *app.Process) ([]Line, error) {
	set, err := trigger.Open(p)
	if err != nil {
		return nil, err
	}
	list, _, err := set.ListAll(ctx)
	if err != nil {
		return nil, err
	}
	lines := []Line{}
	known := map[string]bool{}
	for i := range list {
		t := &list[i]
		line := Line{Trigger: t.ID(), Agent: t.Agent, What: t.String(), Status: t.Status, Reason: t.Reason}
		if t.Status == trigger.On {
			line.Next = t.Due()
			if changes, elsewhere := set.DescribeChanges(t); changes != "" {
				line.Reason = "it turns off when it fires, because files have changed: " + changes
			} else if elsewhere {
				line.Reason = "this machine does not have the agent"
			}
		}
		past, err := readPast(ctx, set, t.ID(), 1)
		if err != nil {
			return nil, err
		}
		if len(past) > 0 {
			line.Last = &past[0]
		}
		lines = append(lines, line)
		known[t.ID()] = true
	}
	for _, place := range p.ListAgents() {
		offer, err := trigger.ReadOffer(p, place.Name)
		if err != nil {
			continue // it has none, or raddle check says what is wrong with it
		}
		for i := range offer.Triggers {
			if t := &offer.Triggers[i]; !known[offer.Agent+"/"+t.Name] {
				lines = append(lines, Line{Trigger: offer.Agent + "/" + t.Name, Agent: offer.Agent, What: t.String(), Status: statusNew})
			}
		}
	}
	return lines, nil
}

// readPast returns the newest ticks of a trigger, or of all if id is "", at most n.
func readPast(ctx context.Context, set *trigger.Set, id string, n int) ([]Past, error) {
	ticks, err := set.Store.ListTicks(ctx, id, 2*n) // some only remember a request
	past := []Past{}
	for i := range ticks {
		if ticks[i].State != trigger.Seen && len(past) < n {
			past = append(past, pastOf(&ticks[i]))
		}
	}
	return past, err
}

// List prints the triggers.
func List(ctx context.Context, con *console.Console, p *app.Process, format string) error {
	lines, err := ReadLines(ctx, p)
	if err != nil {
		return err
	}
	if format == console.FormatJSON {
		return con.PrintJSON(lines)
	}
	if len(lines) == 0 {
		con.PrintNote("no agent has triggers: raddle help triggers says how to write one")
		return nil
	}
	table := term.NewTable(
		term.NewColumn("TRIGGER", func(l Line) string { return l.Trigger }),
		term.NewColumn("WHAT", func(l Line) string { return l.What }),
		term.NewColumn("STATE", func(l Line) string { return l.Status }),
		term.NewColumn("NEXT", func(l Line) string { return formatTime(l.Next) }),
		term.NewColumn("LAST", func(l Line) string {
			if l.Last == nil {
				return ""
			}
			return formatTime(l.Last.Time) + " " + l.Last.State
		}),
	)
	isNew := false
	for _, l := range lines {
		table.AddRow(l)
		isNew = isNew || l.Status == statusNew
	}
	con.PrintTable(table)
	for _, l := range lines {
		if l.Reason != "" {
			con.PrintNote("%s: %s", l.Trigger, l.Reason)
		}
	}
	if isNew {
		con.PrintNote("new ones start nothing until you enable them: raddle triggers enable AGENT")
	}
	return nil
}

// formatTime returns a time of this place; "" if there is none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("Mon 01-02 15:04")
}

// PrintHistory prints the newest ticks of a trigger, or of all.
func PrintHistory(ctx context.Context, con *console.Console, p *app.Process, id string, n int, format string) error {
	set, err := trigger.Open(p)
	if err != nil {
		return err
	}
	if id != "" {
		t, err := set.FindOne(ctx, id)
		if err != nil {
			return err
		}
		id = t.ID()
	}
	past, err := readPast(ctx, set, id, n)
	if err != nil {
		return err
	}
	if format == console.FormatJSON {
		return con.PrintJSON(past)
	}
	if len(past) == 0 {
		con.PrintNote("nothing has fired yet")
		return nil
	}
	table := term.NewTable(
		term.NewColumn("TIME", func(t Past) string { return formatTime(t.Time) }),
		term.NewColumn("TRIGGER", func(t Past) string { return t.Trigger }),
		term.NewColumn("STATE", func(t Past) string { return t.State }),
		term.NewColumn("RUN", func(t Past) string { return t.Run }),
		term.NewColumn("WHY", func(t Past) string { return t.Note }),
	)
	for _, t := range past {
		table.AddRow(t)
	}
	con.PrintTable(table)
	return nil
}

// Fire fires a trigger by hand and prints the run that a server starts.
func Fire(ctx context.Context, con *console.Console, p *app.Process, id, data string) error {
	set, err := trigger.Open(p)
	if err != nil {
		return err
	}
	run, err := set.FireNow(ctx, id, graph.NewID(time.Now()), []byte(data))
	if err != nil {
		return err
	}
	con.Out.PrintExact(run + "\n")
	con.PrintNote("a server starts the run within some seconds: raddle triggers history %s", id)
	return nil
}

// Pause stops triggers, or lets them fire again.
func Pause(ctx context.Context, con *console.Console, p *app.Process, id string, off bool) error {
	set, err := trigger.Open(p)
	if err != nil {
		return err
	}
	change := set.PauseAll
	what := "paused"
	if off {
		change = set.ContinueAll
		what = "fires again"
	}
	list, err := change(ctx, id)
	for i := range list {
		con.PrintNote("%s: %s", list[i].ID(), what)
	}
	return err
}

// Disable removes triggers from the store.
func Disable(ctx context.Context, con *console.Console, p *app.Process, id string) error {
	set, err := trigger.Open(p)
	if err != nil {
		return err
	}
	list, err := set.DisableAll(ctx, id)
	for i := range list {
		con.PrintNote("%s: disabled, and its history is gone", list[i].ID())
	}
	return err
}
