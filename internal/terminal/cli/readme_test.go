//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// fenced matches the blocks of code of a Markdown file.
var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// fileHead matches the first line of a block that is a file: a comment with its path.
var fileHead = regexp.MustCompile(`^# ([a-z./_-]+\.[a-z]+)\n`)

// online are commands of the README that call a real model, or ask.
var online = []string{"raddle init", "raddle run explore", "raddle run ./shop", "raddle run ./review"}

// TestReadme writes the files of the README, and runs its commands that need no model. What the README shows below a command must be in its output.
func TestReadme(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "timeout")
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkplace(t, "")
	if err := linkProgram(w); err != nil {
		t.Fatal(err)
	}
	files, commands := 0, 0
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		kind, body := block[1], block[2]
		if head := fileHead.FindStringSubmatch(body); head != nil {
			if kind == "csv" {
				body = strings.TrimPrefix(body, head[0]) // such a file has no comments
			}
			w.write(head[1], body)
			files++
		}
		if kind != "console" {
			continue
		}
		for _, step := range strings.Split(body, "$ ")[1:] {
			command, shown, _ := strings.Cut(step, "\n")
			if isOnline(command) {
				continue
			}
			commands++
			out, err := w.shell(command)
			if err != nil && !strings.HasPrefix(command, "timeout ") {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			for line := range strings.Lines(shown) {
				if !strings.Contains(out, line) {
					t.Errorf("%s: the output lacks the line %q:\n%s", command, line, out)
				}
			}
		}
	}
	if files < 7 || commands < 6 {
		t.Errorf("the README has %d files and %d commands: is this test still right?", files, commands)
	}
	for _, agent := range []string{"./shop", "./review", "./steps"} {
		if r := w.run("check", "--strict", agent); r.code != 0 || strings.Contains(r.out+r.err, "warning") {
			t.Errorf("check %s: code %d\n%s%s", agent, r.code, r.out, r.err)
		}
	}
	p := newFakeProvider(t)
	w.env = append(append(w.env, p.environ()...), "OPENAI_API_KEY="+testKey, "RADDLE_MODEL=openai:gpt-5-mini")
	for _, args := range [][]string{{"run", "./shop", "Where is order 1007?"}, {"run", "./review", "faster start", "--answer", "shorter", "--answer", "yes"}} {
		if r := w.run(args...); r.code != 0 || r.out != "I am gpt-5-mini.\n" {
			t.Errorf("raddle %v: code %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
	if n := strings.Count(w.read("steps.log"), "\n"); n != 4 {
		t.Errorf("%d steps were started, want 4: the one that was killed started again", n)
	}
}

func isOnline(command string) bool {
	for _, prefix := range online {
		if strings.HasPrefix(command, prefix) {
			return true
		}
	}
	return false
}

// linkProgram puts the program into the directory of a workplace, where shell finds it.
func linkProgram(w *workplace) error { return os.Symlink(w.program, filepath.Join(w.dir, "raddle")) }

// shell runs a line with bash, without a terminal, and returns what it prints.
func (w *workplace) shell(line string) (string, error) {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir, cmd.Env = w.dir, append(w.env, "PATH="+w.dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
