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
	"time"

	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
)

var commandTools = []definition{
	{
		name:  "execute_command",
		about: "Run a shell command in the workspace and get what it prints.",
		params: []param{
			{name: "command", required: true, about: "The command, as bash reads it"},
			{
				name:   "timeout",
				number: true,
				about:  "End it after this many seconds; without it, after 10 minutes unless the user has set another limit",
			},
			hostsParam, outsideParam,
		},
		touches: func(h Host, a arguments) (tool.Touch, error) {
			touch, err := touchShell(h, a)
			if err != nil {
				return touch, err
			}
			return touchBox(h, a, touch)
		},
		run: executeCommand,
	},
	{
		name:   "execute_py_code",
		about:  "Run Python code and get what it prints, and the value of its last line.",
		params: []param{{name: "code", required: true, about: "The code"}, hostsParam, outsideParam},
		touches: func(h Host, a arguments) (tool.Touch, error) {
			return touchBox(h, a, tool.Touch{Commands: []string{"python3 -c " + shellQuote(a["code"])}})
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
		name:     "query_jira_issues",
		about:    "Find Jira issues with a JQL query, with the program jira.",
		effect:   tool.ReadOnly,
		parallel: true,
		params:   []param{{name: "jql_query", required: true, about: "The query"}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"jira issue ls -q " + shellQuote(a["jql_query"]) + " --plain"}}, nil
		},
		run: func(ctx context.Context, h Host, a arguments) (tool.Result, error) {
			return reportMissing(h.runProgram(ctx, "query_jira_issues", proc.Command{
				Path: "jira",
				Args: []string{"issue", "ls", "-q", a["jql_query"], "--plain"},
			}))
		},
	},
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// touchShell returns what a call with a shell command touches.
func touchShell(h Host, a arguments) (tool.Touch, error) {
	text := a["command"]
	if !h.hasProgram("bash") { // another shell runs it, which reads some texts in another way
		text = "sh -c " + shellQuote(text)
	}
	return tool.Touch{Commands: []string{text}}, nil
}

func executeCommand(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	c := h.shellCommand(a["command"])
	c.Timeout = h.commandTimeout(a.intValue("timeout", 0))
	return reportMissing(h.runProgram(ctx, "execute_command", c))
}

// shellCommand returns the command that runs a shell text.
func (h Host) shellCommand(text string) proc.Command {
	c := proc.Command{Path: "bash", Args: []string{"-c", text}, Env: h.childEnv()}
	if !h.hasProgram("bash") {
		c.Path = "sh"
	}
	if isUnasked(h.permit) {
		c.Env = gitrepo.HardenEnvironment(c.Env)
	}
	return c
}

// isUnasked reports whether the call runs something that no one has allowed.
func isUnasked(p *tool.Permit) bool { return p == nil || p.Unasked }

// commandTimeout returns the limit of time of a shell command that wants a number of seconds; 0: the usual limit. A
// command that no one has allowed gets no more than the usual one.
func (h Host) commandTimeout(seconds int) time.Duration {
	usual := min(DefaultCommandTimeout, h.programTimeout())
	if h.Timeout > 0 {
		usual = h.Timeout // as the user has said
	}
	switch wanted := time.Duration(seconds) * time.Second; {
	case seconds <= 0:
		return usual
	case h.permit != nil && h.permit.Unasked:
		return min(wanted, usual)
	default:
		return min(wanted, h.programTimeout())
	}
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
	return reportMissing(h.runProgram(ctx, "execute_sql_code", proc.Command{
		Path: "usql",
		Args: []string{"-c", a["code"], dsn},
	}))
}

// reportMissing tells the model of a program that is not there; other errors stay.
func reportMissing(r tool.Result, err error) (tool.Result, error) {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return tool.FailedResult("Unable to run %s, %v", e.Path, e.Err), nil
	}
	return r, err
}

// buildCommand completes a command that a tool runs in the workspace: every program of this package is made here.
func (h Host) buildCommand(c proc.Command) proc.Command {
	c.Dir, c.Limit = h.Workspace, h.outputLimit()
	if c.Env == nil {
		c.Env = h.childEnv()
	}
	if c.Timeout == 0 {
		c.Timeout = h.programTimeout()
	}
	return c
}

// runProgram runs a child in the workspace and returns its output. A child that cannot
// be started is an error; a child that fails is a result with that failure.
func (h Host) runProgram(ctx context.Context, name string, c proc.Command) (tool.Result, error) {
	c = h.buildCommand(c)
	c.MaxOutput = DefaultMaxOutput
	if h.printed != nil {
		c.Watch = printedWriter(h.printed)
		c.WatchStderr = printedWriter(h.printed)
	}
	run := proc.Run
	var boxed *boxedRun
	if h.permit != nil && h.permit.Boxed {
		boxed = &boxedRun{host: h}
		run = boxed.runCommand
	}
	res, err := run(ctx, c)
	output := string(proc.StripEscapes(res.Stdout))
	stderr := strings.TrimSpace(string(proc.StripEscapes(res.Stderr)))
	if ctx.Err() != nil {
		return tool.Result{}, err
	}
	var exit *proc.ExitError
	var late *proc.TimeoutError
	var long *proc.OutputError
	fields := map[string]string{}
	switch {
	case errors.As(err, &exit) && exit.Signal != "":
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' was ended by %s", name, exit.Signal)
	case errors.As(err, &exit):
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' exited with code %d", name, exit.Code)
	case errors.As(err, &late):
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' timed out after %gs and was killed", name, late.After.Seconds())
		if name == "execute_command" && late.After < h.programTimeout() {
			fields["tool_call_error"] += fmt.Sprintf(": the argument timeout gives it up to %g seconds, and command_start has no limit", h.programTimeout().Seconds())
		}
	case errors.As(err, &long):
		fields["tool_call_error"] = fmt.Sprintf("Tool call '%s' printed more than %s and was killed", name, formatBytes(long.After))
	case err != nil:
		return tool.Result{}, err
	}
	if output != "" {
		fields["output"] = output
	}
	if stderr != "" {
		fields["stderr"] = stderr
	}
	boxed.describeBox(err != nil).addFields(fields)
	result := tool.Result{Error: err != nil}
	if len(fields) > 0 {
		result.Content = tool.JSONResult(fields).Content
	}
	return boxed.addChanges(result), nil
}

// printedWriter shows what a program prints while it runs.
type printedWriter func(text string)

func (w printedWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// childEnv returns the environment of programs: without secrets if no one allowed the command. Many refuse to work
// without TERM.
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
