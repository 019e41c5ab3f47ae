//go:build unix

package cli_test

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"raddle.dev/internal/base/term"
)

// sequence matches a control sequence of a terminal.
var sequence = regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|\][^\a]*\a)`)

// findBroken returns the lines of a command on a terminal that the terminal must break inside of a word that would fit on
// a line of its own.
func (w *workplace) findBroken(cols int, args ...string) (broken []string) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "LANG=C.UTF-8", "TERM=xterm-256color", "PAGER=cat")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: uint16(cols)})
	if err != nil {
		w.t.Fatal(err)
	}
	defer tty.Close()
	all, _ := io.ReadAll(tty) // it ends with an error when the process closes its side
	_ = cmd.Wait()
	if len(all) == 0 {
		w.t.Errorf("%v writes nothing", args)
	}
	for line := range strings.SplitSeq(sequence.ReplaceAllString(string(all), ""), "\n") {
		line = line[strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r')+1:] // a live line is drawn again
		line = strings.TrimRight(line, "\r ")
		if term.TextWidth(line) > cols && len(strings.Fields(line)) > 1 {
			broken = append(broken, line)
		}
	}
	return broken
}

// No command breaks a word on a terminal that would fit on a line of its own: help, lists, runs, errors, questions.
func TestExtraNoWordIsBroken(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, screenFiles)
	w.write("wrong/graph.yaml", "name: wrong\nstart: a\nnodes:\n  a: {type: llm, prompt: \"{{nothing_sets_this_key_that_has_a_long_name}} and some more words\", next: nowhere_that_exists}\n")
	for _, args := range [][]string{{"run", "./many"}, {"run", "./dev", "go", "--mode", "edits"}, {"run", "./waits", "go"}} {
		if r := w.run(args...); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	commands := [][]string{
		{"runs", "ls"}, {"runs", "show", "last"}, {"runs", "show", "last~1"}, {"runs", "show", "last~1", "--why"}, {"runs", "show", "last~2"}, {"runs", "history", "last~1"},
		{"runs", "history", "last~2"}, {"runs", "blame", "last~2"}, {"runs", "diff", "last~2@3", "last~2"}, {"explain", "last~2"}, {"explain", "last"},
		{"tools", "ls", "./dev"}, {"tools", "show", "./dev", "fs_patch"}, {"agents", "ls"}, {"agents", "show", "./many"}, {"models", "ls"}, {"models"},
		{"info"}, {"doctor"}, {"config", "explain"}, {"roles", "ls"}, {"examples", "ls"}, {"triggers", "ls"}, {"events", "ls"}, {"memory", "ls"}, {"inbox"},
		{"check", "./many"}, {"run", "./many"}, {"run", "./dev", "go", "--mode", "edits"}, {"run", "--info", "./dev"}, {"run", "--dry-run", "./dev", "go"},
		{"run", "./wrong", "go"}, {"run", "./nothing-of-this-name", "go"}, {"runs", "show", "none-with-this-name"}, {"runs", "cancle"}, {"run"}, {"--nothing"}, {"resume", "last"},
		{"run", "./dev", "go", "--model", "nothing:of-this-name"}, {"import", "--dry-run"}, {"help", "nothing"}, {"version"}, {"tools", "call", "./dev", "boom", "{}"},
	}
	const groups = "run chat resume inbox watch runs agents tools models graph check test replay explain serve studio init doctor config rag mcp " +
		"login logout import examples try shell events triggers wake schema help memory roles eval dataset chaos info ask acp completion"
	names := append([]string{""}, strings.Fields(groups)...)
	for _, name := range strings.Fields("ls show history diff blame fork edit prune gc rm cancel message export share import") {
		names = append(names, "runs "+name)
	}
	for _, name := range names {
		commands = append(commands, append(strings.Fields(name), "--help"))
	}
	for _, cols := range []int{40, 60, 80} {
		for _, args := range commands {
			for _, line := range w.findBroken(cols, args...) {
				t.Errorf("%d columns, %v: %q", cols, args, line)
			}
		}
	}
}
