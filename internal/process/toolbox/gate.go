package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// A Gate gives permission for the calls of a run: by the user's rules and the
// project's, and by what people have answered.
type Gate struct {
	policy   permission.Policy
	doubts   func(name string) bool
	code     func() []string // paths from which code runs without being named; agents may join it
	host     builtin.Host
	remember string // the file of permanent grants
	mode     *permission.ModeSwitch

	mu     sync.Mutex
	always []permission.Rule // grants since the process started
}

var (
	_ agent.Gate         = (*Gate)(nil)
	_ agent.GrantChecker = (*Gate)(nil)
)

// These are the files of rules. Only raddle writes the first one.
const (
	grantsFile  = "permissions.yaml"
	projectFile = ".raddle/permissions.yaml"
)

// NewGate reads the rules for a run in a workspace, with the directory of the agent that the user named; "": the user
// named none. Each decision reads the mode, which may be nil.
func (s *Shared) NewGate(tb *Toolbox, agentDir string, mode *permission.ModeSwitch) (*Gate, error) {
	remember := filepath.Join(s.Dirs.Config, grantsFile)
	project := filepath.Join(tb.workspace, projectFile)
	g := &Gate{
		doubts:   tb.IsUntrusted,
		code:     tb.codePaths,
		host:     tb.builtinHost(),
		remember: remember,
		mode:     mode,
		policy: permission.Policy{
			Rules:     []permission.Rules{s.Config.Permissions},
			Workspace: tb.workspace,
			Home:      s.Dirs.Home,
			Env:       tb.ChildEnv(),
			Person:    tb.Person,
			Readable:  []string{filepath.Join(s.Dirs.Config, skillsDir)},
			Trusted:   tb.IsTrusted,
			Untrusted: tb.IsUntrusted,
			Guarded:   []string{remember, s.consentStore().Path, filepath.Join(s.Dirs.Config, config.FileName), project},
		},
	}
	if agentDir != "" {
		g.policy.Readable = append(g.policy.Readable, agentDir)
	}
	own, err := rulesOf(remember)
	if err != nil {
		return nil, rulesError(err)
	}
	text, err := plainfile.ReadBeneath(tb.workspace, project, largestRules)
	theirs, err := parseRulesOf(project, text, err)
	if err != nil {
		return nil, rulesError(err)
	}
	if !s.hasConsent(filepath.Dir(project)) {
		theirs = theirs.WithoutAllow()
	}
	g.policy.Rules = append(g.policy.Rules, own, theirs)
	g.policy.Box = tb.permissionBox()
	tb.policy = g.policy
	return g, nil
}

// rulesError reports rules that cannot be used. With such rules nothing runs.
func rulesError(err error) error {
	return &failure.Error{
		Kind: failure.Invalid,
		Msg:  "the permission rules cannot be used",
		Err:  err,
		Next: "correct them",
	}
}

// largestRules is the size in bytes above which a file of rules is not read. LoadRules checks the exact size.
const largestRules = 16 << 20

// rulesOf reads a file of rules, which need not exist.
func rulesOf(path string) (permission.Rules, error) {
	text, err := plainfile.Read(path, largestRules)
	return parseRulesOf(path, text, err)
}

// LoadRulesFile reads a file of rules that a person names. name is the file in messages.
func LoadRulesFile(path, name string) (permission.Rules, error) {
	text, err := plainfile.Read(path, largestRules)
	if os.IsNotExist(err) {
		return permission.Rules{}, failure.NewUsage("name a file with the lists allow, ask and deny", "there is no file %s", name)
	}
	rules, err := parseRulesOf(name, text, err)
	if err != nil {
		return rules, rulesError(err)
	}
	return rules, nil
}

// CheckRules returns an error if one of the rules of a file can never match a call of one of the tools.
func CheckRules(rules permission.Rules, tools []tool.Tool) error {
	if err := permission.CheckTools([]permission.Rules{rules}, tools); err != nil {
		return rulesError(err)
	}
	return nil
}

// WithRules returns a gate with only these rules, and without the answers of this process.
func (g *Gate) WithRules(rules permission.Rules) *Gate {
	other := &Gate{policy: g.policy, doubts: g.doubts, code: g.code, host: g.host, remember: g.remember, mode: g.mode}
	other.policy.Rules = []permission.Rules{rules}
	return other
}

// parseRulesOf returns the rules of a file that was read, or not.
func parseRulesOf(path string, text []byte, err error) (permission.Rules, error) {
	if os.IsNotExist(err) {
		return permission.Rules{}, nil
	}
	if err != nil {
		return permission.Rules{}, err
	}
	return permission.LoadRules(path, text)
}

// Decide implements [agent.Gate].
func (g *Gate) Decide(ctx context.Context, t tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	d, err := g.judgeCall(ctx, t, c, granted)
	if err != nil {
		return agent.Decision{}, err
	}
	permit := &tool.Permit{
		Allowed: d.Allowed,
		Unasked: d.Unasked,
		Boxed:   d.Boxed,
		Hosts:   d.Hosts,
		Judge: func(args json.RawMessage, more []string) error {
			return g.checkOther(ctx, t, tool.Call{Args: args}, slices.Concat(granted, more))
		},
	}
	grounds := make([]agent.Ground, len(d.Grounds))
	for i, g := range d.Grounds {
		grounds[i] = agent.Ground{Text: g.Text, By: string(g.By), Rule: g.Rule, Why: g.Why}
	}
	switch d.Verdict {
	case permission.Allow:
		return agent.Decision{Verdict: agent.Allow, Permit: permit, Grounds: grounds}, nil
	case permission.Deny:
		return agent.Decision{Verdict: agent.Deny, Reason: d.Model, Grounds: grounds}, nil
	}
	prompt := "May " + t.Name + " be called with " + string(c.Args) + "?"
	for _, risk := range d.Risks {
		prompt += "\nCareful: it " + risk + "."
	}
	if len(d.Reasons) > 0 {
		prompt += "\n" + strings.Join(d.Reasons, "\n")
	}
	detail := &agent.CallDetail{Does: d.Does, Command: d.Command, Risks: d.Risks, Dir: g.policy.Workspace}
	for _, p := range d.Parts {
		detail.Parts = append(detail.Parts, agent.CallPart{Text: p.Text, Why: p.Why, Detail: p.Detail, Rule: p.Rule})
	}
	return agent.Decision{
		Verdict: agent.Ask,
		Prompt:  prompt,
		Diff:    builtin.Preview(g.host, c, t.Name),
		Detail:  detail,
		Grant:   d.Grant,
		Words:   d.Words,
		Lasting: d.Lasting,
		Permit:  permit,
		Grounds: grounds,
		Bound:   slices.ContainsFunc(d.Grant, permission.IsBound),
	}, nil
}

// judgeCall decides on a call by the rules, the mode and the answers as they are now.
func (g *Gate) judgeCall(ctx context.Context, t tool.Tool, c tool.Call, granted []string) (permission.Decision, error) {
	policy := g.policy
	policy.Code, policy.Mode = g.code(), g.mode.Mode()
	rules, err := parseRules(granted)
	if err != nil {
		return permission.Decision{}, err
	}
	g.mu.Lock()
	policy.Granted = slices.Concat(g.always, rules)
	g.mu.Unlock()
	return policy.Decide(ctx, g.distrustEffect(t), c)
}

// checkOther returns why a call could not be made without a question, or nil: see [tool.Permit].
func (g *Gate) checkOther(ctx context.Context, t tool.Tool, c tool.Call, granted []string) error {
	d, err := g.judgeCall(ctx, t, c, granted)
	switch {
	case err != nil:
		return err
	case d.Verdict == permission.Deny:
		return errors.New(d.Model)
	case d.Verdict == permission.Ask:
		return fmt.Errorf("no rule and no answer allows it: %s", strings.Join(d.Reasons, "; "))
	}
	return nil
}

// CheckNarrowed implements [agent.GrantChecker].
func (g *Gate) CheckNarrowed(grant, rules []string) error {
	return g.policy.CheckNarrowed(grant, rules)
}

// distrustEffect removes what a tool declares about itself if the user has not approved its script.
func (g *Gate) distrustEffect(t tool.Tool) tool.Tool {
	if t.Effect != tool.Dangerous && g.doubts(t.Name) {
		t.Effect = tool.Undeclared
	}
	return t
}

// describeCalls says whether calls of a tool ask.
func (g *Gate) describeCalls(t tool.Tool) CallRule {
	policy := g.policy
	policy.Mode = g.mode.Mode()
	verdict, known := policy.DecideTool(g.distrustEffect(t))
	switch {
	case verdict == permission.Deny:
		return Denied
	case verdict == permission.Ask:
		return AlwaysAsks
	case known:
		return NeverAsks
	}
	return Depends
}

// Always implements [agent.Gate].
func (g *Gate) Always(_ context.Context, grant []string) error {
	if err := permission.RememberRules(g.remember, grant); err != nil {
		return err
	}
	rules, err := parseRules(grant)
	if err != nil {
		return err
	}
	for i := range rules {
		rules[i].Source = g.remember
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.always = append(g.always, rules...)
	return nil
}

// parseRules reads granted rules.
func parseRules(texts []string) ([]permission.Rule, error) {
	rules := make([]permission.Rule, len(texts))
	for i, text := range texts {
		var err error
		if rules[i], err = permission.ParseRule(text); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// JudgeCommand returns what the rules decide about a command of the shell in the working directory, as about a call of
// execute_command.
func (s *Shared) JudgeCommand(ctx context.Context, command string) (agent.Decision, error) {
	tb := s.NewToolbox(s.Dirs.Work, "")
	g, err := s.NewGate(tb, "", permission.NewModeSwitch(permission.ModeEdits))
	if err != nil {
		return agent.Decision{}, err
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return agent.Decision{}, err
	}
	t, _ := builtin.Lookup("execute_command", tb.builtinHost())
	return g.Decide(ctx, t, tool.Call{Args: args}, nil)
}
