package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
)

// These are the decisions of rules about a call.
const (
	wouldRun  = "run"
	wouldAsk  = "ask"
	wouldDeny = "deny"
)

// A JudgedCall is a recorded call, with what was decided then and what other rules say now.
type JudgedCall struct {
	// Path has the nodes and agents above the conversation, each followed by a slash.
	Path     string          `json:"path,omitempty"`
	ID       string          `json:"id"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"` // with which it was made
	Then     string          `json:"then"` // what was decided, in words
	Now      string          `json:"now"`  // "run", "ask" or "deny"
	Changed  bool            `json:"changed"`
	Stricter bool            `json:"stricter"` // it passed then, and would ask or be denied now
	Grounds  []agent.Ground  `json:"grounds"`  // what decides now
	// Unknown says that its tool is not known here, so that it was judged as one that declares nothing.
	Unknown bool `json:"unknown,omitempty"`

	call string // for people
	was  string // Then in fewer words
}

// Judgement is what other rules say about the calls of a recorded run.
type Judgement struct {
	Run     string       `json:"run"`
	Rules   string       `json:"rules"` // the file
	Mode    string       `json:"mode"`
	Calls   []JudgedCall `json:"calls"`
	Runs    int          `json:"run_calls"`
	Asks    int          `json:"ask_calls"`
	Denied  int          `json:"denied_calls"`
	Changed int          `json:"changed_calls"`
	Notes   []string     `json:"notes"`
}

// JudgeCalls judges every recorded call of a run by the rules of a file, instead of those of the user and the project.
// It makes no call and asks no model.
func JudgeCalls(ctx context.Context, p *app.Process, j Job, file string) (*Judgement, error) {
	rec := *j.Recording.Record
	res := &Result{Changes: []string{}}
	out := &Judgement{Run: j.Recording.Run, Rules: file, Calls: []JudgedCall{}, Notes: []string{"the calls are judged as the files in the workspace are now, which may have changed since"}}
	dir := j.Agent
	if dir == "" && config.IsDir(rec.Dir) {
		dir = rec.Dir
	}
	if dir == "" {
		recorded, remove, err := j.Recording.restoreFiles(res)
		if err != nil {
			return nil, err
		}
		defer remove()
		dir = recorded
		out.Notes = append(out.Notes, "the agent is not on this machine: its files are those of the recording; name its directory with --agent")
	}
	if !config.IsDir(rec.Workspace) {
		out.Notes = append(out.Notes, fmt.Sprintf("the workspace of the run, %s, is not on this machine: the calls are judged in the current directory", rec.Workspace))
		rec.Workspace = p.Dirs.Work
	}
	judge, err := app.NewRulesJudge(p, &rec, dir, file)
	if err != nil {
		return nil, err
	}
	out.Mode = string(judge.Mode)
	for _, t := range j.Recording.threads {
		calls, err := runs.ListRecordedCalls(t.Records)
		if err != nil {
			return nil, err
		}
		for i := range calls {
			if err := out.addCall(ctx, judge, &calls[i]); err != nil {
				return nil, err
			}
		}
	}
	out.addUnknown()
	return out, nil
}

// addCall judges one call. Calls on which no rule decides, because they were never ready to be made, are left out.
func (o *Judgement) addCall(ctx context.Context, judge *app.RulesJudge, c *runs.ToolCall) error {
	if !c.Reached && c.Permission == nil && c.Status != "unrecorded" {
		return nil
	}
	j := JudgedCall{Path: runs.PlainPath(c.Path), ID: c.ID, Tool: c.Tool, Args: c.Args, Then: story.DescribePermission(c), Grounds: []agent.Ground{}, call: story.DescribeCall(c)}
	if name := story.NamePath(c.Path); name != "" {
		j.call = name + ": " + j.call
	}
	if len(c.MadeWith) > 0 {
		j.Args = c.MadeWith
	}
	if p := c.Permission; p != nil && slices.ContainsFunc(p.Grounds, func(g agent.Ground) bool { return g.By == "hook" || g.By == "call" }) {
		j.Now = wouldDeny
		j.Grounds = p.Grounds // no rule was asked
	} else if err := j.judge(ctx, judge); err != nil {
		return err
	}
	then := wouldRun
	asked := false
	switch p := c.Permission; {
	case p != nil && p.Verdict == "ask":
		then = wouldAsk
		asked = true
	case p != nil && p.Verdict == "deny" || p == nil && c.Refused:
		then = wouldDeny
	}
	passed := then == wouldRun || asked && slices.Contains([]string{"once", "run", "words", "always", "edit"}, c.Permission.Answer)
	j.Changed = j.Now != then && !(c.Permission == nil && c.Refused)
	j.Stricter = passed && (j.Now == wouldDeny || j.Now == wouldAsk && !asked)
	if p := c.Permission; asked && j.Now != wouldDeny {
		judge.AddGrant(p.Rules)
	}
	j.was = describeThen(c, then, passed)
	o.count(&j)
	o.Calls = append(o.Calls, j)
	return nil
}

// describeThen returns what was decided about a call, in words for a narrow column.
func describeThen(c *runs.ToolCall, then string, passed bool) string {
	switch {
	case c.Permission == nil && passed:
		return "made"
	case c.Permission.IsBoxed():
		return "box"
	case then == wouldAsk && passed:
		return "asked: yes"
	case then == wouldAsk:
		return "asked: no"
	case then == wouldDeny:
		return "denied"
	}
	return "allowed"
}

// judge sets what the rules say about the call.
func (j *JudgedCall) judge(ctx context.Context, judge *app.RulesJudge) error {
	d, known, err := judge.JudgeCall(ctx, j.Tool, j.Args)
	j.Unknown = !known
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		j.Now, j.Grounds = wouldDeny, []agent.Ground{{Text: j.Tool, By: "call", Why: "cannot be judged: " + err.Error()}}
		return nil
	}
	j.Now = map[agent.Verdict]string{agent.Allow: wouldRun, agent.Ask: wouldAsk, agent.Deny: wouldDeny}[d.Verdict]
	j.Grounds = append(j.Grounds, d.Grounds...)
	return nil
}

func (o *Judgement) count(j *JudgedCall) {
	switch j.Now {
	case wouldRun:
		o.Runs++
	case wouldAsk:
		o.Asks++
	default:
		o.Denied++
	}
	if j.Changed {
		o.Changed++
	}
}

// addUnknown adds a note about tools that are not known.
func (o *Judgement) addUnknown() {
	var names []string
	for i := range o.Calls {
		if c := &o.Calls[i]; c.Unknown && !slices.Contains(names, c.Tool) {
			names = append(names, c.Tool)
		}
	}
	if len(names) > 0 {
		o.Notes = append(o.Notes, "not known without starting a server, and judged as tools that declare nothing: "+strings.Join(names, ", "))
	}
}

// IsStricter reports whether a call that passed then would ask or be denied now.
func (o *Judgement) IsStricter() bool {
	return slices.ContainsFunc(o.Calls, func(j JudgedCall) bool { return j.Stricter })
}

// describeNow returns what decides now: the rules, or the first other reason.
func (j *JudgedCall) describeNow() string {
	var rules []string
	for _, g := range j.Grounds {
		if g.Rule != "" && !slices.Contains(rules, g.Rule) {
			rules = append(rules, g.Rule)
		}
	}
	if len(rules) > 0 {
		return strings.Join(rules, ", ")
	}
	if len(j.Grounds) > 0 {
		return "no rule: " + j.Grounds[0].Why
	}
	return "no rule"
}

// nowWords are the decisions about a call, for people.
var nowWords = map[string]string{wouldRun: "runs", wouldAsk: "asks", wouldDeny: "denied"}

// style returns the look of what is decided now: of what has become stricter, and of what has changed.
func (c *JudgedCall) style() term.Style {
	switch {
	case c.Stricter:
		return term.Red
	case c.Changed:
		return term.Yellow
	}
	return ""
}

// Describe returns the judgement for people, with lines for a terminal of a width; 0: they are not cut.
func (o *Judgement) Describe(width int, colors term.Colors) string {
	var b strings.Builder
	for _, note := range o.Notes {
		fmt.Fprintf(&b, "note: %s\n", term.CleanText(note))
	}
	type row struct {
		then, now, text string
		style           term.Style
	}
	table := term.NewTable(
		term.NewColumn("THEN", func(r row) string { return r.then }),
		term.Column[row]{Heading: "NOW", Cell: func(r row) string { return r.now }, Style: func(r row) term.Style { return r.style }},
		term.NewColumn("CALL, AND WHAT DECIDES NOW", func(r row) string { return r.text }),
	)
	for i := range o.Calls {
		c := &o.Calls[i]
		table.AddRow(row{then: c.was, now: nowWords[c.Now], text: c.call, style: c.style()})
		table.AddRow(row{text: "  " + c.describeNow()})
	}
	if len(o.Calls) > 0 {
		b.WriteString(table.Paint(width, colors))
	}
	fmt.Fprintf(&b, "%s: %d would run, %d would ask, %d would be denied; changed: %d\n", wording.FormatCount(len(o.Calls), "call"), o.Runs, o.Asks, o.Denied, o.Changed)
	return b.String()
}
