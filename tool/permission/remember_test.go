package permission_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/tool/permission"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsOfRules(t *testing.T) {
	_, err := permission.LoadRules("rules.yaml", []byte(`alow: [x]
deny:
  - fs_write(src
  - any wrte(x)
  - "any command('x)"
  - any write([)
  - fs write
  - fs_write()
  - {a: b}
ask: everything
`))
	want := `the permission rules have faults:
  rules.yaml:1:1: error: unknown key "alow" in permissions (did you mean allow?)
  rules.yaml:3:5: error: rule "fs_write(src": the closing ) is missing
  rules.yaml:4:5: error: rule "any wrte(x)": any must be followed by one of command, read, write, host, not "wrte"; did you mean write?
  rules.yaml:5:5: error: rule "any command('x)": a quote is not closed, or the text ends with a backslash
  rules.yaml:6:5: error: rule "any write([)": "[" is not a pattern of paths: a bracket or a brace is not closed
  rules.yaml:7:5: error: rule "fs write": "fs write" is not a name of a tool: letters, digits, _, -, . and * only
  rules.yaml:8:5: error: rule "fs_write()": there is nothing between the parentheses: leave them out to mean every call
  rules.yaml:9:5: error: a rule is a text such as fs_write(src/**); one with ': ' or a leading * needs quotes
  rules.yaml:10:6: error: ask must be a list, not a single value`
	if e, ok := errors.AsType[*permission.Error](err); !ok || len(e.Findings) != 9 {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"- a", "allow: [a", "allow: {", "allow: [a]\nallow: [b]"} {
		if _, err := permission.LoadRules("rules.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "rules.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "# nothing\n", "allow:\n", "{}"} {
		if _, err := permission.LoadRules("rules.yaml", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAppendKeepsTheFile(t *testing.T) {
	rules := []string{`execute_command(echo "a # b" 'c: d')`, "fs_write(ü*)", "old"}
	const added = "- \"execute_command(echo \\\"a # b\\\" 'c: d')\"\n"
	for name, c := range map[string]struct{ before, after string }{
		"empty": {"", "# Rules from answers of \"always\". Delete what is no longer wanted.\nallow:\n  " + added + "  - \"fs_write(ü*)\"\n  - \"old\"\n"},
		"comments": {
			"# mine\nallow: # yes\n  - old # why\n  # last\n\ndeny: # no\n  - x\n",
			"# mine\nallow: # yes\n  - old # why\n  " + added + "  - \"fs_write(ü*)\"\n  # last\n\ndeny: # no\n  - x\n",
		},
		"not indented":  {"allow:\n- old", "allow:\n- old\n" + added + "- \"fs_write(ü*)\"\n"},
		"no such list":  {"deny: [x]\n", "deny: [x]\nallow:\n  " + added + "  - \"fs_write(ü*)\"\n  - \"old\"\n"},
		"an empty list": {"allow:\ndeny: [x]\n", "allow:\n  " + added + "  - \"fs_write(ü*)\"\n  - \"old\"\ndeny: [x]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := permission.AppendRules("f.yaml", []byte(c.before), rules)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := permission.AppendRules("f.yaml", got, rules)
			if err != nil || string(again) != string(got) {
				t.Errorf("the second time: %v\n%s", err, again)
			}
		})
	}
	for _, before := range []string{"allow: [old, other]\n", "allow: [x", "allow:\n  - |\n    old\n"} {
		if got, err := permission.AppendRules("f.yaml", []byte(before), rules); err == nil {
			t.Errorf("%q became %q", before, got)
		}
	}
}

func TestRemember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "permissions.yaml")
	for _, rule := range []string{"a(x)", "b", "a(x)"} {
		if err := permission.RememberRules(path, []string{rule}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "allow:\n  - \"a(x)\"\n  - \"b\"\n"; !strings.HasSuffix(string(text), want) {
		t.Errorf("got %s", text)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := permission.RememberRules(path, []string{"no such rule"}); err == nil {
		t.Error("a rule that cannot be read was written")
	}
}

func TestConsentEndsWithAChange(t *testing.T) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	for _, d := range []string{agent, filepath.Join(agent, "cache"), filepath.Join(agent, "docs")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(agent, "tools.sh"), "echo 1")
	write(t, filepath.Join(agent, "docs", "a.md"), "text")
	c := permission.Consents{Path: filepath.Join(dir, "state", "consents.json")}
	given := func() bool {
		t.Helper()
		digest, _, err := permission.Digest(agent)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := c.HasConsent(agent, digest)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if given() {
		t.Fatal("there is a consent that no person gave")
	}
	digest, files, err := permission.Digest(agent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tools.sh"}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.RecordConsent(agent, digest); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(agent, "docs", "a.md"), "other text")
	write(t, filepath.Join(agent, "cache", "x.sh"), "made by a tool")
	if !given() {
		t.Error("the consent is gone though no script changed")
	}
	write(t, filepath.Join(agent, "docs", "run"), "x")
	if err := os.Chmod(filepath.Join(agent, "docs", "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if given() {
		t.Error("a new program needs no consent")
	}
	if err := os.Remove(filepath.Join(agent, "docs", "run")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(agent, "tools.sh"), "echo 2")
	if given() {
		t.Error("a changed script needs no consent")
	}
	write(t, c.Path, "{")
	if _, err := c.HasConsent(agent, digest); err == nil {
		t.Error("a broken file of consents was taken for an empty one")
	}
}
