package script

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
	"raddle.dev/tool/declare"
)

var (
	//go:embed run.sh
	runBash string
	//go:embed run.py
	runPython []byte
	//go:embed run.mts
	runTypeScript []byte
	//go:embed prompt-utils.sh
	promptUtils []byte
)

// A script is one function of a file.
type script struct {
	declare.Declaration
	host     *Host
	file     string // absolute
	language declare.Language
	own      bool // of the agent, not global
}

// runTool is the tool's function.
func (s *script) runTool(ctx context.Context, c tool.Call) (tool.Result, error) {
	r := &scriptCall{script: s, call: c}
	if wrong, err := r.readArguments(); err != nil || wrong != "" {
		return s.refusalResult(wrong), err
	}
	remove, err := r.makeDir()
	if err != nil {
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, err)
	}
	defer remove()
	if wrong := r.refuseTooLarge(); wrong != "" {
		return s.refusalResult(wrong), nil
	}
	cmd, wrong, err := r.buildCommand()
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, err)
	case wrong != "":
		return s.refusalResult(wrong), nil
	}
	res, err := r.runProcess(ctx, cmd)
	if r.boxed == nil {
		return r.buildResult(ctx, res, err)
	}
	removeOutput, failed := r.fetchOutput()
	if failed != nil {
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, failed)
	}
	defer removeOutput()
	result, err := r.buildResult(ctx, res, err)
	if err != nil {
		return result, err
	}
	return r.boxed.AddReport(s.Name, result), nil
}

// checkArguments returns why a call with these arguments cannot be made, as far as that is known before the script
// runs.
func (s *script) checkArguments(args json.RawMessage) error {
	r := &scriptCall{script: s, call: tool.Call{Args: args}}
	wrong, err := r.readArguments()
	if wrong == "" && err == nil && r.language == declare.LanguageBash {
		if _, wrong = r.bashCall(r.buildEnvironment()); wrong == "" {
			wrong = r.checkOptions()
		}
	}
	if wrong != "" {
		return errors.New(strings.TrimPrefix(wrong, "error: "))
	}
	return err
}

// readArguments reads the arguments as the function takes them. wrong is what the model has to change.
func (r *scriptCall) readArguments() (wrong string, err error) {
	if r.data, err = parseObject(r.call.Args); err != nil {
		return "error: invalid JSON data: the arguments are not a JSON object", nil
	}
	if err := r.renameArguments(); err != nil {
		return "", fmt.Errorf("run %s: %w", r.Name, err)
	}
	return r.fitArguments(), nil
}

// fitArguments takes the arguments in the form that the function wants. It returns what is wrong with them.
func (r *scriptCall) fitArguments() (wrong string) {
	data, faults := r.FitArguments(r.data)
	if len(faults) > 0 {
		return "error: " + strings.Join(faults, "\nerror: ")
	}
	r.data = data
	return ""
}

// A scriptCall is one running call of a script.
type scriptCall struct {
	*script
	dir   string    // the call's own, removed with it
	boxed BoxedCall // nil: the process runs in no box
	call  tool.Call
	data  map[string]json.RawMessage

	positional []string // what @arg takes; only a command line gives it
}

func (r *scriptCall) callPath(name string) string { return filepath.Join(r.dir, name) }

// buildCommand writes the files of the call and says what to run. wrong tells the
// model what it has to give instead.
func (r *scriptCall) buildCommand() (cmd proc.Command, wrong string, err error) {
	env := r.buildEnvironment()
	call := []byte(nil)
	program := ""
	args := []string(nil)
	switch r.language {
	case declare.LanguageBash:
		call, wrong = r.bashCall(env)
		program = "bash"
		args = []string{"-c", runBash, r.file}
	case declare.LanguagePython:
		call, err = json.Marshal(r.data)
		program = r.interpreterSearch(env).FindPython()
		args = []string{r.callPath("run.py"), r.file, r.Function}
		err = errors.Join(err, os.WriteFile(r.callPath("run.py"), runPython, 0o600))
	case declare.LanguageTypeScript:
		call, err = json.Marshal(map[string]any{"data": r.data, "params": r.Params})
		var failed error
		program, args, failed = r.interpreterSearch(env).FindTypeScript(r.file, r.dir)
		args = append(args, r.callPath("run.mts"), r.file, r.Function)
		err = errors.Join(err, failed, os.WriteFile(r.callPath("run.mts"), runTypeScript, 0o600))
	}
	if wrong != "" || err != nil {
		return cmd, wrong, err
	}
	err = errors.Join(
		os.WriteFile(r.callPath("call"), call, 0o600),
		os.WriteFile(r.callPath("data.json"), r.call.Args, 0o600),
		os.WriteFile(r.callPath("output"), nil, 0o600),
		os.WriteFile(r.callPath("prompt-utils.sh"), promptUtils, 0o600))
	env.set("RADDLE_CALL", r.callPath("call"))
	return proc.Command{Path: program, Args: args, Env: r.childEnvironment(env), Dir: r.host.workspaceDir()}, "", err
}

// renameArguments gives an argument its declared name if the model has used the
// twin of that name. The script reads the declared name everywhere, also in the
// JSON text of the arguments. An argument that has the declared name is kept.
func (r *scriptCall) renameArguments() error {
	renamed := false
	for name, other := range twin {
		value, ok := r.data[other]
		if _, given := r.data[name]; ok && !given && r.hasArgument(name) && !r.hasArgument(other) {
			delete(r.data, other)
			r.data[name], renamed = value, true
		}
	}
	if !renamed {
		return nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.data); err != nil {
		return err
	}
	r.call.Args = bytes.TrimSpace(text.Bytes())
	return nil
}

// hasArgument reports whether the function has an argument of that name.
func (r *scriptCall) hasArgument(name string) bool {
	if r.Command != nil {
		return findOption(r.Command, name) != nil
	}
	return slices.Contains(r.Params, name)
}

// interpreterSearch says where interpreters are taken from.
func (r *scriptCall) interpreterSearch(env *environment) interpreter.Search {
	return interpreter.Search{Path: env.vars["PATH"], Packages: r.host.Packages, Workspace: r.host.workspaceDir()}
}

// runProcess runs the process to its end.
func (r *scriptCall) runProcess(ctx context.Context, cmd proc.Command) (proc.Result, error) {
	cmd.Timeout, cmd.Limit = r.host.callTimeout(), r.host.outputLimit()
	cmd.Mark = "LLM_OUTPUT=" + r.callPath("output")
	if started := r.host.Started; started != nil {
		cmd.Started = func(h proc.Handle) error {
			note, err := json.Marshal(h)
			if err != nil {
				return err
			}
			return started(ctx, note)
		}
	}
	var lines *lineWriter
	if printed := r.host.Printed; printed != nil {
		lines = &lineWriter{line: func(line string) { printed(ctx, line) }}
		cmd.Watch = lines
		defer lines.flushRest()
	}
	if show := r.call.Output; show != nil {
		cmd.WatchStderr = shownWriter(show)
		if cmd.Watch = io.Writer(shownWriter(show)); lines != nil {
			cmd.Watch = io.MultiWriter(lines, cmd.Watch)
		}
	}
	if r.boxed != nil {
		return r.boxed.RunCommand(ctx, cmd)
	}
	return proc.Run(ctx, cmd)
}

// shownWriter shows what a process prints while it runs.
type shownWriter func(text string)

func (w shownWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// buildResult turns the end of a process into what the model reads.
func (r *scriptCall) buildResult(ctx context.Context, res proc.Result, err error) (tool.Result, error) {
	var (
		late   *proc.TimeoutError
		exit   *proc.ExitError
		absent *proc.StartError
	)
	output := readOutput(r.callPath("output"), r.host.outputLimit())
	switch {
	case err == nil:
		if long, ok := readJSON(r.callPath("output"), r.host.outputLimit()); ok {
			return long, nil
		}
		return successResult(output), nil
	case ctx.Err() != nil:
		return tool.Result{}, err
	case errors.As(err, &late):
		what := fmt.Sprintf("Tool call '%s' timed out after %gs and was killed (set RADDLE_TOOL_TIMEOUT to adjust; 0 = unlimited)",
			r.Name, late.After.Round(time.Millisecond).Seconds())
		return failureResult(what, res, output), nil
	case errors.As(err, &exit) && exit.Signal != "":
		return failureResult(fmt.Sprintf("Tool call '%s' was killed by %s", r.Name, exit.Signal), res, output), nil
	case errors.As(err, &exit):
		return failureResult(fmt.Sprintf("Tool call '%s' exited with code %d", r.Name, exit.Code), res, output), nil
	case errors.As(err, &absent):
		out := tool.JSONResult(map[string]string{"output": fmt.Sprintf("Unable to run %s, %v", r.Name, absent)})
		out.Error = true
		return out, nil
	}
	return tool.Result{}, fmt.Errorf("run %s: %w", r.Name, err)
}

// refusalResult returns the failure of a call whose arguments are wrong. It has the same
// form whether raddle or the script itself has found them wrong.
func (s *script) refusalResult(text string) tool.Result {
	return failureResult(fmt.Sprintf("Tool call '%s' exited with code 1", s.Name), proc.Result{Stderr: []byte(text)}, "")
}

// parseObject reads the arguments. Nothing and null are an object without members.
func parseObject(args json.RawMessage) (map[string]json.RawMessage, error) {
	data := map[string]json.RawMessage{}
	if text := bytes.TrimSpace(args); len(text) == 0 || string(text) == "null" {
		return data, nil
	}
	err := json.Unmarshal(args, &data)
	return data, err
}

// A lineWriter splits what is written to it into lines.
type lineWriter struct {
	line func(string)
	rest []byte
}

// longestLine is how much of one line is held back for its end, in bytes.
const longestLine = 4096

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		w.rest = append(w.rest, p[:min(i, longestLine)]...)
		w.flushRest()
		p = p[i+1:]
	}
	w.rest = append(w.rest, p[:min(len(p), longestLine)]...)
	if len(w.rest) >= longestLine {
		w.flushRest()
	}
	return n, nil
}

// flushRest gives out what has no line break after it.
func (w *lineWriter) flushRest() {
	if len(w.rest) > 0 {
		w.line(strings.TrimRight(cleanText(w.rest), "\r"))
		w.rest = w.rest[:0]
	}
}
