package permission

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/tool"
)

func TestEdgesOfRules(t *testing.T) {
	t.Parallel()
	split := func(pattern string) string {
		words, err := splitPattern(pattern)
		return fmt.Sprintf("%q %t", words, err != nil)
	}
	fault := func(text string) string {
		r, err := ParseRule(text)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s|%s|%s|%t|%t|%q", r.tool, r.kind, r.pattern, r.bare, r.broken, r.words)
	}
	checkEdges(t, []edge{
		{"splitPattern", split(`a  b	c`), `["a" "b" "c"] false`},
		{"splitPattern", split("a\nb"), `["a" "b"] false`},
		{"splitPattern", split(` a '' "b c" `), `["a" "" "b c"] false`},
		{"splitPattern", split(`a\ b \* '*' '\' "\*"`), `["a b" "\\*" "\\*" "\\\\" "\\*"] false`},
		{"splitPattern", split(`a"b 'c"d'e f'`), `["ab 'cde f"] false`},
		{"splitPattern", split(`\a`), `["a"] false`},
		{"splitPattern", split(`\\`), `["\\\\"] false`},
		{"splitPattern", split(`a'b`), `[] true`},
		{"splitPattern", split(`a\`), `[] true`},
		{"splitPattern", split(`*a*`), `["*a*"] false`},
		{"ParseRule", fault("tool ( a b )"), `tool||a b|false|false|["a" "b"]`},
		{"ParseRule", fault("tool"), `tool|||true|false|[]`},
		{"ParseRule", fault("tool('a)"), `tool||'a|false|true|[]`},
		{"ParseRule", fault("any command('a)"), `rule "any command('a)": a quote is not closed, or the text ends with a backslash`},
		{"ParseRule", fault("any  read ( a )"), `*|read|a|false|false|["a"]`},
		{"ParseRule", fault("any read([a)"), `rule "any read([a)": "[a" is not a pattern of paths: a bracket or a brace is not closed`},
		{"ParseRule", fault("any write({a)"), `rule "any write({a)": "{a" is not a pattern of paths: a bracket or a brace is not closed`},
		{"ParseRule", fault("any host([a)"), `*|host|[a|false|false|["[a"]`},
		{"ParseRule", fault("any raed(a)"), `rule "any raed(a)": any must be followed by one of command, read, write, host, not "raed"; did you mean read?`},
		{"ParseRule", fault("(a)"), `rule "(a)": the name of a tool is missing`},
		{"ParseRule", fault("a b(c)"), `rule "a b(c)": "a b" is not a name of a tool: letters, digits, _, -, . and * only`},
		{"ParseRule", fault("a(b"), `rule "a(b": the closing ) is missing`},
		{"ParseRule", fault("a()"), `rule "a()": there is nothing between the parentheses: leave them out to mean every call`},
		{"ParseRule", fault("a(b) @12"), `rule "a(b) @12": behind @ there must be the digest that an answer has saved, 32 digits from 0 to f`},
		{"ParseRule", fault("a(b) @c)"), `a||b) @c|false|false|["b)" "@c"]`},
		{"ParseRule", fault("a(b) @0123456789abcdef0123456789abcdef"), `a||b|false|false|["b"]`},
		{"DescribeWords", DescribeWords("execute_command(git push *)"), "git push …"},
		{"DescribeWords", DescribeWords("execute_command(danger push *)"), ""},
		{"DescribeWords", DescribeWords("execute_command(git push)"), ""},
		{"DescribeWords", DescribeWords("execute_command(git*)"), ""},
		{"DescribeWords", DescribeWords("("), ""},
	})
}

func TestEdgesOfNarrowedRules(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &Policy{Workspace: dir}
	for _, c := range []struct {
		wide, narrow string
		within       bool
	}{
		{"fs_read", "fs_read", true},
		{"fs_read", "fs_read(a)", true},
		{"fs_read(a)", "fs_read", false},
		{"fs_read", "fs_write(a)", false},
		{"fs_*", "fs_*(a)", false},
		{"any read", "any read(a)", true},
		{"any read(src/**)", "any write(src/a)", false},
		{"any read(src/**)", "any read(src/a/**)", true},
		{"any read(src/**)", "any read(src)", false}, // it is strict
		{"any read(src/**)", "any read(srcs/a)", false},
		{"any read(src/**)", "any read(src/../a)", false},
		{"any read(src/**)", "any read(src/{a,b})", false},
		{"any read(src/**)", `any read(src/\a)`, false},
		{"any read(s*c/**)", "any read(src/a)", false},
		{"any read(src/*)", "any read(src/a)", false},
		{"fs_read(src/**)", "fs_read(src/[a)", false},
		{"execute_command(git push *)", "execute_command(git push a)", true},
		{"execute_command(git push *)", "execute_command(git push)", true},
		{"execute_command(git push *)", "execute_command(git pull a)", false},
		{"execute_command(git * a)", "execute_command(git push a)", true},
		{"execute_command(git * a)", "execute_command(git push a b)", false},
		{"execute_command(git * a)", "execute_command(git push)", false},
		{"execute_command(git push a)", "execute_command(git push)", false},
		{"execute_command(git push *)", "execute_command(git push 'a)", false},
		{"execute_command(make)", "execute_command(make all)", false},
		{"any command(make)", "any command(make all)", false},
		{"any command(make *)", "any command(make all)", true},
		{"post(a=1)", "post(a=1, b=2)", true},
		{"post(a=*)", "post(a=1)", true},
		{"post(a=1)", "post(a=2)", false},
		{"post(a=1)", "post(b=1)", false},
		{"post(a=1)", "post(a=1, a=2)", false},
		{"post(a=1)", "post(x)", false},
		{"post(a=1, a=2)", "post(a=1)", false},
		{"fetch(a.example)", "fetch(https://a.example/x)", true},
		{"fetch(a.example)", "fetch(http://a.example/x)", true},
		{"fetch(a.example)", "fetch(ftp://a.example/x)", false},
		{"fetch(a.example)", "fetch(https://b.example/x)", false},
		{"fetch(a.example)", "fetch(https://a.example)", false},
		{"fetch(a.example)", "fetch(a.example/x)", false},
		{"fetch(*.example)", "fetch(https://*.example/x)", false},
	} {
		if err := p.CheckNarrowed([]string{c.wide}, []string{c.narrow}); (err == nil) != c.within {
			t.Errorf("%s within %s: %v", c.narrow, c.wide, err)
		}
	}
	if p.CheckNarrowed([]string{"("}, []string{"fs_read"}) == nil || p.CheckNarrowed([]string{"fs_read"}, []string{"("}) == nil {
		t.Error("a text that is no rule is taken")
	}
}

func TestEdgesOfRememberedRules(t *testing.T) {
	t.Parallel()
	appended := func(text string, rules ...string) string {
		out, err := AppendRules("f", []byte(text), rules)
		if err != nil {
			return "error " + err.Error()
		}
		return string(out)
	}
	checkEdges(t, []edge{
		{"AppendRules", appended("", "a"), fileHead + "allow:\n  - \"a\"\n"},
		{"AppendRules", appended("\n", "a"), fileHead + "allow:\n  - \"a\"\n"},
		{"AppendRules", appended("# c", "a"), "# c\nallow:\n  - \"a\"\n"},
		{"AppendRules", appended("deny: [b]\n", "a"), "deny: [b]\nallow:\n  - \"a\"\n"},
		{"AppendRules", appended("allow:\n- b", "a"), "allow:\n- b\n- \"a\"\n"},
		{"AppendRules", appended("allow:\n    - b\n    - c\ndeny:\n  - d\n", "a"), "allow:\n    - b\n    - c\n    - \"a\"\ndeny:\n  - d\n"},
		{"AppendRules", appended("deny: [b]\nallow:\n  - c\n", "a"), "deny: [b]\nallow:\n  - c\n  - \"a\"\n"},
		{"AppendRules", appended("allow:\n  - a\n", "a"), "allow:\n  - a\n"},
		{"AppendRules", appended("allow:\n  - a\n", "a", "b"), "allow:\n  - a\n  - \"b\"\n"},
		{"AppendRules", appended("allow:\n  - a\n"), "allow:\n  - a\n"},
		{"AppendRules", appended("allow: [b]\n", "a"), "error f: the list allow is written in a form that cannot be added to: put each rule on a line of its own"},
		{"AppendRules", appended("allow:\n", "a"), "allow:\n  - \"a\"\n"},
		{"AppendRules", appended("deny: [b]\nallow:\n  - c", " a "), `error f: the rule " a " would be read as "a"`},
		{"AppendRules", appended("allow:\n  - c\n", "("), "error f: the list allow is written in a form that cannot be added to: put each rule on a line of its own"},
		{"AppendRules", strings.HasPrefix(appended("nothing: here\n", "a"), "error the permission rules have faults:\n"), true},
		{"lineEnd", lineEnd([]byte("\nb\nc"), 1), 1},
		{"lineEnd", lineEnd([]byte("\nb\nc"), 2), 3},
		{"lineEnd", lineEnd([]byte("\nb\nc"), 3), 4},
	})
	dir := t.TempDir()
	inFile := filepath.Join(dir, "file")
	if err := os.WriteFile(inFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(inFile, "x"), []byte("a")); err == nil {
		t.Error("a file is a directory")
	}
	if err := replaceFile(dir, []byte("a")); err == nil {
		t.Error("a directory is replaced")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".permissions-*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestAnswersOfDecisions(t *testing.T) {
	t.Parallel()
	rule := []string{"a"}
	for want, d := range map[string]Decision{
		"[]":                         {Verdict: Deny, Grant: rule, Words: rule, Lasting: true},
		"[once no]":                  {Verdict: Ask, Lasting: true},
		"[once run no]":              {Verdict: Ask, Grant: rule},
		"[once words no]":            {Verdict: Ask, Words: rule},
		"[once run always no]":       {Verdict: Ask, Grant: rule, Lasting: true},
		"[once run words always no]": {Verdict: Ask, Grant: rule, Words: rule, Lasting: true},
		"[once run words no]":        {Verdict: Ask, Grant: rule, Words: rule},
	} {
		if got := fmt.Sprint(d.Answers()); got != want {
			t.Errorf("%+v: %s, not %s", d, got, want)
		}
	}
}

// TestKnownVerdictsOfTools decides about tools before they are called.
func TestKnownVerdictsOfTools(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rule := func(text string) Rule {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	touching := func(touch tool.Touch, err error) func(json.RawMessage) (tool.Touch, error) {
		return func(json.RawMessage) (tool.Touch, error) { return touch, err }
	}
	const path = `{"properties":{"path":{"type":"string"}},"required":["path"]}`
	const number = `{"properties":{"path":{"type":"number"}},"required":["path"]}`
	writing := touching(tool.Touch{Writes: []string{sampleName}}, nil)
	for _, c := range []struct {
		name string
		p    Policy
		t    tool.Tool
		want string
	}{
		{"it declares nothing", Policy{}, tool.Tool{}, "ask true"},
		{"it declares nothing, in the mode box", Policy{Mode: ModeBox}, tool.Tool{}, "deny true"},
		{"a rule is about arguments", Policy{Rules: []Rules{{Allow: []Rule{rule("t(a=1)")}}}}, tool.Tool{}, "ask false"},
		{"a rule is about arguments of another", Policy{Rules: []Rules{{Allow: []Rule{rule("u(a=1)")}}}}, tool.Tool{}, "ask true"},
		{"a rule is about all calls", Policy{Rules: []Rules{{Allow: []Rule{rule("t")}}}}, tool.Tool{}, "allow true"},
		{"a rule is about files", Policy{Rules: []Rules{{Deny: []Rule{rule("any read(a)")}}}}, tool.Tool{}, "ask false"},
		{"it says what it touches", Policy{}, tool.Tool{Touches: writing}, "allow false"},
		{"it is denied", Policy{Rules: []Rules{{Deny: []Rule{rule("t")}}}}, tool.Tool{Touches: writing}, "deny true"},
		{"it writes, in the mode plan", Policy{Mode: ModePlan}, tool.Tool{Touches: writing, Schema: json.RawMessage(path)}, "deny true"},
		{"it writes, in the mode ask", Policy{Mode: ModeAsk}, tool.Tool{Touches: writing, Schema: json.RawMessage(path)}, "ask true"},
		{"it writes, in the mode ask, with a rule", Policy{Mode: ModeAsk, Rules: []Rules{{Allow: []Rule{rule("t(a)")}}}},
			tool.Tool{Touches: writing, Schema: json.RawMessage(path)}, "ask false"},
		{"it writes, and a rule allows it", Policy{Mode: ModeAsk, Rules: []Rules{{Allow: []Rule{rule("any write")}}}},
			tool.Tool{Touches: writing, Schema: json.RawMessage(path)}, "allow false"},
		{"its argument is a number", Policy{Mode: ModePlan}, tool.Tool{Touches: writing, Schema: json.RawMessage(number)}, "allow false"},
		{"it has no schema", Policy{Mode: ModePlan}, tool.Tool{Touches: writing}, "allow false"},
		{"it reads", Policy{Mode: ModePlan}, tool.Tool{Touches: touching(tool.Touch{Reads: []string{"a"}}, nil), Schema: json.RawMessage(path)}, "allow false"},
		{"it runs a command", Policy{Mode: ModePlan}, tool.Tool{Touches: touching(tool.Touch{Commands: []string{"rm a"}}, nil), Schema: json.RawMessage(path)}, "deny true"},
		{"it cannot use the arguments", Policy{Mode: ModePlan}, tool.Tool{Touches: touching(tool.Touch{Writes: []string{"a"}}, errors.New("no")), Schema: json.RawMessage(path)}, "allow false"},
	} {
		c.p.Workspace = dir
		c.t.Name = "t"
		if got := pair(c.p.DecideTool(c.t)); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
	p := &Policy{Workspace: dir, Mode: ModePlan, Granted: []Rule{rule("any write")}, Rules: []Rules{{Allow: []Rule{rule("any read")}, Deny: []Rule{rule("t")}}}}
	for _, c := range []struct {
		rule  string
		touch tool.Touch
		err   error
		want  string
	}{
		{"t", tool.Touch{}, nil, "true <nil>"},
		{"u", tool.Touch{}, nil, "false <nil>"},
		{"u(a)", tool.Touch{Writes: []string{"a"}}, nil, "false <nil>"},
		{"t(a)", tool.Touch{Writes: []string{"a"}}, nil, "true <nil>"},
		{"t(b)", tool.Touch{Writes: []string{"a"}}, nil, "false <nil>"},
		{"any write(a)", tool.Touch{Writes: []string{"a"}}, nil, "true <nil>"},
		{"any write(a)", tool.Touch{Reads: []string{"a"}}, nil, "false <nil>"},
		{"any write", tool.Touch{Writes: []string{"a"}}, nil, "true <nil>"},
		{"any write", tool.Touch{Reads: []string{"a"}}, nil, "false <nil>"},
		{"any write(a)", tool.Touch{Commands: []string{"danger $x"}}, nil, "true <nil>"},
		{"any write(a)", tool.Touch{Commands: []string{"danger b"}}, nil, "false <nil>"},
		{"any write(a)", tool.Touch{}, errors.New("no"), "false t: no"},
	} {
		if got := pair(p.MatchesRule(t.Context(), rule(c.rule), tool.Tool{Name: "t", Touches: touching(c.touch, c.err)}, tool.Call{})); got != c.want {
			t.Errorf("%s with %+v: %s, not %s", c.rule, c.touch, got, c.want)
		}
	}
	if p.OnlyReads(tool.Tool{Name: "t", Touches: touching(tool.Touch{}, errors.New("no"))}, nil) || p.OnlyReads(tool.Tool{Name: "t"}, nil) {
		t.Error("a call of which nothing is known only reads")
	}
	d, err := (&Policy{Workspace: dir}).Decide(t.Context(), tool.Tool{Name: "t", Touches: func(args json.RawMessage) (tool.Touch, error) {
		return tool.Touch{Commands: []string{"ls " + string(args)}}, nil
	}}, tool.Call{})
	if err != nil || d.Command != "ls {}" {
		t.Error(d.Command, err)
	}
	if m := Mode("none").Next(); string(m) != Modes[1] {
		t.Error(m)
	}
	if m := Mode(Modes[len(Modes)-1]).Next(); string(m) != Modes[0] {
		t.Error(m)
	}
}

// TestDigestsDiffer makes a change at a time, each of which gives another digest.
func TestDigestsDiffer(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	content := func(name string, scripts bool) string {
		sum := sha256.New()
		found := addContent(sum, filepath.Join(dir, name), scripts)
		return fmt.Sprintf("%t %x", found, sum.Sum(nil))
	}
	put("package.json", `{"scripts":{"a":"b"},"version":"1"}`)
	put("broken.json", `{`)
	var seen []string
	isNew := func(what, digest string) {
		t.Helper()
		if slices.Contains(seen, digest) {
			t.Errorf("%s makes no difference", what)
		}
		seen = append(seen, digest)
	}
	isNew("nothing", fmt.Sprintf("false %x", sha256.New().Sum(nil)))
	isNew("a file that is not there", content("none", false))
	isNew("another one", content("other", true))
	isNew("a directory", content(".", false))
	isNew("a file", content("package.json", false))
	scripts := content("package.json", true)
	isNew("its scripts", scripts)
	isNew("what is no description of a package", content("broken.json", true))
	put("package.json", `{"scripts":{"a":"b"},"version":"2"}`)
	if content("package.json", true) != scripts {
		t.Error("the version is a script")
	}
	put("package.json", `{"scripts":{"a":"c"},"version":"2"}`)
	isNew("another script", content("package.json", true))

	tree := func() string {
		digest, err := DigestTree(filepath.Join(dir, "w", "link"), filepath.Join(dir, "v"))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	put("w/tree/a", "1")
	put("w/beside/b", "1")
	put("elsewhere/c", "1")
	link("tree", "w/link")
	link("w", "v")
	isNew("a tree", tree())
	link("../beside", "w/tree/in")
	isNew("a link into the workspace", tree())
	put("w/beside/b", "2")
	isNew("a file behind it", tree())
	link("../beside", "w/tree/in2")
	isNew("the same link again", tree())
	link("../../elsewhere", "w/tree/out")
	isNew("a link out of it", tree())
	outside := tree()
	put("elsewhere/c", "2")
	if tree() != outside {
		t.Error("what is outside of the workspace is looked at")
	}
	link("nothing", "w/tree/none")
	isNew("a link to nothing", tree())
	link("a", "w/tree/same")
	isNew("a link in the tree", tree())
	if err := os.Chmod(filepath.Join(dir, "w/tree/a"), 0o755); err != nil {
		t.Fatal(err)
	}
	isNew("a right to run a file", tree())
	link("..", "w/tree/around")
	if _, err := DigestTree(filepath.Join(dir, "w", "tree"), filepath.Join(dir, "w")); err == nil || !strings.Contains(err.Error(), "leads to a directory around it") {
		t.Error(err)
	}
	if err := addFile(sha256.New(), filepath.Join(dir, "none"), "none", 1); err == nil {
		t.Error("a file that is not there has a digest")
	}
	if err := addFile(sha256.New(), filepath.Join(dir, "w/tree/a"), "a", largestDigested+1); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Error(err)
	}
	if err := addFile(sha256.New(), filepath.Join(dir, "w/tree/a"), "a", largestDigested); err != nil {
		t.Error(err)
	}
}

// TestNewFilesOfRepositories looks at single files of new repositories.
func TestNewFilesOfRepositories(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"w/.git/worktrees/x", "w/.git/modules/a/b", "w/.git/other/x", "outside/.git/worktrees/x", "w/worktrees/x"} {
		if err := os.MkdirAll(filepath.Join(dir, place), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(dir, "made")
	workspace := filepath.Join(dir, "w")
	write := func(text string) {
		if err := os.WriteFile(made, []byte(strings.ReplaceAll(text, "ROOM", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, text string
		harmless   bool
	}{
		{"hooks/a.sample", "x", true},
		{"hooks/a", "x", false},
		{"a.sample", "x", false},
		{"a/hooks/b.sample", "x", true},
		{"config", "\n[core]\n\n\tbare = false\n", true},
		{"config", strings.Repeat("\n", maxGitFile), true},
		{"config", strings.Repeat("\n", maxGitFile+1), false},
		{"config", "[branch \"a\"]\n\tremote = x::y\n", false},
		{"config", "[branch \"a\"]\n\tmerge = x::y\n", true},
		{"config", "[remote \"a\"]\n\turl = x::y\n", false},
		{"config", "[remote \"a\"]\n\turl = https://x/::y\n", false},
		{"config", "[user]\n\tname = x::y\n", true},
		{"config", "[remote]\n\turl = https://x/y\n", false},
		{"worktrees/x/commondir", "../..\n", true},
		{"worktrees/x/commondir", "../../..\n", false},
		{"other/x/commondir", "../..\n", false},
		{"worktrees/x/y/commondir", "../..\n", false},
		{"worktrees/commondir", "../..\n", false},
		{"worktrees/x/gitdir", "ROOM/w/x/.git\n", true},
		{"worktrees/x/gitdir", "ROOM/w/x/git\n", false},
		{"worktrees/x/gitdir", "ROOM/w/../w/x/.git\n", false},
		{"worktrees/x/gitdir", "ROOM/outside/x/.git\n", false},
		{"worktrees/x/gitdir", "w/x/.git\n", false},
		{"other/x/gitdir", "ROOM/w/x/.git\n", false},
		{"worktrees/x/y/gitdir", "ROOM/w/x/.git\n", false},
		{"worktrees/x/other", "ROOM/w/x/.git\n", false},
	} {
		write(c.text)
		if got := isHarmlessGitFile(workspace, strings.Split(c.path, "/"), made); got != c.harmless {
			t.Errorf("%s with %.40q: %t", c.path, c.text, got)
		}
	}
	for text, points := range map[string]bool{
		"gitdir: ROOM/w/.git/worktrees/x\n":         true,
		"gitdir: ../.git/worktrees/x":               true,
		"gitdir: ../.git/modules/a\n":               true,
		"gitdir: ../.git/modules/a/b\n":             true,
		"gitdir: ../.git/modules\n":                 false,
		"gitdir: ../.git/worktrees\n":               false,
		"gitdir: ../.git/other/x\n":                 false,
		"gitdir: ../.git\n":                         false,
		"gitdir: ../worktrees/x\n":                  false,
		"gitdir: ROOM/outside/.git/worktrees/x\n":   false,
		"gitdir: ROOM/w/.git/../.git/worktrees/x\n": false,
		"gitdir: ../.git/worktrees/none\n":          false,
		"gitdir: \n":                                false,
		"../.git/worktrees/x\n":                     false,
		"":                                          false,
	} {
		write(text)
		if got := pointsToRepository(workspace, filepath.Join(workspace, "new", ".git"), made); got != points {
			t.Errorf("%q: %t", text, got)
		}
	}
	if pointsToRepository(workspace, filepath.Join(workspace, "new", ".git"), filepath.Join(dir, "none")) || pointsToRepository(workspace, filepath.Join(workspace, ".git"), workspace) {
		t.Error("what is no file points to a repository")
	}
}
