package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
)

func newRunsShowCommand(env *environment) *cobra.Command {
	return newOutputCommand(env, "write it as `FORMAT`: text or json", runRunsShow, &cobra.Command{
		Use:               "show RUN[@N]",
		Short:             "Show a run: status, path, state and result",
		Long:              "raddle reads only the run's journal: the agent need not exist any more.",
		Example:           "  raddle runs show 06ab --output json\n  raddle runs show 06ab@7",
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completePoints(env, 1),
	})
}

// runView is a run as "runs show --output json" writes it.
type runView struct {
	runs.Info
	At        int64             `json:"at,omitempty"` // the checkpoint that is shown; absent: the current state
	Questions []graph.Question  `json:"questions"`
	Output    *string           `json:"output"`
	ExitCode  *int              `json:"exit_code"`
	State     json.RawMessage   `json:"state"`
	Path      []any             `json:"path"`
	Next      []string          `json:"next"`
	Usage     usageReport       `json:"usage"`
	Warnings  []string          `json:"warnings"` // replies of models that are not full answers, and an agent's open items
	Calls     []runs.ToolCall   `json:"tool_calls"`
	Searches  []flow.Search     `json:"searches"` // in knowledge bases, with their results
	Seconds   float64           `json:"active_seconds"`
	Start     *runs.Record      `json:"start"`       // null: the command line did not start it
	Points    []runs.Checkpoint `json:"checkpoints"` // newest first
	Forks     []runs.Point      `json:"forks"`       // runs that were forked from it, and where
	Tree      treeNode          `json:"tree"`        // the parts that worked, and their cost
}

func runRunsShow(ctx context.Context, env *environment, opts outputOptions, args []string) error {
	d, err := env.process.Runs.ReadRunDetail(ctx, args[0])
	if err != nil {
		return err
	}
	s, err := describeRun(ctx, env, d)
	if err != nil {
		return err
	}
	return env.printResult(opts.output, s, func() string { return shownText(s) })
}

// describeRun gathers what to show of a run.
func describeRun(ctx context.Context, env *environment, d *runs.Detail) (*runView, error) {
	p := env.process
	r := emptyReport(0, nil)
	if err := fromJournal(env, d, r); err != nil {
		return nil, err
	}
	s := &runView{Info: d.Info, At: d.At, Questions: append(r.Questions, d.Snapshot.Questions...), State: r.State, Path: r.Path, Usage: r.Usage,
		Next: append([]string{}, d.Snapshot.Next...), Seconds: d.Snapshot.Active.Seconds(), Start: d.Record, Forks: []runs.Point{}}
	models, err := p.Runs.ReadModelCalls(ctx, d.Run)
	if err != nil {
		return nil, err
	}
	s.Warnings = append([]string{}, models.Flaws...)
	if d.Snapshot.Status == graph.Done {
		if text := openItems(d.Snapshot.Values); text != "" {
			s.Warnings = append(s.Warnings, text)
		}
		o := flow.OutcomeOf(graph.Result{Status: graph.Done, Value: d.Snapshot.Result})
		s.Output, s.ExitCode = &o.Output, new(doneCode(o, models))
	}
	if d.Snapshot.Status.Final() {
		s.Next, s.Questions = []string{}, []graph.Question{}
	}
	calls, err := p.Runs.ToolCalls(ctx, d)
	if err != nil {
		return nil, err
	}
	s.Calls = append([]runs.ToolCall{}, calls...)
	if s.Searches, err = p.Runs.ListSearches(ctx, d); err != nil {
		return nil, err
	}
	tree, err := p.Runs.ReadTree(ctx, d)
	if err != nil {
		return nil, err
	}
	s.Tree = treeOf(p, tree)
	s.Warnings = append(s.Warnings, s.Tree.describeBlocked()...)
	if s.Points, err = p.Runs.ListCheckpoints(ctx, d.Run); err != nil {
		return nil, err
	}
	all, err := p.Runs.ListRuns(ctx, "")
	for _, other := range all {
		if other.From != nil && other.From.Run == d.Run {
			s.Forks = append(s.Forks, runs.Point{Run: other.Run, At: other.From.At})
		}
	}
	return s, err
}

// openItems reports, from the values of its state, an agent that ended with open items on its
// todo list although it was asked to continue; "" if it did not.
func openItems(values []graph.StoredValue) string {
	var list agent.TodoList
	continued := 0
	for _, v := range values {
		var into any
		switch v.Key {
		case agent.Todo.Name():
			into = &list
		case agent.Continued.Name():
			into = &continued
		default:
			continue
		}
		if len(v.Parts) != 1 || json.Unmarshal(v.Parts[0], into) != nil {
			return "" // a key of a graph that has the same name
		}
	}
	if continued == 0 || list.Open() == 0 {
		return ""
	}
	return agent.OpenItems(list.Open(), continued)
}

// shownText returns a run for people.
func shownText(s *runView) string {
	text := term.NewFields(10)
	row := text.AddField
	row("run", runs.Point{Run: s.Run, At: s.At}.String())
	row("status", s.Status)
	row("reason", s.Reason)
	row("agent", s.Agent)
	row("session", s.Session)
	if r := s.Start; r != nil {
		row("directory", r.Dir)
		row("model", plainText(joinWords(s.Usage.Models)))
		row("variables", formatVariables(r.Variables))
		row("prompt", r.Prompt)
	}
	if s.From != nil {
		row("forked", "from "+s.From.String())
	}
	row("started", s.Started.Local().Format(time.DateTime)+" ("+formatAge(time.Since(s.Started))+")")
	row("updated", s.Updated.Local().Format(time.DateTime)+" ("+formatAge(time.Since(s.Updated))+")")
	row("active", fmt.Sprintf("%.2fs", s.Seconds))
	row("path", pathText(s.Path))
	row("next", joinWords(s.Next))
	if u := s.Usage; u.Calls > 0 {
		row("usage", u.String())
	}
	row("tree", treeText(&s.Tree))
	for _, w := range s.Warnings {
		row("warning", plainText(w))
	}
	row("tools", callsText(s.Calls))
	row("found", searchesText(s.Searches))
	for _, q := range s.Questions {
		row("question", nameOf(q)+": "+promptOf(q, false))
		row("", answersText(q))
	}
	row("state", stateText(s.State))
	row("points", pointsText(s.Points))
	for _, f := range s.Forks {
		row("fork", fmt.Sprintf("%s, at @%d", f.Run, f.At))
	}
	switch {
	case s.At > 0:
		row("go back", "raddle runs fork "+runs.Point{Run: s.Run, At: s.At}.String())
	case s.Output != nil:
		row("output", *s.Output)
	case s.Status != runs.Running && !s.Final:
		row("continue", resumeLine("raddle resume "+s.Run, graph.Result{Status: statusOf(s), Questions: s.Questions}))
	}
	return text.String()
}

// These limits say how much of the calls of tools is shown to people.
const (
	mostCalls    = 30
	mostCallText = 160
)

// searchesText lists the queries, and the places that were found.
func searchesText(searches []flow.Search) string {
	var b strings.Builder
	for _, s := range searches {
		fmt.Fprintf(&b, "%s\n", shortenLine(s.Query))
		for _, c := range s.Chunks {
			fmt.Fprintf(&b, "  %s, part %d: %s\n", plainText(c.Source), c.Index+1, shortenLine(c.Text))
		}
	}
	return b.String()
}

// shortenLine returns a text on one line, cut to a maximum length.
func shortenLine(s string) string {
	s = plainText(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > mostCallText {
		return string(r[:mostCallText]) + "..."
	}
	return s
}

// mostPoints is how many checkpoints are shown to people.
const mostPoints = 15

// pointsText lists checkpoints, newest first.
func pointsText(points []runs.Checkpoint) string {
	var b strings.Builder
	for i, c := range points {
		if i == mostPoints {
			fmt.Fprintf(&b, "(%d more: --output json)", len(points)-i)
			break
		}
		fmt.Fprintf(&b, "@%-4d %s\n", c.At, pointText(&c))
	}
	return b.String()
}

// pointText describes a checkpoint.
func pointText(c *runs.Checkpoint) string {
	what := c.Kind
	if c.What != "" {
		what += " of " + c.What
	}
	if c.Path != "" {
		what += " in " + cmp.Or(strings.TrimSuffix(runs.PlainPath(c.Path), "/"), "the lead")
	}
	if len(c.Next) > 0 {
		what += ", then " + joinWords(c.Next)
	}
	return what
}

func statusOf(s *runView) graph.Status {
	if len(s.Questions) > 0 {
		return graph.Waiting
	}
	return graph.Paused
}

// pathText joins the visited nodes; those of a parallel step are in brackets.
func pathText(path []any) string {
	var parts []string
	for _, p := range path {
		switch p := p.(type) {
		case string:
			parts = append(parts, p)
		case []string:
			parts = append(parts, "["+joinWords(p)+"]")
		}
	}
	const most = 40
	if len(parts) > most {
		parts = append([]string{fmt.Sprintf("(%d steps)", len(parts)-most)}, parts[len(parts)-most:]...)
	}
	return strings.Join(parts, " -> ")
}

// formatVariables writes variables, sorted by their names.
func formatVariables(m map[string]string) string {
	var list []string
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// callsText lists calls of tools with their outcomes, oldest first, under the agent or node that made them if there are several. It leaves out
// calls that look into an empty inbox.
func callsText(calls []runs.ToolCall) string {
	calls = slices.DeleteFunc(slices.Clone(calls), isEmptyLook)
	var b strings.Builder
	if more := len(calls) - mostCalls; more > 0 {
		fmt.Fprintf(&b, "(%d before: --output json)\n", more)
		calls = calls[more:]
	}
	var makers []string
	for _, c := range calls {
		if !slices.Contains(makers, c.Path) {
			makers = append(makers, c.Path)
		}
	}
	for _, maker := range makers {
		margin, path := "", plainText(runs.PlainPath(maker))
		if len(makers) > 1 {
			fmt.Fprintf(&b, "%s\n", cmp.Or(strings.TrimSuffix(path, "/"), "the lead"))
			margin, path = "  ", ""
		}
		for _, c := range calls {
			if c.Path == maker {
				b.WriteString(margin + path + callText(&c, margin))
			}
		}
	}
	return b.String()
}

// callText returns a call and, on a line after margin, its outcome.
func callText(c *runs.ToolCall, margin string) string {
	outcome := c.Status
	switch {
	case c.Outcome != "":
		outcome += ": " + shortenLine(c.Outcome)
	case c.Status == "begun":
		outcome += ": its outcome is not recorded"
	}
	return fmt.Sprintf("%s %s\n%s  %s\n", plainText(c.Tool), shortenLine(asWritten(string(c.Args))), margin, outcome)
}

// isEmptyLook reports whether a call has looked for messages and found none.
func isEmptyLook(c runs.ToolCall) bool {
	var box struct{ Messages *[]json.RawMessage }
	return c.Tool == "agent__check_inbox" && json.Unmarshal([]byte(c.Outcome), &box) == nil && box.Messages != nil && len(*box.Messages) == 0
}

// stateText returns a state for people: a line for each key, in the order of the state, without empty values.
func stateText(state json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(state))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return string(state)
	}
	var b strings.Builder
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return string(state)
		}
		text := string(value)
		switch text {
		case "null", `""`, "[]", "{}":
			continue
		}
		var plain string
		if json.Unmarshal(value, &plain) != nil {
			plain = asWritten(text)
		}
		fmt.Fprintf(&b, "%s: %s\n", plainText(fmt.Sprint(key)), shortenLine(plain))
	}
	return b.String()
}
