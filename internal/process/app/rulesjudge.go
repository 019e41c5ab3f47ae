package app

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// A RulesJudge judges calls of a recorded run by the rules of a file, instead of those of the user and the project. It
// makes no call, asks no model and starts no server: what it looks at is the workspace as it is now.
type RulesJudge struct {
	Mode permission.Mode // that of the run when it started

	gate    *toolbox.Gate
	tools   map[string]tool.Tool
	granted []string
}

// NewRulesJudge returns a judge for the run of a record, with the rules of a file and the agent in a directory.
func NewRulesJudge(p *Process, rec *runs.Record, dir, file string) (*RulesJudge, error) {
	rules, err := toolbox.LoadRulesFile(p.Dirs.AbsPath(file), file)
	if err != nil {
		return nil, err
	}
	mode, _ := permission.ParseMode(rec.Mode)
	j := &RulesJudge{Mode: cmp.Or(mode, permission.ModeEdits), tools: map[string]tool.Tool{}}
	then := *rec
	then.Dir = dir
	then.Override = ""
	host, err := p.newHost(&then, UIHooks{Mode: permission.NewModeSwitch(j.Mode)})
	if err != nil {
		return nil, err
	}
	j.gate = host.Tooling.Gate.(*toolbox.Gate).WithRules(rules)
	opened := &openedTools{Toolbox: host.Tooling.Box}
	host.Tooling.Box = opened
	host.Models = anyModel{host.Models}
	a, err := flow.Load(dir, host)
	if err != nil {
		return nil, err
	}
	list := opened.list
	for _, one := range a.Agents() {
		list = append(list, one.AvailableTools()...)
	}
	for _, t := range list {
		if _, known := j.tools[t.Name]; !known {
			j.tools[t.Name] = t
		}
	}
	return j, toolbox.CheckRules(rules, list)
}

// JudgeCall decides on a call. known is false if the tool is not known without starting a server, so that the call was
// judged as one of a tool that declares nothing.
func (j *RulesJudge) JudgeCall(ctx context.Context, name string, args json.RawMessage) (d agent.Decision, known bool, err error) {
	t, known := j.tools[name]
	if !known {
		t = tool.Tool{Name: name}
	}
	d, err = j.gate.Decide(ctx, t, tool.Call{ID: "call", Args: args}, j.granted)
	return d, known, err
}

// AddGrant adds the rules of an answer, which count for the calls that are judged after it. A rule that cannot be read
// counts for nothing: its text was shortened or had a secret.
func (j *RulesJudge) AddGrant(rules []string) {
	for _, r := range rules {
		if _, err := permission.ParseRule(r); err == nil {
			j.granted = append(j.granted, r)
		}
	}
}

// openedTools notes which tools the agents of a run open.
type openedTools struct {
	flow.Toolbox
	mu   sync.Mutex
	list []tool.Tool
}

// Open implements [flow.Toolbox].
func (o *openedTools) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	set, err := o.Toolbox.Open(n)
	if err != nil {
		return set, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, set.Tools...)
	for _, tools := range set.SkillTools {
		o.list = append(o.list, tools...)
	}
	return set, nil
}

// anyModel are models of which an agent may name every one, because none is asked.
type anyModel struct{ flow.Models }

// IsKnown implements [flow.Models].
func (anyModel) IsKnown(string, string) bool { return true }
