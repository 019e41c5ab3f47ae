package permission_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

var update = flag.Bool("update", false, "rewrite the decisions of testdata/decisions with what the code does now")

// TestDecisions compares whole decisions, and so why something asks and not only that it does. Each archive of testdata/decisions is a place of its own, so
// that one guard cannot hide that another is missing: its settings, its rules, its files below shop/, home/, agent/ and outside/, its links, and calls with what is
// decided about them.
//
// A call is a line such as "$ rm x", "read a.txt", "list src", "write a.txt", "call {...}", "host example.com:80", "hides a.txt", "outside",
// "reads $ ls" or "changed a.txt". ⏎ is the end of a line in a command, ROOM the directory around all of them.
func TestDecisions(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob(filepath.Join("testdata", "decisions", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, calls := newRecordedRoom(t, archive)
			var got strings.Builder
			for line := range strings.Lines(string(calls.Data)) {
				if line = strings.TrimSuffix(line, "\n"); line == "" || strings.HasPrefix(line, " ") {
					continue
				}
				got.WriteString(line + "\n" + r.describe(t, line))
			}
			if bytes.Equal([]byte(got.String()), calls.Data) {
				return
			}
			if !*update {
				t.Errorf("other decisions than in %s, at:\n%s", path, firstDifference(got.String(), string(calls.Data)))
				return
			}
			calls.Data = []byte(got.String())
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

// firstDifference returns the calls with other decisions, at most three.
func firstDifference(got, want string) string {
	known := map[string]bool{}
	for _, block := range splitCalls(want) {
		known[block] = true
	}
	var others []string
	for _, block := range splitCalls(got) {
		if !known[block] && len(others) < 3 {
			others = append(others, block)
		}
	}
	return strings.Join(others, "")
}

// splitCalls takes the calls of an archive apart, each with its decision.
func splitCalls(text string) (blocks []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") || len(blocks) == 0 {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += line
	}
	return blocks
}

// A recordedRoom is a place of its own for the calls of an archive.
type recordedRoom struct {
	base   string
	policy permission.Policy
	boxed  bool
}

// newRecordedRoom makes the files of an archive and returns its calls.
func newRecordedRoom(t *testing.T, archive *txtar.Archive) (r recordedRoom, calls *txtar.File) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r = recordedRoom{base: base, policy: permission.Policy{Workspace: filepath.Join(base, "shop"), Home: filepath.Join(base, "home")}}
	for _, dir := range []string{"shop", "home", "agent", "outside"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var settings, links string
	for i, f := range archive.Files {
		text := strings.ReplaceAll(string(f.Data), "ROOM", base)
		switch f.Name {
		case "calls":
			calls = &archive.Files[i]
		case "settings":
			settings = text
		case "links":
			links = text
		case "rules.yaml":
			r.policy.Rules = []permission.Rules{rules(t, text)}
		default:
			path := filepath.Join(base, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, text)
		}
	}
	for line := range strings.Lines(links) {
		name, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		symlink(t, to, filepath.Join(base, name))
	}
	for line := range strings.Lines(settings) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.set(t, name, value)
	}
	return r, calls
}

// set changes the room by one setting.
func (r *recordedRoom) set(t *testing.T, name, value string) {
	t.Helper()
	p := &r.policy
	path := filepath.Join(r.base, value)
	switch name {
	case "mode":
		p.Mode = permission.Mode(value)
	case "home":
		if p.Home = path; value == "none" {
			p.Home = ""
		}
	case "readable":
		p.Readable = append(p.Readable, path)
	case "guarded":
		p.Guarded = append(p.Guarded, path)
	case "code":
		p.Code = append(p.Code, path)
	case "granted":
		rule, err := permission.ParseRule(value)
		if err != nil {
			t.Fatal(err)
		}
		p.Granted = append(p.Granted, rule)
	case "trusted":
		p.Trusted = func(name string) bool { return name == value }
	case "untrusted":
		p.Untrusted = func(name string) bool { return name == value }
	case "box":
		r.boxed = true
		p.Box = &permission.Box{
			Holds: func() bool { return true },
			Hides: func(path string) bool { return strings.HasPrefix(path, filepath.Join(r.base, "outside")) },
		}
	case "env":
		p.Env = append(p.Env, value)
	case "person":
		p.Person = true
	case "executable":
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	case "repository":
		if out, err := exec.Command("git", "init", "-q", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	case "":
	default:
		t.Fatalf("there is no setting %q", name)
	}
}

// A recordedCall is a call of any tool, as "call" in an archive has it.
type recordedCall struct {
	Tool   string
	Effect tool.Effect
	Silent bool // the tool does not declare what it touches
	Touch  tool.Touch
	Args   json.RawMessage
}

// describe returns what is decided about the call of a line.
func (r *recordedRoom) describe(t *testing.T, line string) string {
	t.Helper()
	verb, rest, _ := strings.Cut(strings.ReplaceAll(line, "ROOM", r.base), " ")
	rest = strings.ReplaceAll(rest, "⏎", "\n")
	c := recordedCall{Tool: "execute_command"}
	switch verb {
	case "$":
		c.Touch = tool.Touch{Commands: []string{rest}, Boxes: r.boxed}
	case "read":
		c.Tool, c.Touch = "fs_read", tool.Touch{Reads: []string{rest}}
	case "list":
		c.Tool, c.Touch = "fs_list", tool.Touch{Lists: []string{rest}}
	case "write":
		c.Tool, c.Touch = "fs_write", tool.Touch{Writes: []string{rest}}
	case "call":
		c = recordedCall{}
		if err := json.Unmarshal([]byte(rest), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !slices.Contains([]tool.Effect{"", tool.ReadOnly, tool.Idempotent, tool.Dangerous}, c.Effect) {
			t.Fatalf("%s: there is no effect %q", line, c.Effect)
		}
	case "host":
		name, port, err := net.SplitHostPort(rest)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		return r.print(r.policy.DecideHost("execute_command", name, number))
	case "hides":
		return fmt.Sprintf("  %t\n", r.policy.HiddenFilter("fs_search")(filepath.Join(r.policy.Workspace, rest)))
	case "outside":
		return r.shorten(fmt.Sprintf("  %s\n", strings.Join(r.policy.PlacesOutside("fs_search"), " ")))
	case "reads":
		shell, ok := strings.CutPrefix(rest, "$ ")
		text, err := json.Marshal(map[string]string{"command": shell})
		if err != nil || !ok {
			t.Fatalf("%s: %v", line, err)
		}
		return fmt.Sprintf("  %t\n", r.policy.OnlyReads(shellTool, text))
	case "changed":
		path, made, _ := strings.Cut(rest, " by ")
		return r.shorten("  " + cmp.Or(r.policy.BoxReason(filepath.Join(r.policy.Workspace, path), made), "may be") + "\n")
	default:
		t.Fatalf("%q is no call", line)
	}
	d, err := r.policy.Decide(t.Context(), c.describeTool(), tool.Call{Args: c.Args})
	if err != nil {
		return r.shorten("  error " + err.Error() + "\n")
	}
	return r.print(d)
}

// describeTool returns the tool of a call.
func (c recordedCall) describeTool() tool.Tool {
	tl := tool.Tool{Name: c.Tool, Effect: c.Effect}
	if !c.Silent {
		tl.Touches = func(json.RawMessage) (tool.Touch, error) { return c.Touch, nil }
	}
	return tl
}

// shorten replaces what differs from run to run, and puts a text on one line.
func (r *recordedRoom) shorten(text string) string {
	end := ""
	if strings.HasSuffix(text, "\n") {
		end = "\n"
	}
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "⏎")
	text = strings.NewReplacer(r.base, "ROOM", filepath.Dir(r.base), "ABOVE").Replace(text)
	return digestText.ReplaceAllString(text, "@DIGEST") + end
}

// digestText matches the digest of a rule that is bound to files, whose paths are a part of it.
var digestText = regexp.MustCompile(`@[0-9a-f]{32}`)

// print writes a decision down.
func (r *recordedRoom) print(d permission.Decision) string {
	var b strings.Builder
	line := func(name, format string, a ...any) {
		text := strings.TrimSpace(name + " " + fmt.Sprintf(format, a...))
		b.WriteString(r.shorten("  " + text + "\n"))
	}
	first := []string{d.Verdict.String()}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"boxed", d.Boxed}, {"allowed", d.Allowed}, {"unasked", d.Unasked}, {"lasting", d.Lasting}} {
		if flag.set {
			first = append(first, flag.name)
		}
	}
	line("", "%s: %s", strings.Join(first, " "), d.Does)
	for i, part := range d.Parts {
		text := strings.TrimSpace(part.Text + " " + part.Why)
		if d.Reasons[i] != text {
			text += " != " + d.Reasons[i]
		}
		if by := d.Grounds[i].By; by != permission.ByDefault {
			text = string(by) + ": " + text
		}
		if part.Detail != "" {
			text += " [" + part.Detail + "]"
		}
		line("-", "%s", text)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"risk", d.Risks}, {"grant", d.Grant}, {"words", d.Words}, {"hosts", d.Hosts}} {
		if len(list.items) > 0 {
			line(list.name, "%s", strings.Join(list.items, " | "))
		}
	}
	if d.Verdict == permission.Deny {
		line("model", "%s", d.Model)
	}
	if d.Verdict == permission.Allow {
		for _, g := range d.Grounds {
			line("+", "%s: %s %s", g.By, g.Text, g.Why)
		}
	}
	return b.String()
}

// TestRecordedRoomsAreClean finds rooms in which a pattern asks for another reason than the one that the archive is about: a link out of the workspace makes
// every pattern ask that matches it.
func TestRecordedRoomsAreClean(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "decisions", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		hasLinks := slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return f.Name == "links" })
		if hasLinks != strings.HasPrefix(name, "links") {
			t.Errorf("%s: links are for archives whose names begin with links", path)
		}
		if len(bytes.TrimSpace(archive.Comment)) == 0 {
			t.Errorf("%s does not say what its place is for", path)
		}
	}
}
