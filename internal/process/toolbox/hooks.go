package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/hook"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool"
)

// projectHooks is the file in which a project lists hooks.
const projectHooks = ".raddle/hooks.yaml"

// A hookSource is a file with hooks.
type hookSource struct {
	hooks   []hook.Hook
	dir     string // of the file
	trusted bool   // the user has agreed to what it runs
	boxed   bool   // its commands run in the box, where one holds: they are not the user's own
}

// OpenHooks reads the hooks of the project, and returns what finds the hooks around the work of an agent: see
// [flow.Tooling]. Those of raddle's configuration run first, then those of the agent, then those of the project.
func (tb *Toolbox) OpenHooks() (func(agentDir string, own []hook.Hook) agent.FindHooks, error) {
	s := tb.shared
	project, err := readProjectHooks(tb.workspace)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(tb.workspace, filepath.Dir(projectHooks))
	around := hookSource{project, dir, len(project) > 0 && s.hasConsent(dir), true}
	left := &sync.Once{} // reports the hooks that do not run
	return func(agentDir string, own []hook.Hook) agent.FindHooks {
		sources := []hookSource{{s.Config.Hooks, s.Dirs.Config, true, false}, {own, agentDir, len(own) > 0 && tb.TrustsDir(agentDir), true}, around}
		if len(s.Config.Hooks)+len(own)+len(project) == 0 {
			return nil
		}
		return func(ctx context.Context, t tool.Tool, in agent.HookInput) (list []agent.Hook) {
			for _, source := range sources {
				for _, h := range source.hooks {
					switch {
					case h.On != string(in.On) || !tb.isHookAbout(ctx, h, t, in):
					case source.trusted:
						list = append(list, agent.Hook{
							ID:   h.ID(),
							Name: s.Dirs.ShortPath(h.Name()),
							Run:  tb.runHook(h, source),
						})
					case in.On == agent.HookBeforeTool:
						list = append(list, agent.Hook{
							ID:   h.ID(),
							Name: s.Dirs.ShortPath(h.Name()),
							Run:  refuseUntrusted(s.Dirs.ShortPath(source.dir)),
						})
					default:
						left.Do(func() {
							graph.Emit(ctx, agent.Warning{Text: fmt.Sprintf("the hook %s does not run: %s", s.Dirs.ShortPath(h.Name()), needsConsent(s.Dirs.ShortPath(source.dir)))})
						})
					}
				}
			}
			return list
		}
	}, nil
}

// needsConsent says why hooks of a directory do not run, and what to do.
func needsConsent(dir string) string {
	return fmt.Sprintf("the hooks of %s need your consent as they are now. Start raddle at a terminal, which asks for it, or remove them", dir)
}

// refuseUntrusted returns what answers instead of a hook before calls without consent: the call, which the hook should
// have looked at, is not made.
func refuseUntrusted(dir string) func(context.Context, agent.HookInput) (agent.HookAnswer, error) {
	return func(context.Context, agent.HookInput) (agent.HookAnswer, error) {
		return agent.HookAnswer{}, errors.New(needsConsent(dir))
	}
}

// isHookAbout reports whether a hook is about a call, or about no call. If that is not known, it is.
func (tb *Toolbox) isHookAbout(ctx context.Context, h hook.Hook, t tool.Tool, in agent.HookInput) bool {
	if len(h.Tools) == 0 {
		return true
	}
	for _, r := range h.Tools {
		if ok, err := tb.policy.MatchesRule(ctx, r, t, tool.Call{Args: in.Arguments}); ok || err != nil {
			return true
		}
	}
	return false
}

// runHook returns what runs a hook of a file.
func (tb *Toolbox) runHook(h hook.Hook, source hookSource) func(context.Context, agent.HookInput) (agent.HookAnswer, error) {
	return func(ctx context.Context, in agent.HookInput) (agent.HookAnswer, error) {
		input, err := json.Marshal(in)
		if err != nil {
			return agent.HookAnswer{}, err
		}
		r := hook.Surroundings{
			Dir: tb.workspace,
			Env: append(tb.ChildEnv()[:len(tb.ChildEnv()):len(tb.ChildEnv())], workspaceVariable+"="+tb.workspace),
		}
		if source.boxed {
			r.Start = tb.runConfined
		}
		answer, err := r.Run(ctx, h, source.dir, input)
		return agent.HookAnswer(answer), err
	}
}

// readProjectHooks reads the hooks that a workspace lists.
func readProjectHooks(workspace string) ([]hook.Hook, error) {
	path := filepath.Join(workspace, projectHooks)
	if !config.IsFile(path) {
		return nil, nil
	}
	text, err := plainfile.ReadBeneath(workspace, path, largestProject)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, hooksError(err)
	}
	hooks, err := hook.Parse(path, text)
	if err != nil {
		return nil, hooksError(err)
	}
	return hooks, nil
}

// hooksError reports hooks that cannot be used. With such hooks nothing runs.
func hooksError(err error) error {
	return &failure.Error{Kind: failure.Invalid, Msg: "the hooks cannot be used", Err: err, Next: "correct them"}
}

// listHooks returns the commands of the hooks that a directory brings: the project's, or those of an agent.
func (s *Shared) listHooks(a *flow.Agent, dir string) (list []string) {
	hooks := []hook.Hook{}
	if dir == filepath.Join(s.Dirs.Work, filepath.Dir(projectHooks)) {
		hooks, _ = readProjectHooks(s.Dirs.Work) // a file that cannot be read has no hooks that run
	}
	for _, child := range a.Agents() {
		if child.Dir == dir {
			hooks = append(hooks, flow.ListHooks(child)...)
		}
	}
	for _, h := range hooks {
		list = append(list, h.On+": "+h.Run)
	}
	return list
}
