package shellhelp

import (
	"os/exec"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// The command is the first fenced block of a reply, or its first line.
func TestSplitReply(t *testing.T) {
	for reply, want := range map[string]Suggestion{
		"```bash\ndu -a | sort -n\n```\nLists files.": {Command: "du -a | sort -n", Explanation: "Lists files."},
		"Here:\r\n```\r\nls\r\n```":                   {Command: "ls", Explanation: "Here:"},
		"`ls -l`\nLists.":                             {Command: "ls -l", Explanation: "Lists."},
		"```sh\na &&\nb\n```\nx\n```\nother\n```":     {Command: "a &&\nb", Explanation: "x\n```\nother\n```"},
		"```sh\nnot closed":                           {Command: "not closed"},
		"":                                            {},
	} {
		if got := SplitReply(reply); got != want {
			t.Errorf("%q: %+v, want %+v", reply, got, want)
		}
	}
}

// What a terminal would hide is visible in the command, and no escape of a model reaches the terminal.
func TestDescribe(t *testing.T) {
	text := Describe(Suggestion{Command: "ls\x1b[2J\r; rm -rf x", Explanation: "fine\x1b[1A"}, false)
	if strings.ContainsAny(text, "\x1b\r") || !strings.Contains(text, "rm -rf x") || !strings.Contains(text, `\x1b`) {
		t.Errorf("%q", text)
	}
}

// The key bindings are scripts that their shells accept.
func TestBindings(t *testing.T) {
	for _, shell := range Shells {
		text, err := FindBinding(shell)
		if err != nil || !strings.Contains(text, "--print") || !strings.Contains(text, "</dev/null") {
			t.Errorf("%s: %v\n%s", shell, err, text)
		}
	}
	if _, err := FindBinding("fihs"); err == nil || !strings.Contains(err.Error(), `"fihs"`) {
		t.Error(err)
	}
	testneed.RequirePrograms(t, "bash")
	text, _ := FindBinding("bash")
	cmd := exec.Command("bash", "-n")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// With a program of that name, the binding replaces the line, and leaves it as it is if there is no command.
	script := "bind() { :; }\nraddle() { [ \"$5\" = bad ] && return 1; printf 'made of %s' \"$5\"; }\n" + text +
		"\nREADLINE_LINE=words; __raddle_suggest; echo \"$READLINE_LINE\"; READLINE_LINE=bad; __raddle_suggest; echo \"$READLINE_LINE\"\n"
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	if err != nil || string(out) != "made of words\nbad\n" {
		t.Errorf("%q, %v", out, err)
	}
}
