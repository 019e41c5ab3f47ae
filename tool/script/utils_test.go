package script

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"raddle.dev/internal/testkit/testneed"
)

// bash runs a text with the helpers at hand, without TERM or any program of tput's kind.
func helped(t *testing.T, text string) (stdout, stderr string, err error) {
	t.Helper()
	testneed.RequirePrograms(t, "bash")
	path := filepath.Join(t.TempDir(), "prompt-utils.sh")
	if err := os.WriteFile(path, promptUtils, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", "set -euo pipefail\nsource \"$UTILS\"\n"+text)
	cmd.Env = []string{"UTILS=" + path, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = t.TempDir()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

func TestHelpersWithoutTerminal(t *testing.T) {
	for name, c := range map[string]struct{ text, stdout, stderr string }{
		"messages":  {"error no; warn w; info i; debug d; trace t; success s", "ERROR: no\nWARN: w\nINFO: i\nDEBUG: d\nTRACE: t\nSUCCESS: s\n", ""},
		"colours":   {`red a; green "b  c"; gold d; yellow e; blue f; magenta g; cyan h; white -n`, "a\nb  c\nd\ne\nf\ng\nh\n-n\n", ""},
		"to stderr": {"show_error bad; show_success good", "", "✘ bad\n✔ good\n"},
		"guards":    {`guard_operation; guard_operation "Really?"; guard_path /etc/passwd "Touch it?"; echo on`, "on\n", ""},
		"present":   {`validate_present x && echo yes; validate_present "" || echo no`, "yes\nERROR: Please specify the value\nno\n", ""},
		"system":    {`OSTYPE=linux-gnu detect_os; OSTYPE=darwin24 detect_os; OSTYPE=freebsd14 detect_os; OSTYPE=beos detect_os; OSTYPE=darwin24; get_opener`, "linux\nmacos\nbsd\nunknown\nopen\n", ""},
		"validated": {`n=0; ask() { echo ok; }; long() { [[ ${#1} -eq 2 ]] || { echo short; return 1; }; }; with_validate ask long; with_validation ask long`, "ok\nok\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, problems, err := helped(t, c.text)
			if out != c.stdout || problems != c.stderr || err != nil {
				t.Errorf("got %q, %q, %v", out, problems, err)
			}
		})
	}
	for _, ask := range []string{"input", "confirm", "list", "checkbox", "password", "editor", "range"} {
		out, problems, err := helped(t, ask+` "Your name?" 1 2 3; echo on`)
		want := "error: nobody can be asked \"Your name?\": a tool has no terminal. Give the answer as an argument of the tool.\n"
		if out != "" || problems != want || err == nil {
			t.Errorf("%s: got %q, %q, %v", ask, out, problems, err)
		}
	}
}

func TestHelpersOnTerminal(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	testneed.RequirePrograms(t, "ps")
	path := filepath.Join(t.TempDir(), "prompt-utils.sh")
	if err := os.WriteFile(path, promptUtils, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `source "$0"
answers=("$(input Name?)" "$(confirm Sure?)" "$(confirm Sure?)" "$(list Which? a b c)" "$(checkbox Which? a b c)" "$(range Much? 0 5 10)" "$(password Secret?)")
printf '<%s>' "${answers[@]}" >&2; echo >&2; red colour`, path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if _, err := terminal.WriteString("Ann B\nyes\nn\n9\nx\n2\n1, 3\n11\n\ns3cret\n"); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for sc := bufio.NewScanner(terminal); sc.Scan(); {
		text.WriteString(sc.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"<Ann B><1><0><1><0 2><5><s3cret>", "  2) b", "\x1b[31mcolour\x1b[0m"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("want %q in\n%s", want, text.String())
		}
	}
}

func TestPatchFile(t *testing.T) {
	const file = "one\ntwo\nthree\n\tfour\n\nfive\ntwo\n"
	for name, c := range map[string]struct{ patch, want, stderr string }{
		"replace":      {"--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+zwei\n", "one\nzwei\nthree\n\tfour\n\nfive\ntwo\n", ""},
		"two hunks":    {"@@ ... @@\n one\n-two\n@@ ... @@\n five\n-two\n+deux\n+deux\n", "one\nthree\n\tfour\n\nfive\ndeux\ndeux\n", ""},
		"insert":       {"@@\n \tfour\n\n+fresh\n", "one\ntwo\nthree\n\tfour\n\nfresh\nfive\ntwo\n", ""},
		"special text": {"@@\n-one\n+%s\\n'\"$(id)` *\n", "%s\\n'\"$(id)` *\ntwo\nthree\n\tfour\n\nfive\ntwo\n", ""},
		"no patch":     {"nothing here\n", "", "error: no patch\n"},
		"no match":     {"@@\n-six\n+7\n", "", "error: unable to apply patch: hunk 1 fits nowhere after line 0\n  expected: six\n  actual line 1: one\n"},
		"wrong order":  {"@@\n-five\n+5\n@@\n-one\n+1\n", "", "error: unable to apply patch: hunk 2 fits nowhere after line 6\n  expected: one\n  actual line 7: two\n"},
		"differs late": {"@@\n two\n three\n four\n-five\n", "", "error: unable to apply patch: hunk 1 fits nowhere after line 0\n  expected: four\n  actual line 4: \tfour\n"},
		"past the end": {"@@\n five\n two\n-six\n", "", "error: unable to apply patch: hunk 1 fits nowhere after line 0\n  expected: six\n  actual: the end of the file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := write(t, dir, "file", file), write(t, dir, "patch", c.patch)
			out, problems, err := helped(t, "patch_file '"+a+"' '"+b+"'")
			if out != c.want || problems != c.stderr || (err == nil) != (c.stderr == "") {
				t.Errorf("got %q, %q, %v", out, problems, err)
			}
		})
	}
}

func TestHelpersAreThereForTools(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	tl := one(t, surroundings(t), "t.sh", `#!/usr/bin/env bash
set -e
# @describe T.
source "$LLM_PROMPT_UTILS_FILE"
main() {
	guard_operation "Sure?"
	tput sgr0 >/dev/null
	info "done" >>"$LLM_OUTPUT"
}
`)
	testneed.RequirePrograms(t, "tput")
	if got := call(t, tl, `{}`).Text(); got != `{"output":"INFO: done\n"}` {
		t.Errorf("got %s", got)
	}
}
