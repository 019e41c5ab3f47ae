//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/termtest"
)

// screenFiles are agents whose runs are shown on terminals of several widths.
const screenFiles = `
-- many/graph.yaml --
name: many
start: plan
nodes:
  plan: {type: script, script: plan.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: results, output_key: out, max_concurrency: 4, next: broken}
  one: {type: script, script: one.sh}
  broken: {type: script, script: broken.sh, fallback: tidy}
  tidy: {type: script, script: one.sh, next: done}
  done: {type: end, output: "{{results}}"}
-- many/plan.sh --
echo '{"items":[1,2,3,4,5,6,7,8,9,10,11,12],"title":"Twelve items","count":12}'
-- many/one.sh --
echo '{"out":"x"}'
-- many/broken.sh --
echo "no such table: incidents" >&2
exit 3
-- dev/config.yaml --
name: dev
model: script:t.yaml
global_tools: [fs_read, fs_patch, fs_write, fs_rm, execute_command]
instructions: You work.
-- dev/tools.sh --
# @cmd Explodes
# @option --how! How it explodes
boom() {
  echo "Traceback: it exploded" >&2
  exit 7
}
-- dev/t.yaml --
- reasoning: The file must be read before it is changed, so that the patch fits it exactly.
  text: I look at the file first.
  tool_calls: [{name: fs_read, args: {path: main.go}}]
- tool_calls: [{name: fs_read, args: {path: old.txt}}]
- tool_calls:
    - {name: fs_patch, args: {path: main.go, contents: "@@\n func main() {\n-\tprintln(\"hello\")\n+\tprintln(\"bye\")\n }\n"}}
    - {name: fs_write, args: {path: numbers.txt, contents: "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n"}}
    - {name: fs_rm, args: {path: old.txt}}
- tool_calls:
    - {name: fly, args: {to: "the moon"}}
    - {name: execute_command, args: {command: "printf 'line %s\\n' 1 2 3 4 5 6 7 8"}}
    - {name: boom, args: {how: loudly}}
    - {name: fs_read, args: {path: none.txt}}
- {text: "Done. **Two** files have changed:\n\n- ` + "`main.go`\\n- `numbers.txt`" + `\n"}
-- main.go --
package main

func main() {
	println("hello")
}
-- old.txt --
nothing
-- waits/config.yaml --
name: waits
model: script:t.yaml
instructions: You wait.
-- waits/t.yaml --
- {error: {class: rate_limited, status: 429, message: slow down, retry_after_ms: 700}}
- {text: It was worth the wait.}
-- words/config.yaml --
name: words
model: script:t.yaml
instructions: You write.
-- words/t.yaml --
- text: |
    # Wörter und 日本語

    Emoji such as 👨‍👩‍👧 and 🇩🇪, Hebrew (שלום עולם) and Arabic (مرحبا بالعالم) are in one paragraph that is wider than most terminals are.

    | name | what it is for | 日本語 |
    |---|---|---|
    | a very long name of a thing | a description that does not fit into a narrow terminal at all | 幅の広い文字 |
    | b | short | 字 |
-- evil/config.yaml --
name: "evil"
model: script:t.yaml
global_tools: [fs_write, execute_command]
instructions: You are hostile.
-- evil/t.yaml --
- reasoning: "think \e]0;title\a\e[2J"
  text: "words \e[31mred\e]52;c;ZXZpbA==\a \u202eturned"
  tool_calls:
    - {name: "no\e[2Jtool", args: {path: "a\e]0;t\ab"}}
    - {name: fs_write, args: {path: "evil\e[1;1H.txt", contents: "one\e[2J\ntwo\rthree\u202e\n"}}
    - {name: execute_command, args: {command: "printf 'a\\033[2Jb\\r\\033]0;x\\007c\\n'"}}
- {text: The end.}
`

// show runs raddle on a terminal of some width and returns what it wrote, and what the terminal shows in the end.
func (w *workplace) show(cols int, args ...string) (written, shown string) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "LANG=C.UTF-8", "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: uint16(cols)})
	if err != nil {
		w.t.Fatal(err)
	}
	defer tty.Close()
	all, _ := io.ReadAll(tty) // it ends with an error when the process closes its side
	if err := cmd.Wait(); err != nil {
		w.t.Errorf("%v: %v\n%s", args, err, all)
	}
	v := termtest.NewDisplay(cols)
	v.WriteText(strings.ReplaceAll(string(all), "\r\n", "\n"))
	if v.Unknown != nil {
		w.t.Errorf("unknown sequences: %q", v.Unknown)
	}
	return string(all), v.String()
}

var (
	shownTime = regexp.MustCompile(`\b\d+\.\d(\s+)s`)
	shownRun  = regexp.MustCompile(`\b1m[0-9a-z]{18}\b`)
)

// TestScreens compares what terminals of several widths show at the end of runs. Run with UPDATE_SCREENS=1 to write the screens again.
func TestScreens(t *testing.T) {
	needBash(t)
	triage, err := filepath.Abs("../../../examples/triage")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"graph": {"./triage", "--answer", "yes", "--answer", "Be careful."},
		"map":   {"./many"},
		"agent": {"./dev", "go", "--mode", "edits"},
		"wait":  {"./waits", "go"},
		"words": {"./words", "go"},
		"evil":  {"./evil", "go", "--mode", "edits"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, cols := range []int{20, 40, 80, 200} {
				w := newWorkplace(t, screenFiles)
				if err := os.CopyFS(filepath.Join(w.dir, "triage"), os.DirFS(triage)); err != nil {
					t.Fatal(err)
				}
				file := w.read("triage/graph.yaml") // one node after the other: their order does not vary
				w.write("triage/graph.yaml", strings.Replace(file, "settings:\n", "settings:\n  max_concurrency: 1\n", 1))
				written, shown := w.show(cols, append([]string{"run"}, args...)...)
				if found := foreign(strings.NewReplacer("\x1b]8;;", "", "\a", "").Replace(written)); found != nil && name == "evil" {
					t.Errorf("in %d columns, the terminal gets %q", cols, found)
				}
				shown = shownRun.ReplaceAllString(shownTime.ReplaceAllString(shown, "0.0${1}s"), "1m000000000000000000")
				fmt.Fprintf(&got, "== %d columns ==\n%s\n", cols, strings.ReplaceAll(shown, w.dir, "DIR"))
			}
			golden := filepath.Join("testdata", "screens", name+".txt")
			if os.Getenv("UPDATE_SCREENS") != "" {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("run with UPDATE_SCREENS=1 and look (-want +got):\n%s", d)
			}
		})
	}
}
