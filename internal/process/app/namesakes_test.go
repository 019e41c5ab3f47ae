//go:build unix

package app

import (
	"slices"
	"strings"
	"testing"
)

// A script with the name of a built-in tool asks for the same calls as that tool, also in
// the agent's own file, and rules for the name apply to it.
func TestScriptsNamedLikeBuiltinsAsk(t *testing.T) {
	const command = "# @describe Runs.\n# @option --command! What\nmain() { eval \"$argc_command\" >>\"$LLM_OUTPUT\"; }\n"
	w := newPlace(t)
	w.write("home/.config/raddle/functions/tools/execute_command.sh", command)
	w.write("home/.config/raddle/functions/tools/fs_cat.sh", "# @describe Reads.\n# @option --path! What\n# @option --also More\nmain() { cat \"$argc_path\" $argc_also >>\"$LLM_OUTPUT\"; }\n")
	w.write("home/.config/raddle/functions/tools/execute_js_code.sh", "# @describe Runs.\n# @option --code! What\nmain() { :; }\n")
	w.write("home/.config/raddle/functions/tools/drop.sh", "# @describe Drops.\nmain() { guard_operation; }\n")
	w.write("home/.config/raddle/functions/tools/said.sh", "# @describe Drops.\n# raddle: idempotent\nmain() { guard_operation; }\n")
	w.write("a/config.yaml", "name: A\nglobal_tools: [execute_command, fs_cat, execute_js_code, drop, said]\n")
	w.write("a/tools.sh", "# @cmd Writes.\n# @option --path! Where\n# @option --contents! What\nfs_write() { :; }\n# @cmd Free.\nfree() { :; }\n# @cmd Guards.\n# @option --path\nguards() { guard_path \"$argc_path\" ok; }\n# @cmd Comments.\ncomments() { :; } # guard_operation\n")
	w.write("x", "")
	calls := []struct {
		call
		asks bool
	}{
		{call{Name: "execute_command", Args: `{"command":"touch made"}`}, true},
		{call{Name: "execute_command", Args: `{"command":"ls"}`}, false},
		{call{Name: "execute_command", Args: `{"command":["touch made"]}`}, false}, // its schema refuses it: no question
		{call{Name: "execute_command", Args: `{"command":"cat /etc/passwd"}`}, true},
		{call{Name: "fs_cat", Args: `{"path":"x"}`}, false},
		{call{Name: "fs_cat", Args: `{"path":["/etc/passwd"]}`}, false}, // its schema refuses it
		{call{Name: "fs_cat", Args: `{"path":"x","also":"/etc/passwd"}`}, true},
		{call{Name: "fs_cat", Args: `{}`}, false},                          // its schema refuses it
		{call{Name: "fs_cat", Args: `{"path":"[\"/etc/passwd\"]"}`}, true}, // a script may declare a list
		{call{Name: "execute_js_code", Args: `{"code":"1"}`}, true},
		{call{Name: "fs_write", Args: `{"path":"../out","contents":"x"}`}, true},
		{call{Name: "fs_write", Args: `{"path":".git/hooks/x","contents":"x"}`}, true},
		{call{Name: "fs_write", Args: `{"path":"in","contents":"x"}`}, false},
		{call{Name: "free", Args: `{}`}, false},
		{call{Name: "guards", Args: `{}`}, true},
		{call{Name: "comments", Args: `{}`}, false},
		{call{Name: "drop", Args: `{}`}, true},
		{call{Name: "said", Args: `{}`}, false},
	}
	var made []call
	var want []int
	for i, c := range calls {
		made = append(made, c.call)
		if c.asks {
			want = append(want, i)
		}
	}
	if got := w.asked("./a", made...); !slices.Equal(got, want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
	w.write(".raddle/permissions.yaml", "deny: [execute_command(touch *), any read(x)]\n")
	if got := w.asked("./a", calls[0].call, calls[4].call); len(got) != 0 {
		t.Errorf("with rules that deny: asked for %v", got)
	}
	if len(w.lines("made")) != 0 {
		t.Error("a denied command ran")
	}
}

// Tools in a language that raddle does not run, and variables that name nothing, are
// reported.
func TestWhatToolsLackIsReported(t *testing.T) {
	w := newPlace(t, "SET=x")
	functions := "home/.config/raddle/functions/tools/"
	w.write(functions+"view.js", "exports.run = () => 1\n")
	w.write(functions+"ok.sh", "# @describe Ok.\nmain() { :; }\n")
	w.write("a/config.yaml", "name: A\nglobal_tools: [view, ok]\nvariables: [{name: t, description: d, default: '{{UNSET}} {{SET}}'}]\n")
	w.write("a/tools.js", "exports.a = () => 1\n")
	p, _ := w.process(-1)
	l, err := p.ListTools(LoadRequest{Agent: "./a"})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(l.Problems, "\n")
	for _, want := range []string{"a/tools.js is not used", "functions/tools/view.js is not used", "as view.ts", `names {{UNSET}}, which is not set`} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if len(l.Problems) != 3 || len(l.Files) != 1 || len(l.Unused) != 2 {
		t.Errorf("%d problems, %v, %v:\n%s", len(l.Problems), l.Files, l.Unused, all)
	}
	if l, err = p.ListTools(LoadRequest{}); err != nil || len(l.Files) != 1 || len(l.Unused) != 1 || len(l.Problems) != 1 {
		t.Errorf("%v %v %v %v", err, l.Files, l.Unused, l.Problems)
	}
	w.write("b/index.yaml", "name: B\n")
	if _, err := p.Load(LoadRequest{Agent: "./b"}); err == nil || !strings.Contains(err.Error(), "rename that to config.yaml") {
		t.Errorf("%v", err)
	}
}
