package script

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/interpreter"
	"raddle.dev/internal/proc"
	"raddle.dev/internal/tempdir"
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

// run is the tool's function.
func (s *script) run(ctx context.Context, c tool.Call) (tool.Result, error) {
	data, err := object(c.Args)
	if err != nil {
		return s.refused("error: invalid JSON data: the arguments are no JSON object"), nil
	}
	dir, remove, err := tempdir.New("tool-*")
	if err != nil {
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, err)
	}
	defer remove()
	r := &running{script: s, dir: dir, call: c, data: data}
	if err := r.renameArguments(); err != nil {
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, err)
	}
	if wrong := r.refuseTooLarge(); wrong != "" {
		return s.refused(wrong), nil
	}
	cmd, wrong, err := r.command()
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("run %s: %w", s.Name, err)
	case wrong != "":
		return s.refused(wrong), nil
	}
	res, err := r.execute(ctx, cmd)
	return r.result(ctx, res, err)
}

// A running is one call of a script under way.
type running struct {
	*script
	dir  string // the call's own, removed with it
	call tool.Call
	data map[string]json.RawMessage
}

func (r *running) path(name string) string { return filepath.Join(r.dir, name) }

// command writes the files of the call and says what to run. wrong tells the
// model what it has to give instead.
func (r *running) command() (cmd proc.Command, wrong string, err error) {
	env := r.environment()
	call, program, args := []byte(nil), "", []string(nil)
	switch r.language {
	case declare.LanguageBash:
		call, wrong = r.bashCall(env)
		program, args = "bash", []string{"-c", runBash, r.file}
	case declare.LanguagePython:
		call, err = json.Marshal(r.data)
		program, args = r.search(env).Python(), []string{r.path("run.py"), r.file, r.Function}
		err = errors.Join(err, os.WriteFile(r.path("run.py"), runPython, 0o600))
	case declare.LanguageTypeScript:
		call, err = json.Marshal(map[string]any{"data": r.data, "params": r.Params})
		var failed error
		program, args, failed = r.search(env).TypeScript(r.file, r.dir)
		args = append(args, r.path("run.mts"), r.file, r.Function)
		err = errors.Join(err, failed, os.WriteFile(r.path("run.mts"), runTypeScript, 0o600))
	}
	if wrong != "" || err != nil {
		return cmd, wrong, err
	}
	err = errors.Join(
		os.WriteFile(r.path("call"), call, 0o600),
		os.WriteFile(r.path("data.json"), r.call.Args, 0o600),
		os.WriteFile(r.path("output"), nil, 0o600),
		os.WriteFile(r.path("prompt-utils.sh"), promptUtils, 0o600))
	env.set("RADDLE_CALL", r.path("call"))
	return proc.Command{Path: program, Args: args, Env: env.list(), Dir: r.host.workspace()}, "", err
}

// renameArguments gives an argument its declared name if the model has used the
// twin of that name. The script reads the declared name everywhere, also in the
// JSON text of the arguments. An argument that has the declared name is kept.
func (r *running) renameArguments() error {
	renamed := false
	for name, other := range twin {
		value, ok := r.data[other]
		if _, given := r.data[name]; ok && !given && r.takes(name) && !r.takes(other) {
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

// takes reports whether the function has an argument of that name.
func (r *running) takes(name string) bool {
	if r.Command != nil {
		return option(r.Command.Options, name) != nil
	}
	return slices.Contains(r.Params, name)
}

// search says where interpreters are taken from.
func (r *running) search(env *environment) interpreter.Search {
	return interpreter.Search{Path: env.vars["PATH"], Packages: r.host.Packages, Workspace: r.host.workspace()}
}

// execute runs the process to its end.
func (r *running) execute(ctx context.Context, cmd proc.Command) (proc.Result, error) {
	cmd.Timeout, cmd.Limit = r.host.timeout(), r.host.limit()
	cmd.Mark = "LLM_OUTPUT=" + r.path("output")
	if started := r.host.Started; started != nil {
		cmd.Started = func(h proc.Handle) error {
			note, err := json.Marshal(h)
			if err != nil {
				return err
			}
			return started(ctx, note)
		}
	}
	if printed := r.host.Printed; printed != nil {
		lines := &lineWriter{line: func(line string) { printed(ctx, line) }}
		cmd.Watch = lines
		defer lines.flush()
	}
	return proc.Run(ctx, cmd)
}

// result turns the end of a process into what the model reads.
func (r *running) result(ctx context.Context, res proc.Result, err error) (tool.Result, error) {
	var (
		late   *proc.TimeoutError
		exit   *proc.ExitError
		absent *proc.StartError
	)
	output := readOutput(r.path("output"), r.host.limit())
	switch {
	case err == nil:
		if long, ok := readJSON(r.path("output"), r.host.limit()); ok {
			return long, nil
		}
		return value(output), nil
	case ctx.Err() != nil:
		return tool.Result{}, err
	case errors.As(err, &late):
		what := fmt.Sprintf("Tool call '%s' timed out after %gs and was killed (set RADDLE_TOOL_TIMEOUT to adjust; 0 = unlimited)",
			r.Name, late.After.Round(time.Millisecond).Seconds())
		return failure(what, res, output), nil
	case errors.As(err, &exit) && exit.Signal != "":
		return failure(fmt.Sprintf("Tool call '%s' was killed by %s", r.Name, exit.Signal), res, output), nil
	case errors.As(err, &exit):
		return failure(fmt.Sprintf("Tool call '%s' exited with code %d", r.Name, exit.Code), res, output), nil
	case errors.As(err, &absent):
		out := tool.JSON(map[string]string{"output": fmt.Sprintf("Unable to run %s, %v", r.Name, absent)})
		out.Error = true
		return out, nil
	}
	return tool.Result{}, fmt.Errorf("run %s: %w", r.Name, err)
}

// refused is the failure of a call whose arguments are wrong. It looks like the
// one of a script that finds that out itself, whoever has.
func (s *script) refused(text string) tool.Result {
	return failure(fmt.Sprintf("Tool call '%s' exited with code 1", s.Name), proc.Result{Stderr: []byte(text)}, "")
}

// object reads the arguments. Nothing and null are an object without members.
func object(args json.RawMessage) (map[string]json.RawMessage, error) {
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
		w.flush()
		p = p[i+1:]
	}
	w.rest = append(w.rest, p[:min(len(p), longestLine)]...)
	if len(w.rest) >= longestLine {
		w.flush()
	}
	return n, nil
}

// flush gives out what has no line break after it.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.line(strings.TrimRight(clean(w.rest), "\r"))
		w.rest = w.rest[:0]
	}
}
