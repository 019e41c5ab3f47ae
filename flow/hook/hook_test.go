//go:build unix

package hook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/testkit/testneed"
)

func readText(text string) (hooks []Hook, faults []string) {
	d := strictyaml.Read("f.yaml", []byte(text))
	place := func(n *yaml.Node) strictyaml.Pos { return strictyaml.Pos{File: "f.yaml", Line: n.Line, Col: n.Column} }
	hooks = Read(d.Root, place, d.ReportFault)
	for _, f := range d.List {
		faults = append(faults, f.Pos.String()+": "+f.Message+" "+f.Hint)
	}
	return hooks, faults
}

func TestRead(t *testing.T) {
	t.Parallel()
	hooks, faults := readText("- {on: before_tool, tools: [fs_write, 'execute_command(rm *)'], run: x, timeout: 5}\n- {on: turn_end, run: y}\n")
	if len(faults) > 0 || len(hooks) != 2 || len(hooks[0].Tools) != 2 || hooks[0].Timeout != 5*time.Second || hooks[1].Timeout != DefaultTimeout || hooks[1].Name() != "f.yaml:2:3" {
		t.Errorf("%+v %q", hooks, faults)
	}
	if hooks[0].ID() == hooks[1].ID() {
		t.Error("two hooks have one id")
	}
	for text, want := range map[string]string{
		"on: before_tool":            "hooks must be a list",
		"- x":                        "a hook must be a mapping",
		"- {on: before_tool}":        `a hook needs the key "run"`,
		"- {run: x}":                 `a hook needs the key "on"`,
		"- {on: before_tol, run: x}": "did you mean before_tool?",
		"- {on: before_tool, run: x, tool: fs_write}":     "did you mean tools?",
		"- {on: before_tool, run: x, tools: []}":          "would never run",
		"- {on: before_tool, run: x, tools: 'fs_write('}": "the closing ) is missing",
		"- {on: turn_end, run: x, tools: fs_write}":       "tools has no meaning",
		"- {on: turn_end, run: x, timeout: 0}":            "from 1 to 600",
		"- {on: turn_end, run: x, timeout: 9999}":         "from 1 to 600",
		"- {on: turn_end, run: [x]}":                      "run of a hook must be a text",
		"- {on: turn_end, run: ''}":                       "run of a hook must be a text",
	} {
		if _, faults := readText(text); !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("%s: %q, want %q", text, faults, want)
		}
	}
}

// Every way in which a command ends is an answer or a failure that says why.
func TestRun(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "bash")
	dir := t.TempDir()
	r := Surroundings{Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
	for name, c := range map[string]struct {
		on, run, answer, fault string
		timeout                time.Duration
	}{
		"nothing":              {run: "cat > /dev/null"},
		"does not read":        {run: "true"},
		"the input":            {run: `read -r line; [ "$line" = '{"on":"x"}' ] && [ -n "$RADDLE_HOOK_DIR" ]`},
		"deny":                 {run: `echo '{"deny":true,"reason":"no"}'`, answer: "true no  "},
		"arguments":            {run: `echo '{"arguments": {"a": 1}, "context": "c"}'`, answer: `false  {"a":1} c`},
		"stderr":               {run: `echo said >&2`},
		"an exit code":         {run: `echo '{"deny":false}'; echo why >&2; exit 3`, fault: "it ended with exit code 3: why"},
		"a code of others":     {run: `exit 2`, fault: "it ended with exit code 2"},
		"no program":           {run: `no-such-program`, fault: "exit code 127"},
		"kills itself":         {run: `kill -9 $$`, fault: "it was ended by SIGKILL"},
		"too slow":             {run: `sleep 60`, timeout: 50 * time.Millisecond, fault: "it took longer than 50ms"},
		"leaves a child":       {run: `sleep 60 & echo $! > pid; echo '{"deny":true}'`, answer: "true   "},
		"leaves its group":     {run: `setsid sleep 60 > /dev/null 2>&1 < /dev/null & echo '{"deny":true}'`, answer: "true   "},
		"much":                 {run: `head -c 300000 /dev/zero | tr '\0' x`, fault: "more than 262144 bytes"},
		"a text":               {run: `echo fine`, fault: "is not a JSON object (write other texts on stderr): fine"},
		"null":                 {run: `echo null`, fault: "is not a JSON object"},
		"a list":               {run: `echo '[]'`, fault: "is not a JSON object"},
		"two objects":          {run: `echo '{} {"deny":true}'`, fault: "more than one JSON object"},
		"text after it":        {run: `echo '{} x'`, fault: "more than one JSON object"},
		"not UTF-8":            {run: `printf '{"context":"\xff"}'`, fault: "is not UTF-8"},
		"allow":                {run: `echo '{"allow":true}'`, fault: "a hook cannot allow a call"},
		"another program's":    {run: `echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`, fault: "at the top of the object"},
		"misspelt":             {run: `echo '{"denny":true}'`, fault: "did you mean deny?"},
		"another type":         {run: `echo '{"deny":"yes"}'`, fault: "wrong type"},
		"arguments are a list": {run: `echo '{"arguments":[]}'`, fault: "must be an object"},
		"a reason alone":       {run: `echo '{"reason":"x"}'`, fault: `without "deny": true`},
		"deny after":           {on: AfterTool, run: `echo '{"deny":true}'`, fault: "deny has no meaning in an answer on after_tool"},
		"context at the end":   {on: TurnEnd, run: `echo '{"context":"x"}'`, fault: "context has no meaning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Hook{On: BeforeTool, Run: c.run, Timeout: 20 * time.Second}
			if c.on != "" {
				h.On = c.on
			}
			if c.timeout > 0 {
				h.Timeout = c.timeout
			}
			a, err := r.Run(t.Context(), h, dir, []byte(`{"on":"x"}`))
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%+v, %v, want %q", a, err, c.fault)
				}
				return
			}
			text := "false   "
			if c.answer != "" {
				text = c.answer
			}
			deny := "false"
			if a.Deny {
				deny = "true"
			}
			if got := strings.Join([]string{deny, a.Reason, string(a.Arguments), a.Context}, " "); err != nil || got != text {
				t.Errorf("%q, %v, want %q", got, err, text)
			}
		})
	}
}

// What confines hooks gets the command as it would run; the end of the run ends the hook.
func TestStart(t *testing.T) {
	t.Parallel()
	var got proc.Command
	ctx, cancel := context.WithCancel(t.Context())
	r := Surroundings{Dir: "/w", Env: []string{"A=b"}, Start: func(_ context.Context, c proc.Command) (proc.Result, error) {
		got = c
		cancel()
		return proc.Result{Stdout: []byte(`{"deny":true}`)}, nil
	}}
	_, err := r.Run(ctx, Hook{On: BeforeTool, Run: "x", Timeout: time.Second}, filepath.Join("/w", "h"), []byte("{}"))
	if err == nil || got.Dir != "/w" || got.Args[len(got.Args)-1] != "x" || got.Env[0] != "A=b" || got.Mark == "" || string(got.Stdin) != "{}\n" || got.Timeout != time.Second {
		t.Errorf("%+v %v", got, err)
	}
}
