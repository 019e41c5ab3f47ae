package permission_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// A shortFlag is a flag of one letter that a program's own help lists.
type shortFlag struct {
	letter string
	valued bool
}

// listFlags returns the flags of one letter that a program's help lists.
func listFlags(t *testing.T, program string) (flags []shortFlag) {
	t.Helper()
	out, err := exec.Command(program, "--help").CombinedOutput()
	if err != nil && len(out) == 0 {
		return nil
	}
	form := regexp.MustCompile(`^\s+-([A-Za-z0-9])(?:[ =]([A-Z]+)|, --[a-z-]+(=[A-Z])?|\s|,)`)
	for line := range strings.Lines(string(out)) {
		if m := form.FindStringSubmatch(line); m != nil {
			flags = append(flags, shortFlag{m[1], m[2] != "" || m[3] != ""})
		}
	}
	return flags
}

// Programs that go through directories count the files below the directory in which they run, whatever flags their help has, alone, joined with others in
// any order, with values joined or not.
func TestJoinedFlagsOfReaders(t *testing.T) {
	r := newRoom(t)
	testfile.WriteFile(t, filepath.Join(r.dir, ".env"), "API=x")
	testfile.WriteFile(t, filepath.Join(r.dir, "sub/.env"), "API=x")
	p := r.policy
	p.Rules = []permission.Rules{rules(t, "deny: [any read(.env), any read(sub/**)]")}
	home := r.policy
	home.Home = r.dir
	testfile.WriteFile(t, filepath.Join(r.dir, ".ssh/id"), "x")
	for _, c := range []struct {
		program, recursive, operand string
		without                     string // letters with which it prints something else
	}{
		{"grep", "r", " API", "Vh"}, {"egrep", "r", " API", "V"}, {"fgrep", "r", " API", "V"}, {"ls", "R", "", ""}, {"du", "", "", ""}, {"du", "a", "", ""}, {"rg", "", " API", "Vh"}, {"tree", "a", "", ""},
	} {
		flags := listFlags(t, c.program)
		if len(flags) == 0 {
			for _, letter := range strings.Split("anhisvuwxl", "") { // of a program that is not installed: common ones
				flags = append(flags, shortFlag{letter, false})
			}
			flags = append(flags, shortFlag{"L", true})
		}
		var texts []string
		add := func(text string) {
			texts = append(texts, c.program+" "+text+c.operand, "cd sub && "+c.program+" "+text+c.operand)
		}
		for i, f := range flags {
			if strings.Contains(c.without, f.letter) && c.program != "grep" {
				continue
			}
			switch {
			case f.valued && c.operand != "" && strings.Contains("ef", f.letter): // they give the pattern: any operand is a file
				texts = append(texts, c.program+" -"+c.recursive+f.letter+"API", c.program+" -n"+c.recursive+f.letter+" API")
				continue
			case f.valued:
				add("-" + c.recursive + f.letter + "1")
				add("-" + c.recursive + f.letter + " 1")
				add("-n" + c.recursive + f.letter + " 1")
			default:
				add("-" + c.recursive + f.letter)
				add("-" + f.letter + c.recursive + "n")
				for j, g := range flags {
					if !g.valued && c.program == "grep" && (i+j)%4 == 0 {
						add("-" + f.letter + g.letter + c.recursive)
					}
				}
			}
			if c.recursive != "" {
				add("-" + c.recursive + " -" + f.letter + map[bool]string{true: " 1"}[f.valued])
			}
		}
		for _, text := range texts {
			for name, policy := range map[string]permission.Policy{"denied": p, "home": home} {
				if d := decide(t, policy, shellTool, args(t, "command", text)); d.Verdict == permission.Allow {
					t.Errorf("%s: %q runs", name, text)
				}
			}
		}
		t.Logf("%s: %d texts", c.program, len(texts))
	}
	for _, text := range []string{"grep -rn API", "grep -rh API", "grep -ri API", "grep -rA1 API", "grep -rnh API", "cd sub && grep -rh API", "grep -rn --include '*' API", "grep -rn --max-count 1 API", "grep -rnm 1 API", "grep -rn -e API",
		"grep -rf.env a.txt", "grep -nf.env a.txt", "grep -rnf .env a.txt", "rg -nu API", "rg -uu --glob '*' API", "rg -A 1 API", "ls -lR", "du -ah", "tree -aL2", "tree -L 2", "ls | xargs grep -rn API"} {
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict == permission.Allow {
			t.Errorf("%q runs", text)
		}
	}
	for _, text := range []string{"grep -rn API src", "grep -rnA 1 API src", "grep -rn --include '*.go' API src", "ls -la", "ls -l", "rg -n API src", "rg -A1 API src", "du -sh src", "du -d 1 src", "tree -L 2 src", "grep -n API a.txt",
		"cat a.txt | grep -n API", "uniq -f 1 a.txt", "xxd -l 16 a.txt", "xxd -s 4 -l 16 a.txt", "date -d yesterday", "date -d '2 days ago' +%F", "head -n 3 a.txt", "cut -d , -f 1 a.txt", "sort -t , -k 2 a.txt", "find src -name '*.go'"} {
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict != permission.Allow {
			t.Errorf("%q asks: %q", text, d.Reasons)
		}
	}
}
