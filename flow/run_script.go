package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/interpreter"
	"raddle.dev/internal/proc"
	"raddle.dev/internal/tempdir"
)

// runScript runs a script and merges the object that it prints.
func (v *nodeRun) runScript(b *spec.ScriptNode) error {
	if err := v.mayRun(b); err != nil {
		return err
	}
	result, err := v.executeAndParse(b)
	if err != nil {
		return v.scriptFailed(b, err)
	}
	if result.Rounded != "" {
		v.warnf("[graph:%s] script '%s' printed the number %s, which is too large to be stored exactly: print it as text", v.agent.File.Name, v.node.ID, result.Rounded)
	}
	v.mergeObject(result.Writes)
	v.applyUpdates("", nil)
	if !result.Routed {
		return v.goNext()
	}
	if graph.IsEmitEnabled(v) {
		graph.Emit(v, ScriptNext{result.Next})
	}
	return v.goTo(result.Next)
}

// KindTrust is the kind of a question whether something may run that the user
// did not name. Only a person who sees the question can answer it: an answer
// that was given in advance is refused.
const KindTrust = "trust"

// These are answers to the question whether a script may run. Only scriptOnce
// permits it, so an answer in advance to another question does not.
const (
	scriptOnce = "once"
	scriptNo   = "no"
)

// checkConsent rejects consent that was given before the question was shown.
func checkConsent(q graph.Question, a graph.Answer) error {
	if a.Ahead && q.Kind == KindTrust && a.Value != scriptNo {
		return errors.New("consent cannot be given in advance: run it at a terminal and answer there, or name the directory on the command line")
	}
	return nil
}

// mayRun asks before a script of an untrusted directory runs.
func (v *nodeRun) mayRun(b *spec.ScriptNode) error {
	doubts := v.host().Tooling.Doubts
	if doubts == nil || !doubts(v.agent.Dir) {
		return nil
	}
	refused := fmt.Errorf("script node '%s' of agent '%s' may not run: no person has consented to the scripts in %s", v.node.ID, v.agent.Name, v.agent.Dir)
	if v.host().Headless {
		return refused
	}
	answer, err := graph.Interrupt[string](v, graph.Ask{Name: "consent", Kind: KindTrust, Options: []string{scriptOnce, scriptNo},
		Prompt: fmt.Sprintf("May the script %s of agent '%s' run? Its directory %s was not named by you.", b.Script, v.agent.Name, v.agent.Dir)})
	switch {
	case isWaiting(err):
		return err
	case err != nil || answer != scriptOnce:
		return refused
	}
	return nil
}

// notStartedError says that the system could not start a script: its
// interpreter is missing, or no process, descriptor or temporary file was
// available. A missing script file is an error in the graph and is routed like
// any other failure of the node.
type notStartedError struct{ cause error }

func (e *notStartedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *notStartedError) Unwrap() error { return e.cause }

// scriptFailed follows the route of a failure: fallback, else next. The output
// of the script is dropped. If the script did not start, the run fails there
// and continues there after the problem is solved.
func (v *nodeRun) scriptFailed(b *spec.ScriptNode, err error) error {
	var (
		plain      *plainError // an unknown node in _next is not a failure of the script
		notStarted *notStartedError
	)
	if v.branch || isFatal(v, err) || isWaiting(err) || errors.As(err, &plain) || errors.As(err, &notStarted) {
		return err
	}
	switch {
	case b.Fallback != "":
		v.warnf("[graph:%s] script '%s' failed, routing to fallback '%s': %v", v.agent.File.Name, v.node.ID, b.Fallback, err)
		return v.goTo(b.Fallback)
	case v.node.Next != nil:
		v.warnf("[graph:%s] script '%s' failed, going on to '%s': %v", v.agent.File.Name, v.node.ID, strings.Join(v.node.Next, "', '"), err)
		return v.goNext()
	}
	return err
}

// executeAndParse runs the script and decodes its output.
func (v *nodeRun) executeAndParse(b *spec.ScriptNode) (scriptResult, error) {
	path := b.Script
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.agent.Dir, path)
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return scriptResult{}, spec.Failf("Script file not found: '%s'", path)
	}
	if err := checkExtension(path); err != nil {
		return scriptResult{}, err
	}
	var result scriptResult
	stdout, err := graph.Do(v, "script", func(ctx context.Context) (string, error) {
		if graph.IsEmitEnabled(v) {
			graph.Emit(v, ScriptRun{b.Script})
		}
		stdout, err := v.executeScript(ctx, b, path)
		if err != nil {
			return "", err
		}
		if result, err = readScriptOutput(path, stdout); err != nil {
			return "", err
		}
		return stdout, v.checkResult(result)
	})
	if err != nil || result.Writes != nil {
		return result, err
	}
	return readScriptOutput(path, stdout) // recorded by an earlier drive
}

// checkResult rejects, before it is recorded, output with which the node can never
// continue: when the script is corrected, a resumed run must run it again.
func (v *nodeRun) checkResult(r scriptResult) error {
	if r.Routed && !v.branch && v.agent.File.Node(r.Next) == nil {
		return v.unknownNodeError(r.Next)
	}
	if v.branch && v.outputKey != "" {
		_, written := r.Writes.Get(v.outputKey)
		if _, known := v.lookupKey(v.outputKey); !written && !known && !v.updatesKey(v.outputKey) {
			return errNoOutput
		}
	}
	return nil
}

// updatesKey reports whether state_updates write a key.
func (v *nodeRun) updatesKey(key string) bool {
	return slices.ContainsFunc(v.node.Updates, func(u spec.Update) bool { return u.Key == key })
}

// checkExtension rejects a script whose extension has no interpreter.
func checkExtension(path string) error {
	switch ext := scriptExtension(path); ext {
	case "sh", "py", "ts":
		return nil
	case "":
		return spec.Failf("Script has no file extension: '%s'", path)
	default:
		return spec.Failf("Unsupported script extension '.%s' for '%s'", strings.TrimPrefix(filepath.Ext(path), "."), path)
	}
}

func scriptExtension(path string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
}

// interpreterOf returns the program that runs a script, and the arguments
// before the script's own. It loads nothing only because it is in the
// workspace. cleanup removes the files that this needs.
func (v *nodeRun) interpreterOf(path string, env []string) (program string, args []string, cleanup func(), err error) {
	cleanup = func() {}
	switch scriptExtension(path) {
	case "sh":
		return "bash", []string{path}, cleanup, nil
	case "py":
		return "python3", []string{path}, cleanup, nil
	}
	scratch, remove, err := tempdir.New("script-*")
	if err != nil {
		return "", nil, cleanup, err
	}
	cleanup = remove
	search := interpreter.Search{Packages: v.host().packageDirs(v.agent.Dir), Workspace: v.host().Workspace}
	for _, pair := range env {
		if list, ok := strings.CutPrefix(pair, "PATH="); ok {
			search.Path = list
		}
	}
	program, args, err = search.FindTypeScript(path, scratch)
	return program, append(args, path), cleanup, err
}

// executeScript runs the child process and returns its output, trimmed. It records
// the identity of the process as soon as it runs, so that a later drive can end
// it.
func (v *nodeRun) executeScript(ctx context.Context, b *spec.ScriptNode, path string) (string, error) {
	timeout := b.Timeout.Duration()
	key := graph.EffectKey(ctx)
	env, cleanup, err := v.scriptEnv(key)
	if err != nil {
		return "", &notStartedError{err}
	}
	defer cleanup()
	program, args, cleanup, err := v.interpreterOf(path, env)
	defer cleanup()
	if err != nil {
		return "", &notStartedError{err}
	}
	res, err := proc.Run(ctx, proc.Command{
		Path: program, Args: args, Dir: v.workingDir(b), Env: env, Timeout: max(timeout, time.Nanosecond),
		Mark: keyVariable + "=" + key,
		Started: func(h proc.Handle) error {
			note, err := json.Marshal(h)
			if err != nil {
				return err
			}
			return graph.Note(ctx, note)
		},
	})
	if err != nil {
		return "", v.scriptError(path, timeout, res, err)
	}
	if res.StdoutDropped > 0 {
		return "", spec.Failf("Script '%s' printed more than %d MiB to stdout", path, proc.DefaultLimit>>20)
	}
	return v.host().redact(strings.TrimSpace(string(res.Stdout))), nil
}

// workingDir returns the directory in which the script of a node runs. "" means
// that of the process, for programs that set no workspace.
func (v *nodeRun) workingDir(b *spec.ScriptNode) string {
	if b.WorkingDir == spec.WorkingDirAgent || b.WorkingDir == "" && v.agent.File.WorkingDir == spec.WorkingDirAgent {
		return v.agent.Dir
	}
	return v.host().Workspace
}

// scriptError returns the failure of a child process in the words of the file
// format.
func (v *nodeRun) scriptError(path string, timeout time.Duration, res proc.Result, err error) error {
	var (
		late   *proc.TimeoutError
		exit   *proc.ExitError
		absent *proc.StartError
	)
	switch {
	case errors.As(err, &late):
		return spec.Failf("Script '%s' timed out after %ds", path, int64(timeout/time.Second))
	case errors.As(err, &exit):
		code := "None"
		if exit.Signal == "" {
			code = fmt.Sprintf("Some(%d)", exit.Code)
		}
		stderr := strings.TrimSpace(string(proc.StripEscapes(res.Stderr)))
		return spec.Failf("Script '%s' failed with exit code %s:\n%s", path, code, v.host().redact(stderr))
	case errors.As(err, &absent):
		return &notStartedError{newChainError(fmt.Sprintf("Failed to spawn script process for '%s'", path), err)}
	}
	return err
}

// keyVariable contains the name of a call, which stays the same when the call
// is repeated after a crash. It also marks the processes that the script
// starts.
const keyVariable = "RADDLE_IDEMPOTENCY_KEY"

// inlineState is the largest state, in bytes, that is passed in a script's
// environment.
const inlineState = 32768

// scriptEnv returns the environment of a script: the host's, the state, and the
// variables of raddle. cleanup removes the state's file.
func (v *nodeRun) scriptEnv(key string) (env []string, cleanup func(), err error) {
	set := map[string]string{"LLM_AGENT_DATA_DIR": v.agent.Dir, "AUTO_CONFIRM": "true", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "1", keyVariable: key,
		"PYTHONDONTWRITEBYTECODE": "1"} // raddle must not write into the agent's directory
	if dir := v.host().ConfigDir; dir != "" {
		set["LLM_ROOT_DIR"] = dir
	}
	if dir := v.host().Workspace; dir != "" {
		set["RADDLE_WORKSPACE"] = dir
	}
	v.setHelpers(set)
	for _, variable := range v.agent.File.Variables {
		name := strings.ToUpper(strings.ReplaceAll(variable.Name, "-", "_"))
		set["LLM_AGENT_VAR_"+name] = v.agent.variableValue(variable)
	}
	cleanup = func() {}
	state := StateJSON(v.before)
	if len(state) <= inlineState {
		set["GRAPH_STATE"] = string(state)
	} else {
		file, remove, err := writeState(state)
		if err != nil {
			return nil, nil, fmt.Errorf("write the state for the script: %w", err)
		}
		set["GRAPH_STATE_FILE"] = file
		cleanup = remove
	}
	for _, pair := range v.host().childEnviron() {
		name, _, _ := strings.Cut(pair, "=")
		if _, ours := set[name]; !ours && name != "GRAPH_STATE" && name != "GRAPH_STATE_FILE" {
			env = append(env, pair)
		}
	}
	for _, name := range sortedNames(set) {
		env = append(env, name+"="+set[name])
	}
	return env, cleanup, nil
}

// setHelpers sets the file of helpers for bash, and a PATH that starts with the
// programs of the global tools.
func (v *nodeRun) setHelpers(set map[string]string) {
	tooling := v.host().Tooling
	if tooling.PromptUtils != nil {
		path, err := tooling.PromptUtils()
		if err != nil {
			v.warnf("[graph:%s] script '%s' runs without LLM_PROMPT_UTILS_FILE: %v", v.agent.File.Name, v.node.ID, err)
		} else {
			set["LLM_PROMPT_UTILS_FILE"] = path
		}
	}
	if tooling.Bin == "" {
		return
	}
	set["PATH"] = tooling.Bin
	for _, pair := range v.host().childEnviron() {
		if list, ok := strings.CutPrefix(pair, "PATH="); ok && list != "" {
			set["PATH"] = tooling.Bin + string(filepath.ListSeparator) + list
		}
	}
}

// writeState writes a large state to a file that only this user can read.
// remove deletes the file.
func writeState(state []byte) (path string, remove func(), err error) {
	dir, remove, err := tempdir.New("state-*")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "state.json")
	if err := os.WriteFile(path, state, 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// EndSurvivors ends child processes of a killed drive that its journal records.
// It returns an error for each process that could not be ended.
func EndSurvivors(in []graph.Intent) []error {
	var errs []error
	for _, i := range in {
		var h proc.Handle
		if json.Unmarshal(i.Note, &h) != nil || h.PID == 0 {
			continue
		}
		if _, err := proc.EndHandle(h); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			errs = append(errs, err)
		}
	}
	return errs
}
