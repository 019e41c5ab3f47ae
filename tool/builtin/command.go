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

	"raddle.dev/internal/proc"
	"raddle.dev/tool"
)

var commandTools = []definition{
	{
		name: "execute_command", about: "Run a shell command in the workspace and get what it prints.",
		params: []param{{name: "command", required: true, about: "The command, as bash reads it"}},
		touches: func(h Host, a arguments) (tool.Touch, error) {
			if h.has("bash") {
				return tool.Touch{Commands: []string{a["command"]}}, nil
			}
			return tool.Touch{Commands: []string{"sh -c " + shellQuote(a["command"])}}, nil // which reads some texts in another way
		},
		run: command,
	},
	{
		name:   "execute_py_code",
		about:  "Run Python code and get what it prints, and the value of its last line.",
		params: []param{{name: "code", required: true, about: "The code"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"python3 -c " + shellQuote(a["code"])}}, nil
		},
		run: python,
	},
	{
		name:   "execute_sql_code",
		about:  "Run SQL on the database of USQL_DSN, with usql.",
		params: []param{{name: "code", required: true, about: "The statements"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"usql -c " + shellQuote(a["code"])}}, nil
		},
		run: sql,
	},
	{
		name: "query_jira_issues", about: "Find Jira issues with a JQL query, with the program jira.", effect: tool.ReadOnly, parallel: true,
		params: []param{{name: "jql_query", required: true, about: "The query"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"jira issue ls -q " + shellQuote(a["jql_query"]) + " --plain"}}, nil
		},
		run: func(ctx context.Context, h Host, a arguments) (tool.Result, error) {
			return missing(h.program(ctx, "query_jira_issues", proc.Command{Path: "jira", Args: []string{"issue", "ls", "-q", a["jql_query"], "--plain"}}))
		},
	},
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func command(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	c := proc.Command{Path: "bash", Args: []string{"-c", a["command"]}}
	if !h.has("bash") {
		c.Path = "sh"
	}
	return missing(h.program(ctx, "execute_command", c))
}

// has reports whether programs would find another one by its name.
func (h Host) has(name string) bool {
	path := h.env("PATH")
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

func python(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	c := proc.Command{Path: "python3", Args: []string{"-c", runPython}, Stdin: []byte(a["code"])}
	result, err := h.program(ctx, "execute_py_code", c)
	if errors.Is(err, exec.ErrNotFound) {
		c.Path = "python"
		result, err = h.program(ctx, "execute_py_code", c)
	}
	return missing(result, err)
}

func sql(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	dsn := h.env("USQL_DSN")
	if dsn == "" {
		return tool.Failed("the environment variable USQL_DSN, which names the database, is not set"), nil
	}
	return missing(h.program(ctx, "execute_sql_code", proc.Command{Path: "usql", Args: []string{"-c", a["code"], dsn}}))
}

// missing tells the model of a program that is not there; other errors stay.
func missing(r tool.Result, err error) (tool.Result, error) {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return tool.Failed("Unable to run %s, %v", e.Path, e.Err), nil
	}
	return r, err
}

// program runs a child in the workspace and tells what it wrote. A child that
// could not be started is an error, one that failed a result.
func (h Host) program(ctx context.Context, name string, c proc.Command) (tool.Result, error) {
	c.Dir, c.Env, c.Timeout, c.Limit = h.Workspace, h.childEnv(), h.timeout(), h.limit()
	res, err := proc.Run(ctx, c)
	output := string(proc.StripEscapes(res.Stdout))
	stderr := strings.TrimSpace(string(proc.StripEscapes(res.Stderr)))
	if ctx.Err() != nil {
		return tool.Result{}, err
	}
	var exit *proc.ExitError
	var late *proc.TimeoutError
	told := map[string]string{}
	switch {
	case errors.As(err, &exit) && exit.Signal != "":
		told["tool_call_error"] = fmt.Sprintf("Tool call '%s' was ended by %s", name, exit.Signal)
	case errors.As(err, &exit):
		told["tool_call_error"] = fmt.Sprintf("Tool call '%s' exited with code %d", name, exit.Code)
	case errors.As(err, &late):
		told["tool_call_error"] = fmt.Sprintf("Tool call '%s' timed out after %gs and was killed", name, late.After.Seconds())
	case err != nil:
		return tool.Result{}, err
	}
	if output != "" {
		told["output"] = output
	}
	if stderr != "" {
		told["stderr"] = stderr
	}
	if len(told) == 0 {
		return tool.Result{}, nil
	}
	result := tool.JSON(told)
	result.Error = err != nil
	return result, nil
}

// childEnv is the environment of programs. Many refuse to work without TERM.
func (h Host) childEnv() []string {
	if h.env("TERM") != "" {
		return h.Env
	}
	return append(h.Env[:len(h.Env):len(h.Env)], "TERM=dumb")
}
