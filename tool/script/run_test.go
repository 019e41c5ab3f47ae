//go:build unix

package script

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
)

// built is a script with the block that the reference appends to one.
const built = `#!/usr/bin/env bash
set -e
# @describe Greets.
# @option --name! Whom
source "$(dirname "${BASH_SOURCE[0]}")/lib/greeting.sh"
. "$(dirname "$0")/lib/ending.sh"
main() { printf '%s %s%s' "$greeting" "$argc_name" "$ending" >>"$LLM_OUTPUT"; }

# ARGC-BUILD {
# This block was generated
# @describe is text here
_argc_run() {
    argc__args=("$(basename "$0" .sh)" "$@")
    _argc_parse
    if [ -n "$argc__fn" ]; then
        $argc__fn "${argc__positionals[@]}"
    fi
}
_argc_parse() { _argc_die "the block ran"; }
_argc_die() { echo "$*" >&2; exit 1; }
_argc_run "$@"

# ARGC-BUILD }
`

// raw is a script with the line that calls an argument parser.
const raw = `#!/usr/bin/env bash
set -euo pipefail
# @describe Greets.
# @option --name! Whom
source "$(dirname "${BASH_SOURCE[0]}")/lib/greeting.sh"
. "$(dirname "$0")/lib/ending.sh"
main() { printf '%s %s%s' "$greeting" "$argc_name" "$ending" >>"$LLM_OUTPUT"; }
eval "$(argc --argc-eval "$0" "$@")"
[[ -n "${NOT_SET-}" ]] && echo never
`

func TestBashScriptsAsTheyAre(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	for name, source := range map[string]string{"built": built, "raw": raw} {
		t.Run(name, func(t *testing.T) {
			h := surroundings(t)
			write(t, h.Functions, "tools/lib/greeting.sh", "greeting=Hello\n[[ -n '' ]] && echo never\ntrue\n")
			write(t, h.Functions, "tools/lib/ending.sh", "ending=!\n")
			tl := one(t, h, "greet.sh", source)
			if got := call(t, tl, `{"name":"-- 'Ann'"}`).Text(); got != `{"output":"Hello -- 'Ann'!"}` {
				t.Errorf("got %s", got)
			}
			after, err := os.ReadFile(filepath.Join(h.Functions, "tools/greet.sh"))
			if err != nil || string(after) != source {
				t.Errorf("the file has changed: %v\n%s", err, after)
			}
		})
	}
}

func TestBashKeepsItsOptions(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	for name, c := range map[string]struct{ source, want string }{
		"errexit while loading":  {"set -e\nfalse\nmain() { :; }\n", `{"tool_call_error":"Tool call 't' exited with code 1"}`},
		"errexit in the call":    {"set -e\nmain() { echo a >>\"$LLM_OUTPUT\"; false; echo b >>\"$LLM_OUTPUT\"; }\n", `{"tool_call_error":"Tool call 't' exited with code 1","output":"a"}`},
		"no errexit":             {"main() { false; echo b >>\"$LLM_OUTPUT\"; }\n", `{"output":"b\n"}`},
		"nounset in the call":    {"set -u\nmain() { echo \"$argc_none\" 2>/dev/null; }\n", ``},
		"status of the function": {"main() { return 7; }\n", `{"tool_call_error":"Tool call 't' exited with code 7"}`},
		"hooks": {"_argc_before() { echo before >>\"$LLM_OUTPUT\"; }\n_argc_after() { echo after >>\"$LLM_OUTPUT\"; }\nmain() { echo \"$argc__fn\" >>\"$LLM_OUTPUT\"; }\n",
			`{"output":"before\nmain\nafter\n"}`},
		"a trap that fails": {"set -e\ntrap '[[ -n \"\" ]] && rm none' EXIT\nmain() { echo a >>\"$LLM_OUTPUT\"; }\n", `{"output":"a\n"}`},
		"a trap":            {"trap 'echo end >>\"$LLM_OUTPUT\"' EXIT\nmain() { :; }\n", `{"output":"end\n"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, one(t, h, "t.sh", "# @describe T.\n"+c.source), `{}`)
			if c.want == "" {
				if !got.Error || !strings.Contains(got.Text(), "argc_none") {
					t.Errorf("got %s", got.Text())
				}
			} else if got.Text() != c.want {
				t.Errorf("got  %s\nwant %s", got.Text(), c.want)
			}
		})
	}
}

func TestBashEnvironmentAnnotations(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	h.Env = append(h.Env, "MODE=fast")
	source := `# @describe T.
# @meta require-tools bash,no-such-tool-a no-such-tool-b
# @env LLM_OUTPUT=/dev/stdout The output path
# @env API_KEY! A key
# @env OTHER_KEY! Another
# @env MODE[fast|slow] A choice
main() { :; }
`
	got := call(t, one(t, h, "t.sh", source), `{}`).Text()
	if want := `"stderr":"error: the following required environments were not provided:\n  API_KEY\n  OTHER_KEY"`; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	h.Env = append(h.Env, "API_KEY=a", "OTHER_KEY=b")
	if got = call(t, one(t, h, "t.sh", source), `{}`).Text(); !strings.Contains(got, `"stderr":"error: missing tools: no-such-tool-a no-such-tool-b"`) {
		t.Errorf("got %s", got)
	}
	h.Env = append(h.Env, "MODE=warp")
	want := "error: invalid value `warp` for environment variable `MODE`\\n  [possible values: fast, slow]"
	if got = call(t, one(t, h, "t.sh", source), `{}`).Text(); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	exported := "# @describe T.\n# @env LEVEL=`_level` A level\n_level() { echo 'a b'; }\nmain() { bash -c 'echo \"$LEVEL\"' >>\"$LLM_OUTPUT\"; }\n"
	if got = call(t, one(t, h, "t.sh", exported), `{}`).Text(); got != `{"output":"a b\n"}` {
		t.Errorf("got %s", got)
	}
}

func TestResults(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	for name, c := range map[string]struct{ body, want string }{
		"nothing":             {`:`, `"DONE"`},
		"stdout is no result": {`echo hello`, `"DONE"`},
		"null":                {`printf null >>"$LLM_OUTPUT"`, `"DONE"`},
		"text":                {`printf 'a <b> & c' >>"$LLM_OUTPUT"`, `{"output":"a <b> & c"}`},
		"object":              {`printf ' {"b": 1, "a": [1.50, "é"]}\n' >>"$LLM_OUTPUT"`, `{"b":1,"a":[1.50,"é"]}`},
		"number":              {`printf 42 >>"$LLM_OUTPUT"`, `42`},
		"truth":               {`printf true >>"$LLM_OUTPUT"`, `true`},
		"quoted":              {`printf '"a"' >>"$LLM_OUTPUT"`, `"a"`},
		"escapes":             {`printf '\033[31mred\033[0m \033]8;;http://x\033\\link' >>"$LLM_OUTPUT"`, `{"output":"red link"}`},
		"invalid UTF-8":       {`printf 'a\xff\xfeb' >>"$LLM_OUTPUT"`, `{"output":"a�b"}`},
		"no file any more":    {`rm "$LLM_OUTPUT"`, `"DONE"`},
		"a pipe instead":      {`rm "$LLM_OUTPUT"; mkfifo "$LLM_OUTPUT"`, `"DONE"`},
		"failure": {`printf 'log\n' >>"$LLM_OUTPUT"; echo out; printf '\033[1mbad\033[0m \xff\n' >&2; exit 3`,
			`{"tool_call_error":"Tool call 't' exited with code 3","stderr":"bad �","stdout":"out","output":"log"}`},
		"killed": {`echo half >>"$LLM_OUTPUT"; kill -KILL $$`, `{"tool_call_error":"Tool call 't' was killed by SIGKILL","output":"half"}`},
		"broken": {`if then`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, one(t, h, "t.sh", "# @describe T.\nmain() { \n"+c.body+"\n}\n"), `{}`)
			if c.want == "" {
				if !got.Error || !strings.Contains(got.Text(), "syntax error") {
					t.Errorf("got %s", got.Text())
				}
				return
			}
			if failed := strings.Contains(c.want, "tool_call_error"); got.Text() != c.want || got.Error != failed {
				t.Errorf("got  %s, error %v\nwant %s", got.Text(), got.Error, c.want)
			}
		})
	}
}

func TestMuchOutputIsBounded(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	h.Limit = 1000
	got := call(t, one(t, h, "t.sh", "# @describe T.\nmain() { { echo first; yes é | head -c 5000000; echo last; } | tee -a \"$LLM_OUTPUT\"; exit 1; }\n"), `{}`)
	var object failureBody
	if err := json.Unmarshal([]byte(got.Text()), &object); err != nil {
		t.Fatal(err)
	}
	shape := regexp.MustCompile(`(?s)^first\n.*\n\[\.\.\. \d+ bytes left out \.\.\.\]\n.*last$`)
	for name, text := range map[string]string{"stdout": object.Stdout, "output": object.Output} {
		if !shape.MatchString(text) || len(text) > 1100 {
			t.Errorf("%s has %d bytes:\n%s", name, len(text), text)
		}
	}
	if strings.Contains(object.Output, "\uFFFD") {
		t.Errorf("a character was cut in two:\n%s", object.Output)
	}
}

func TestFloodOnStdoutTakesNoMemory(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tl := one(t, h, "t.sh", "# @describe T.\nmain() { head -c 300000000 /dev/zero | tr '\\0' x; echo done >>\"$LLM_OUTPUT\"; }\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := call(t, tl, `{}`)
	runtime.ReadMemStats(&after)
	if got.Text() != `{"output":"done\n"}` {
		t.Errorf("got %s", got.Text())
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

// wire is a named pipe that a script opens with exec 9>"$WIRE": the channel is
// closed when nothing that the script has started holds it any more.
func wire(t *testing.T, h *Host) <-chan struct{} {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wire")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Env = append(h.Env, "WIRE="+path)
	end := make(chan struct{})
	go func() {
		defer close(end)
		if f, err := os.Open(path); err == nil {
			_, _ = io.Copy(io.Discard, f)
			_ = f.Close()
		}
	}()
	return end
}

func gone(t *testing.T, end <-chan struct{}) {
	t.Helper()
	select {
	case <-end:
	case <-time.After(10 * time.Second):
		t.Error("something that the tool has started is still running")
	}
}

func TestTimeoutEndsEverything(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	end := wire(t, h)
	h.Timeout = 500 * time.Millisecond
	got := call(t, one(t, h, "t.sh", "# @describe T.\nmain() { exec 9>\"$WIRE\"; echo so far >>\"$LLM_OUTPUT\"; sleep 4711 & sleep 4711; }\n"), `{}`)
	want := `{"tool_call_error":"Tool call 't' timed out after 0.5s and was killed (set RADDLE_TOOL_TIMEOUT to adjust; 0 = unlimited)","output":"so far"}`
	if got.Text() != want || !got.Error {
		t.Errorf("got %s", got.Text())
	}
	gone(t, end)
}

func TestDaemonDoesNotOutliveItsCall(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	daemons := map[string]string{
		"in the background": `sleep 4711 >/dev/null 2>&1 & disown`,
		"holds the output":  `sleep 4711 & disown`,
	}
	if runtime.GOOS == "linux" {
		testneed.RequirePrograms(t, "setsid")
		daemons["in a session of its own"] = `(setsid bash -c 'sleep 4711; :' >/dev/null 2>&1 </dev/null &)`
	}
	for name, start := range daemons {
		t.Run(name, func(t *testing.T) {
			h := surroundings(t)
			end := wire(t, h)
			got := call(t, one(t, h, "t.sh", "# @describe T.\nmain() { exec 9>\"$WIRE\"; "+start+"; echo ok >>\"$LLM_OUTPUT\"; }\n"), `{}`)
			if got.Text() != `{"output":"ok\n"}` {
				t.Errorf("got %s", got.Text())
			}
			gone(t, end)
		})
	}
}

func TestCancelledCall(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	end := wire(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	h.Printed = func(_ context.Context, line string) {
		if line == "ready" {
			cancel()
		}
	}
	tl := one(t, h, "t.sh", "# @describe T.\nmain() { exec 9>\"$WIRE\"; echo ready; sleep 4711; }\n")
	_, err := tl.Run(ctx, tool.Call{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gone(t, end)
}

func TestPrintedLinesAndStart(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	var lines []string
	var child proc.Handle
	h.Printed = func(_ context.Context, line string) { lines = append(lines, line) }
	h.Started = func(_ context.Context, note json.RawMessage) error { return json.Unmarshal(note, &child) }
	call(t, one(t, h, "t.sh", "# @describe T.\nmain() { printf '\\033[1mone\\033[0m\\r\\ntwo\\n\\nno end'; }\n"), `{}`)
	if diff := cmp.Diff([]string{"one", "two", "no end"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if child.PID == 0 {
		t.Error("the process was not told")
	}
	h.Started = func(context.Context, json.RawMessage) error { return errors.New("the journal is full") }
	if _, err := one(t, h, "t.sh", "# @describe T.\nmain() { :; }\n").Run(t.Context(), tool.Call{}); err == nil || !strings.Contains(err.Error(), "the journal is full") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	call(t, one(t, h, "t.sh", "# @describe T.\nmain() { echo x >>\"$LLM_OUTPUT\"; exit 1; }\n"), `{}`)
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestNoInterpreter(t *testing.T) {
	h := surroundings(t)
	h.Env = []string{"PATH=" + t.TempDir()}
	got := call(t, one(t, h, "t.sh", "# @describe T.\nmain() { :; }\n"), `{}`)
	if !got.Error || !strings.HasPrefix(got.Text(), `{"output":"Unable to run t, bash could not be started: `) {
		t.Errorf("got %s", got.Text())
	}
}
