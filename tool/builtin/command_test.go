package builtin_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

func TestExecuteCommand(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := place(t, map[string]string{"a": "x"})
	h.Env = append(h.Env, "GIVEN=value")
	for command, want := range map[string]string{
		"cat a; echo y":                  "xy\n",
		"mkdir -p new":                   `"DONE"`,
		"echo $GIVEN":                    "value\n",
		`printf '\033[31mred\033[0m'`:    "red",
		"cat":                            `"DONE"`, // there is no input
		"echo out; echo err >&2":         `{"output":"out\n","stderr":"err"}`,
		"echo out; echo err >&2; exit 3": `{"output":"out\n","stderr":"err","tool_call_error":"Tool call 'execute_command' exited with code 3"}`,
		"kill -9 $$":                     "failed: Tool call 'execute_command' was ended by SIGKILL",
	} {
		if got := use(t, h, "execute_command.sh", object{"command": command}); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestCommandsEnd(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := place(t, nil)
	h.Timeout = 100 * time.Millisecond
	if got := use(t, h, "execute_command", object{"command": "echo begun; sleep 60"}); got != `{"output":"begun\n","tool_call_error":"Tool call 'execute_command' timed out after 0.1s and was killed"}` {
		t.Errorf("got %s", got)
	}
	h.Timeout = 0
	// The command says that it runs by opening a pipe, and is then cancelled.
	pipe := filepath.Join(h.Workspace, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			f.Close()
		}
		cancel()
	}()
	_, err := lookup(t, h, "execute_command").Run(ctx, tool.Call{Args: raw(t, object{"command": "exec 3>pipe; sleep 60"})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A call may end earlier than the limit of the user, and not later. A command that prints without an end is ended.
func TestLimitsOfCommands(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "bash", "seq")
	h := place(t, nil)
	if got := use(t, h, "execute_command", object{"command": "echo begun; sleep 60", "timeout": 1}); got != `{"output":"begun\n","tool_call_error":"Tool call 'execute_command' timed out after 1s and was killed: the argument timeout gives it up to 1800 seconds, and command_start has no limit"}` {
		t.Errorf("got %s", got)
	}
	got := use(t, h, "execute_command", object{"command": "seq 1 99999999999"})
	if !strings.Contains(got, "printed more than 64 MiB and was killed") || !strings.Contains(got, `1\n2\n`) || !strings.Contains(got, " bytes left out ...]") || len(got) > 300<<10 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	h.Timeout = 100 * time.Millisecond
	if got := use(t, h, "execute_command", object{"command": "sleep 60", "timeout": 60}); got != "failed: Tool call 'execute_command' timed out after 0.1s and was killed" {
		t.Errorf("got %s", got)
	}
}

func TestLongCommandOutput(t *testing.T) {
	h := place(t, nil)
	h.Limit = 2000
	got := use(t, h, "execute_command", object{"command": "echo begin; seq 10000; echo end"})
	if !strings.HasPrefix(got, "begin\n1\n") || !strings.HasSuffix(got, "10000\nend\n") || len(got) > 2200 {
		t.Errorf("%d bytes: %.60q ... %q", len(got), got, got[len(got)-30:])
	}
}

func TestExecutePython(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	h := place(t, nil)
	for code, want := range map[string]string{
		"print('a')\n1 + 1":             "a\n2\n",
		"x = [1, 2]":                    "[1, 2]\n",
		"print('only')":                 "only\n",
		"import os\nNone":               `"DONE"`,
		"def f():\n    return 'ü'\nf()": "ü\n",
	} {
		if got := use(t, h, "execute_py_code.py", object{"code": code}); got != want {
			t.Errorf("%q: got %s, want %s", code, got, want)
		}
	}
	for _, name := range []string{"ast.py", "json.py", "re.py"} {
		if err := os.WriteFile(filepath.Join(h.Workspace, name), []byte("raise SystemExit('the workspace was imported')\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Workspace, "mine.py"), []byte("word = 'mine'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := use(t, h, "execute_py_code", object{"code": "import json, mine\njson.dumps(mine.word)"}); got != "\"mine\"\n" {
		t.Errorf("with modules in the workspace: %s", got)
	}
	if got := use(t, h, "execute_py_code", object{"code": "1/0"}); !strings.Contains(got, "exited with code 1") || !strings.Contains(got, "ZeroDivisionError") {
		t.Errorf("got %s", got)
	}
}

// TestProgramsThatAreMissing has a PATH with nothing in it.
func TestProgramsThatAreMissing(t *testing.T) {
	h := builtin.Host{Workspace: t.TempDir(), Env: []string{"PATH=" + t.TempDir(), "USQL_DSN=sqlite:x"}}
	for name, args := range map[string]object{
		"execute_command": {"command": "ls"}, "execute_py_code": {"code": "1"}, "execute_sql_code": {"code": "select 1"}, "query_jira_issues": {"jql_query": "x"},
	} {
		if got := use(t, h, name, args); !strings.HasPrefix(got, "failed: Unable to run ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestExternalPrograms replaces usql and jira with programs of our own, and looks at how they are
// called.
func TestExternalPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"usql", "jira"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := builtin.Host{Workspace: dir, Env: []string{"PATH=" + dir, "USQL_DSN=sqlite:x"}}
	if got := use(t, h, "execute_sql_code", object{"code": "select 'a b'"}); got != "<-c><select 'a b'><sqlite:x>" {
		t.Errorf("got %s", got)
	}
	if got := use(t, h, "query_jira_issues", object{"jql-query": "project = X"}); got != "<issue><ls><-q><project = X><--plain>" {
		t.Errorf("got %s", got)
	}
	if got := use(t, builtin.Host{}, "execute_sql_code", object{"code": "select 1"}); !strings.Contains(got, "USQL_DSN") {
		t.Errorf("got %s", got)
	}
}

func TestCurrentTime(t *testing.T) {
	h := builtin.Host{Now: func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }}
	if got := use(t, h, "get_current_time", nil); got != "Wed Mar  4 05:06:07 UTC 2026" {
		t.Errorf("got %s", got)
	}
}
