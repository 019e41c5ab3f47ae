package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/base/wording"
)

// scriptNode runs a script and merges the JSON object that it prints.
type scriptNode struct {
	script     string // path, relative to the agent directory
	fallback   string // the node after a failure; empty: the next
	timeout    strictyaml.Seconds
	workingDir string // spec.WorkingDirAgent or spec.WorkingDirCaller; empty: as the graph says
}

var scriptKind = &kind{
	Kind: spec.Kind{
		Name:         "script",
		Doc:          "Runs a bash, Python or TypeScript script and merges the JSON object it prints.",
		Required:     []string{"script"},
		Optional:     []string{"state_updates", "fallback", "timeout", "working_dir", "targets"},
		Routing:      spec.RouteAny,
		WritesAnyKey: true,
	},
	decode: func(m *spec.NodeFields) nodeBody {
		m.ReadTargets()
		return &scriptNode{
			script:     m.ReadText("script", strictyaml.Required),
			fallback:   m.ReadFallback(false),
			timeout:    m.ReadSeconds("timeout", 30),
			workingDir: spec.ReadWorkingDir(m.Fields),
		}
	},
}

// Checks returns the checks of the script's file, and of what it may write at
// the same time as other nodes.
func (b *scriptNode) Checks() check.Checks {
	return check.Checks{check.Scripts: b.checkFile, check.Parallel: b.checkParallel}
}

func (b *scriptNode) checkFile(c *check.Checker, n *spec.Node) {
	if path := scriptPath(c.Context.Dir, b.script); !c.Context.HasFile(path) {
		c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: "script-missing", Node: n.ID, Message: fmt.Sprintf("Script file not found: '%s'", path),
			Fix: suggestScript(path), Pos: n.At("script")})
		return
	}
	b.checkWorkingDir(c, n)
}

// suggestScript says what to do about a script that does not exist: the nearest name in its directory.
func suggestScript(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path)) // without the directory there are none
	var names []string
	for _, e := range entries {
		if slices.Contains(scriptExtensions, filepath.Ext(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return cmp.Or(wording.SuggestNearest(filepath.Base(path), names, "`"), "paths are relative to the directory of graph.yaml")
}

func (b *scriptNode) checkParallel(c *check.Checker, n *spec.Node) {
	if n.Updates == nil {
		c.ErrorAt(n, n.Pos(), "parallel-script", "script node is in a parallel branch but declares no `state_updates`; parallel scripts must declare their writes explicitly to avoid silent state collisions")
	}
}

// relativePath matches a word of a script that may be a path relative to the
// directory in which the script runs: a word with a slash or an extension.
var relativePath = pattern.CompileLater(`(?m)(?:^|[\s"'(=<>])((?:\./)?[A-Za-z0-9_][A-Za-z0-9_-]*(?:/[A-Za-z0-9_.-]+|\.[A-Za-z0-9]+)+)`)

// longestScript is how much of a script is searched for paths, in bytes.
const longestScript = 1 << 18

// checkWorkingDir warns about a script that runs in the caller's directory and names
// a file that exists only in the agent's directory.
func (b *scriptNode) checkWorkingDir(c *check.Checker, n *spec.Node) {
	if b.workingDir != "" || c.File.WorkingDir != "" || c.Context.Workspace == "" || c.Context.Workspace == c.Context.Dir {
		return
	}
	text, err := readScript(scriptPath(c.Context.Dir, b.script), c.Context.Unsaved)
	if err != nil {
		return // it is reported as missing
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, m := range relativePath().FindAllStringSubmatch(line, -1) {
			if name := m[1]; check.FileExists(filepath.Join(c.Context.Dir, name)) && !check.FileExists(filepath.Join(c.Context.Workspace, name)) {
				c.WarnAt(n, n.At("script"), "working-dir", fmt.Sprintf("script '%s' names %s, which exists in the agent's directory only, and runs where raddle is started (to run it in the agent's directory: `working_dir: agent`)", b.script, name))
				return
			}
		}
	}
}

// readScript returns the beginning of a script, or of its unsaved text.
func readScript(path string, unsaved map[string][]byte) ([]byte, error) {
	if text, ok := unsaved[path]; ok {
		return text[:min(len(text), longestScript)], nil
	}
	file, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, longestScript))
}

// scriptExtensions are the extensions that decide how a script is run.
var scriptExtensions = []string{".sh", ".py", ".ts"}

// Advise reports a timeout of zero, and a script that raddle cannot run.
func (b *scriptNode) Advise(a *check.Adviser, n *spec.Node) {
	a.WarnZero(n, "timeout", b.timeout == 0, check.EndsAtOnce)
	b.adviseTargets(a, n)
	ext := strings.ToLower(filepath.Ext(b.script))
	switch {
	case slices.Contains(scriptExtensions, ext):
	case ext == "" || ext == ".":
		a.WarnAt(n, n.At("script"), "script-extension", fmt.Sprintf("script '%s' has no file extension: raddle does not know how to run it", b.script), "use .sh, .py or .ts")
	default:
		a.WarnAt(n, n.At("script"), "script-extension", fmt.Sprintf("unsupported script extension '%s'", ext), "use .sh, .py or .ts")
	}
}

func (b *scriptNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{script: b.script} }

func (b *scriptNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.CheckAnswer = checkConsent
	return nil
}

// run runs a script and merges the object that it prints.
func (b *scriptNode) run(nr *nodeRun) error {
	confined, err := b.decideRun(nr)
	if err != nil {
		return err
	}
	result, err := b.executeAndParse(nr, confined)
	if err != nil {
		return b.followFailure(nr, err)
	}
	if result.Rounded != "" {
		nr.warnf("[graph:%s] script '%s' printed the number %s, which is too large to be stored exactly: print it as text", nr.agent.File.Name, nr.node.ID, result.Rounded)
	}
	nr.mergeObject(result.Writes)
	nr.applyUpdates("", nil)
	switch {
	case result.Routed:
	case !nr.branch && nr.lacksNext():
		return spec.Errorf("script node '%s' did not emit `_next` and has no static `next`", nr.node.ID)
	default:
		return nr.goNext()
	}
	if graph.IsEmitEnabled(nr) {
		graph.Emit(nr, ScriptNext{result.Next})
	}
	return nr.goTo(result.Next)
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

// confinesScripts reports whether the scripts of the agent run in a box: no person has consented to them, and a box holds.
func (nr *nodeRun) confinesScripts() bool {
	t := nr.host().Tooling
	return !nr.host().trustsDir(nr.agent.Dir) && t.HoldsBox != nil && t.HoldsBox()
}

// askConsent is the name of the question whether a script may run.
const askConsent = "consent"

// decideRun asks before a script of an untrusted directory runs outside of a box, and reports whether it runs in one. It refuses every
// script if only reading is permitted. A person's answer counts for the whole visit of the node, also where a box holds that did not hold when
// the question was asked: after "no" the script does not run, after "once" it runs as the person was told.
func (b *scriptNode) decideRun(nr *nodeRun) (confined bool, err error) {
	if nr.host().onlyReads() {
		return false, fmt.Errorf("script node '%s' of agent '%s' may not run in the permission mode plan, in which an agent may only read: choose another mode", nr.node.ID, nr.agent.Name)
	}
	if nr.host().trustsDir(nr.agent.Dir) {
		return false, nil
	}
	refused := fmt.Errorf("script node '%s' of agent '%s' may not run: no person has consented to the scripts in %s", nr.node.ID, nr.agent.Name, nr.agent.Dir)
	if nr.confinesScripts() {
		answer, answered, err := graph.FindAnswer[string](nr, askConsent)
		if answered && (err != nil || answer != scriptOnce) {
			return false, refused
		}
		return !answered, err
	}
	if nr.host().Headless {
		return false, refused
	}
	answer, err := graph.Interrupt[string](nr, graph.Ask{Name: askConsent, Kind: KindTrust, Options: []string{scriptOnce, scriptNo},
		Prompt: fmt.Sprintf("May the script %s of agent '%s' run? Its directory %s was not named by you.", b.script, nr.agent.Name, nr.agent.Dir)})
	switch {
	case isWaiting(err):
		return false, err
	case err != nil || answer != scriptOnce:
		return false, refused
	}
	return false, nil
}

// notStartedError says that the system could not start a script: its
// interpreter is missing, or no process, descriptor or temporary file was
// available. A missing script file is an error in the graph and is routed like
// any other failure of the node.
type notStartedError struct{ cause error }

func (e *notStartedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *notStartedError) Unwrap() error { return e.cause }

// followFailure follows the route of a failure: fallback, else next. The output
// of the script is dropped. If the script did not start, the run fails there
// and continues there after the problem is solved.
func (b *scriptNode) followFailure(nr *nodeRun, err error) error {
	var (
		plain      *plainError // an unknown node in _next is not a failure of the script
		notStarted *notStartedError
	)
	if nr.branch || isFatal(nr, err) || isWaiting(err) || errors.As(err, &plain) || errors.As(err, &notStarted) {
		return err
	}
	if b.fallback != "" || nr.node.Next != nil {
		if err := nr.recordFailure(outermostText(err)); err != nil {
			return err
		}
	}
	switch {
	case b.fallback != "":
		nr.warnf("[graph:%s] script '%s' failed, routing to fallback '%s': %v", nr.agent.File.Name, nr.node.ID, b.fallback, err)
		return nr.goTo(b.fallback)
	case nr.node.Next != nil:
		nr.warnf("[graph:%s] script '%s' failed, continuing with '%s': %v", nr.agent.File.Name, nr.node.ID, strings.Join(nr.node.Next, "', '"), err)
		return nr.goNext()
	}
	return err
}

// executeAndParse runs the script, in a box if it is confined, and decodes its output.
func (b *scriptNode) executeAndParse(nr *nodeRun, confined bool) (scriptResult, error) {
	path := scriptPath(nr.agent.Dir, b.script)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return scriptResult{}, spec.Errorf("Script file not found: '%s'", path)
	}
	if err := checkExtension(path); err != nil {
		return scriptResult{}, err
	}
	var result scriptResult
	stdout, err := graph.Do(nr, "script", func(ctx context.Context) (string, error) {
		if graph.IsEmitEnabled(nr) {
			graph.Emit(nr, ScriptRun{b.script})
		}
		input := func() string { return string(StateJSON(nr.before)) }
		stdout, err := nr.doNodeWork(ctx, input, func(ctx context.Context) (string, error) { return b.executeScript(ctx, nr, path, confined) })
		if err != nil {
			return "", err
		}
		if result, err = readScriptOutput(path, stdout); err != nil {
			return "", err
		}
		return stdout, nr.checkResult(result)
	})
	if err != nil || result.Writes != nil {
		return result, err
	}
	return readScriptOutput(path, stdout) // recorded by an earlier drive
}

// checkResult rejects, before it is recorded, output with which the node can never
// continue: when the script is corrected, a resumed run must run it again.
func (nr *nodeRun) checkResult(r scriptResult) error {
	if r.Routed && !nr.branch && nr.agent.File.Node(r.Next) == nil {
		return nr.unknownNodeError(r.Next)
	}
	if nr.branch && nr.outputKey != "" {
		_, written := r.Writes.Get(nr.outputKey)
		if _, known := nr.lookupKey(nr.outputKey); !written && !known && !nr.updatesKey(nr.outputKey) {
			return errNoOutput
		}
	}
	return nil
}

// updatesKey reports whether state_updates write a key.
func (nr *nodeRun) updatesKey(key string) bool {
	return slices.ContainsFunc(nr.node.Updates, func(u spec.Update) bool { return u.Key == key })
}

// checkExtension rejects a script whose extension has no interpreter.
func checkExtension(path string) error {
	switch ext := scriptExtension(path); ext {
	case "sh", "py", "ts":
		return nil
	case "":
		return spec.Errorf("Script has no file extension: '%s'", path)
	default:
		return spec.Errorf("Unsupported script extension '.%s' for '%s'", strings.TrimPrefix(filepath.Ext(path), "."), path)
	}
}

func scriptExtension(path string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
}

// interpreterOf returns the program that runs a script, and the arguments
// before the script's own. It loads nothing only because it is in the
// workspace. cleanup removes the files that this needs.
func (nr *nodeRun) interpreterOf(path string, env []string) (program string, args []string, cleanup func(), err error) {
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
	search := interpreter.Search{Path: environ.Environ(env).Get("PATH"), Packages: nr.host().packageDirs(nr.agent.Dir), Workspace: nr.host().Workspace}
	program, args, err = search.FindTypeScript(path, scratch)
	return program, append(args, path), cleanup, err
}

// executeScript runs the child process and returns its output, trimmed. It records
// the identity of the process as soon as it runs, so that a later drive can end
// it.
func (b *scriptNode) executeScript(ctx context.Context, nr *nodeRun, path string, confined bool) (string, error) {
	timeout := b.timeout.Duration()
	key := graph.EffectKey(ctx)
	env, cleanup, err := nr.scriptEnv(key)
	if err != nil {
		return "", &notStartedError{err}
	}
	defer cleanup()
	program, args, cleanup, err := nr.interpreterOf(path, env)
	defer cleanup()
	if err != nil {
		return "", &notStartedError{err}
	}
	run := proc.Run
	if confined {
		run = nr.host().Tooling.Confine
	}
	res, err := run(ctx, proc.Command{
		Path: program, Args: args, Dir: b.directory(nr), Env: env, Timeout: max(timeout, time.Nanosecond),
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
		return "", nr.scriptError(path, timeout, res, err)
	}
	if res.StdoutDropped > 0 {
		return "", spec.Errorf("Script '%s' printed more than %d MiB to stdout", path, proc.DefaultLimit>>20)
	}
	return nr.host().redact(strings.TrimSpace(string(res.Stdout))), nil
}

// directory returns the directory in which the script of a node runs. "" means
// that of the process, for programs that set no workspace.
func (b *scriptNode) directory(nr *nodeRun) string {
	if b.workingDir == spec.WorkingDirAgent || b.workingDir == "" && nr.agent.File.WorkingDir == spec.WorkingDirAgent {
		return nr.agent.Dir
	}
	return nr.host().Workspace
}

// scriptError returns the failure of a child process in the words of the file format, which are those of its first
// reader, in Rust: the exit code 3 is "Some(3)", and a signal leaves "None". PlainReason has words for people.
func (nr *nodeRun) scriptError(path string, timeout time.Duration, res proc.Result, err error) error {
	var (
		late   *proc.TimeoutError
		exit   *proc.ExitError
		absent *proc.StartError
	)
	switch {
	case errors.As(err, &late):
		return spec.Errorf("Script '%s' timed out after %ds", path, int64(timeout/time.Second))
	case errors.As(err, &exit):
		code := "None"
		if exit.Signal == "" {
			code = fmt.Sprintf("Some(%d)", exit.Code)
		}
		stderr := strings.TrimSpace(string(proc.StripEscapes(res.Stderr)))
		return spec.Errorf("Script '%s' failed with exit code %s:\n%s", path, code, nr.host().redact(stderr))
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
func (nr *nodeRun) scriptEnv(key string) (env []string, cleanup func(), err error) {
	set := map[string]string{"LLM_AGENT_DATA_DIR": nr.agent.Dir, "AUTO_CONFIRM": "true", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "1", keyVariable: key,
		"PYTHONDONTWRITEBYTECODE": "1"} // raddle must not write into the agent's directory
	if dir := nr.host().ConfigDir; dir != "" {
		set["LLM_ROOT_DIR"] = dir
	}
	if dir := nr.host().Workspace; dir != "" {
		set["RADDLE_WORKSPACE"] = dir
	}
	nr.setHelpers(set)
	for _, variable := range nr.agent.File.Variables {
		name := strings.ToUpper(strings.ReplaceAll(variable.Name, "-", "_"))
		set["LLM_AGENT_VAR_"+name], _ = variableValue(nr.agent, variable)
	}
	cleanup = func() {}
	state := StateJSON(nr.before)
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
	for _, pair := range nr.host().childEnviron() {
		name, _, _ := environ.SplitPair(pair)
		name = environ.FoldName(name)
		if _, ours := set[name]; !ours && name != "GRAPH_STATE" && name != "GRAPH_STATE_FILE" {
			env = append(env, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env, cleanup, nil
}

// setHelpers sets the file of helpers for bash, and a PATH that starts with the
// programs of the global tools.
func (nr *nodeRun) setHelpers(set map[string]string) {
	tooling := nr.host().Tooling
	if tooling.PromptUtils != nil {
		path, err := tooling.PromptUtils()
		if err != nil {
			nr.warnf("[graph:%s] script '%s' runs without LLM_PROMPT_UTILS_FILE: %v", nr.agent.File.Name, nr.node.ID, err)
		} else {
			set["LLM_PROMPT_UTILS_FILE"] = path
		}
	}
	if tooling.Bin == "" {
		return
	}
	set["PATH"] = environ.PrependDir(tooling.Bin, environ.Environ(nr.host().childEnviron()).Get("PATH"))
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

// EndSurvivors ends the processes of scripts that a killed drive has left
// behind. inDoubt are the effects of the run that are in doubt, as
// [history.Snapshot] has them. It returns an error for each process that could
// not be ended.
func EndSurvivors(inDoubt []history.Intent) []error {
	var errs []error
	for _, intent := range inDoubt {
		var h proc.Handle
		if json.Unmarshal(intent.Note, &h) != nil || h.PID == 0 {
			continue
		}
		if _, err := proc.EndHandle(h); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			errs = append(errs, err)
		}
	}
	return errs
}

// nextKey is the member of a script's output that names the next node. It is
// not merged into the state.
const nextKey = "_next"

// scriptResult is what a script printed.
type scriptResult struct {
	Writes *jsonvalue.Object // without _next
	Next   string
	Routed bool // _next is a string, which may be empty

	Rounded string // the first whole number that is too large to be stored exactly
}

// These are the texts for output that is not a JSON object.
const (
	scriptNotJSON   = "Script output must be valid JSON"
	scriptNotObject = "Script output must be a JSON object, not array or primitive"
)

// parseScriptOutput decodes the standard output of a script: one JSON object. A
// _next that is not a string is ignored.
func parseScriptOutput(stdout string) (scriptResult, error) {
	v, rounded, err := jsonvalue.ParseRounded([]byte(strings.TrimSpace(stdout)))
	if err != nil {
		return scriptResult{}, spec.Errorf(scriptNotJSON+": %w", err)
	}
	writes, ok := v.(*jsonvalue.Object)
	if !ok {
		return scriptResult{}, spec.Errorf(scriptNotObject)
	}
	r := scriptResult{Writes: writes, Rounded: rounded}
	if next, ok := writes.Get(nextKey); ok {
		r.Next, r.Routed = next.(string)
		writes.Delete(nextKey)
	}
	return r, nil
}

// readScriptOutput is parseScriptOutput with the script's path in the errors,
// and with a special error for a script that printed nothing.
func readScriptOutput(path, stdout string) (scriptResult, error) {
	if strings.TrimSpace(stdout) == "" {
		return scriptResult{}, spec.Errorf("Script '%s' produced no output (scripts must emit a single JSON object on stdout)", path)
	}
	r, err := parseScriptOutput(stdout)
	if err != nil {
		return r, spec.Errorf("Failed to merge output from script '%s': %w", path, err)
	}
	return r, nil
}
