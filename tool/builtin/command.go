package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/gitrepo"
	"raddle.dev/internal/proc"
	"raddle.dev/tool"
)

var commandTools = []definition{
	{
		name: "execute_command", about: "Run a shell command in the workspace and get what it prints.",
		params: []param{{name: "command", required: true, about: "The command, as bash reads it"}},
		touches: func(h Host, a arguments) (tool.Touch, error) {
			text := a["command"]
			if !h.hasProgram("bash") { // another shell runs it, which reads some texts in another way
				text = "sh -c " + shellQuote(text)
			}
			return tool.Touch{Commands: []string{text}}, nil
		},
		run: executeCommand,
	},
	{
		name:   "execute_py_code",
		about:  "Run Python code and get what it prints, and the value of its last line.",
		params: []param{{name: "code", required: true, about: "The code"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"python3 -c " + shellQuote(a["code"])}}, nil
		},
		run: executePython,
	},
	{
		name:   "execute_sql_code",
		about:  "Run SQL on the database of USQL_DSN, with usql.",
		params: []param{{name: "code", required: true, about: "The statements"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"usql -c " + shellQuote(a["code"])}}, nil
		},
		run: executeSQL,
	},
	{
		name: "query_jira_issues", about: "Find Jira issues with a JQL query, with the program jira.", effect: tool.ReadOnly, parallel: true,
		params: []param{{name: "jql_query", required: true, about: "The query"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"jira issue ls -q " + shellQuote(a["jql_query"]) + " --plain"}}, nil
		},
		run: func(ctx context.Context, h Host, a arguments) (tool.Result, error) {
			return reportMissing(h.runProgram(ctx, "query_jira_issues", proc.Command{Path: "jira", Args: []string{"issue", "ls", "-q", a["jql_query"], "--plain"}}))
		},
	},
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func executeCommand(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	c := proc.Command{Path: "bash", Args: []string{"-c", a["command"]}}
	if !h.hasProgram("bash") {
		c.Path = "sh"
	}
	if h.permit == nil || h.permit.Unasked {
		h.Env = gitrepo.HardenEnvironment(h.Env)
	}
	return reportMissing(h.runProgram(ctx, "execute_command", c))
}

// hasProgram reports whether programs would find another one by its name.
func (h Host) hasProgram(name string) bool {
	path := h.envValue("PATH")
	if path == "" {
		path = os.Getenv("PATH")
	}
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, name))
		return filepath.IsAbs(dir) && err == nil
	})
}

//go:embed run.py
var runPython string

func executePython(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	c := proc.Command{Path: "python3", Args: []string{"-c", runPython}, Stdin: []byte(a["code"])}
	result, err := h.runProgram(ctx, "execute_py_code", c)
	if errors.Is(err, exec.ErrNotFound) {
		c.Path = "python"
		result, err = h.runProgram(ctx, "execute_py_code", c)
	}
	return reportMissing(result, err)
}

func executeSQL(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	dsn := h.envValue("USQL_DSN")
	if dsn == "" {
		return tool.FailedResult("the environment variable USQL_DSN, which names the database, is not set"), nil
	}
	return reportMissing(h.runProgram(ctx, "execute_sql_code", proc.Command{Path: "usql", Args: []string{"-c", a["code"], dsn}}))
}

// reportMissing tells the model of a program that is not there; other errors stay.
func reportMissing(r tool.Result, err error) (tool.Result, error) {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return tool.FailedResult("Unable to run %s, %v", e.Path, e.Err), nil
	}
	return r, err
}

// runProgram runs a child in the workspace and returns its output. A child that cannot
// be started is an error; a child that fails is a result with that failure.
func (h Host) runProgram(ctx context.Context, name string, c proc.Command) (tool.Result, error) {
	c.Dir, c.Env, c.Timeout, c.Limit = h.Workspace, h.childEnv(), h.programTimeout(), h.outputLimit()
	if h.printed != nil {
		c.Watch, c.WatchStderr = printedWriter(h.printed), printedWriter(h.printed)
	}
	res, err := proc.Run(ctx, c)
	output := string(proc.StripEscapes(res.Stdout))
	stderr := strings.TrimSpace(string(proc.StripEscapes(res.Stderr)))
	if ctx.Err() != nil {
		return tool.Result{}, err
	}
	var exit *proc.ExitError
	var late *proc.TimeoutError
	fields := map[string]string{}
	switch {
	case errors.As(err, &exit) && exit.Signal != "":
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' was ended by %s", name, exit.Signal)
	case errors.As(err, &exit):
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' exited with code %d", name, exit.Code)
	case errors.As(err, &late):
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' timed out after %gs and was killed", name, late.After.Seconds())
	case err != nil:
		return tool.Result{}, err
	}
	if output != "" {
		fields["output"] = output
	}
	if stderr != "" {
		fields["stderr"] = stderr
	}
	if len(fields) == 0 {
		return tool.Result{}, nil
	}
	result := tool.JSONResult(fields)
	result.Error = err != nil
	return result, nil
}

// printedWriter shows what a program prints while it runs.
type printedWriter func(text string)

func (w printedWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// childEnv returns the environment of programs: without secrets if no one allowed the command. Many refuse to work without TERM.
func (h Host) childEnv() []string {
	env := h.Env
	if h.Secret != nil && h.permit != nil && !h.permit.Allowed {
		env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
			name, value, _ := strings.Cut(entry, "=")
			return h.Secret(name, value)
		})
	}
	if h.envValue("TERM") != "" {
		return env
	}
	return append(env[:len(env):len(env)], "TERM=dumb")
}
