//go:build unix

package builtin_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	"raddle.dev/internal/base/box"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// callsPerTree is how many calls are made in each tree. With the number of trees below
// that makes more than a thousand scenarios.
const callsPerTree = 15

// TestNothingDeniedIsTouched makes random trees, rules and calls of the shell and of the
// tools of files. What is allowed without a question is really run. Whatever it was, the
// contents of a file that a rule denies never come out, a file that must not be written
// stays as it is, a denied command does not run, and what is outside the workspace is
// neither read nor written. RADDLE_SOAK is the number of trees in place of the usual one, and
// -rapid.seed makes others.
func TestNothingDeniedIsTouched(t *testing.T) {
	made, ran, _ := runScenarios(t, "110", false)
	if made < 1000 || ran < made/10 {
		t.Errorf("%d of %d calls ran: that finds nothing", ran, made)
	}
}

// TestNothingDeniedIsTouchedInTheBox does the same where a box holds: commands of which nothing is known run in it, and may read what no rule denies.
func TestNothingDeniedIsTouchedInTheBox(t *testing.T) {
	made, ran, boxed := runScenarios(t, "40", true)
	if ran < made/4 || boxed < made/10 {
		t.Errorf("of %d calls %d ran, %d of them in the box: that finds nothing", made, ran, boxed)
	}
}

// runScenarios makes trees and calls, and returns how many calls were made, how many of them ran, and how many of these in the box.
func runScenarios(t *testing.T, trees string, withBox bool) (made, ran, boxed int) {
	if more := os.Getenv("RADDLE_SOAK"); more != "" {
		trees = more
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": trees, "rapid.nofailfile": "true"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	programs := dangerous(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newScenario(t, rt, programs)
		if withBox {
			s.openBox(rt)
		}
		for range callsPerTree {
			made++
			if s.call(rt) {
				ran++
			}
		}
		boxed += s.boxed
	})
	t.Logf("%d of %d calls were allowed, and run, %d of them in the box", ran, made, boxed)
	return made, ran, boxed
}

// dangerous is a directory with the command danger, which leaves a mark in that directory.
func dangerous(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "danger"), []byte("#!/bin/sh\n: > "+dir+"/mark\necho DANGER\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A scenario is a tree of files with rules.
type scenario struct {
	t        *testing.T
	base     string // with work and outside in it
	programs string
	host     builtin.Host
	policy   permission.Policy
	files    []string          // relative to the workspace
	dirs     []string          // likewise
	secrets  map[string]string // of each file that a rule denies to read, its text
	fixed    []string          // files that a rule denies to write
	rules    string
	open     bool // a rule allows every command: then commands may leave the workspace
	danger   bool // a rule denies danger
	boxed    int  // calls that ran in the box
}

// openBox lets commands run in a box that hides what the rules deny to read.
func (s *scenario) openBox(rt *rapid.T) {
	private := filepath.Join(s.base, "private")
	if err := os.Mkdir(private, 0o755); err != nil {
		rt.Fatal(err)
	}
	hidden := func() (paths []string) {
		denied := s.policy.HiddenFilter("fs_cat")
		_ = filepath.WalkDir(s.host.Workspace, func(path string, _ fs.DirEntry, _ error) error {
			if path != s.host.Workspace && denied(path) {
				paths = append(paths, path)
			}
			return nil
		})
		return paths
	}
	s.policy.Box = &permission.Box{Holds: func() bool { return true }, Hides: func(path string) bool { return slices.Contains(hidden(), path) }}
	policy := s.policy
	b, err := box.New(box.Spec{Workspace: s.host.Workspace, Private: private, Hidden: hidden, Protected: policy.BoxReason})
	if err != nil {
		s.t.Skipf("no box holds here: %v", err)
	}
	s.host.Box = func() (*box.Box, error) { return b, nil }
}

var (
	dirNames  = []string{"a", "b", "a/b", "a/c", "a/b/c", "secret", "a/secret", "b/x y"}
	fileNames = []string{".env", "key.pem", "KEY.PEM", "x.txt", "s", "-n", "x y", "secret", "a*b", "deep.go"}
	patterns  = []string{"**/.env", "**/*.pem", "secret", "secret/", "secret/**", "a/*/.env", "a/b/**", "{a/b,secret}/**", "*/x.txt", "**/secret/**", "a/**/s", "./b/s",
		"a/[b-c]/*", "**/x y", "b", "a/?/c", "**/k*", ".env", "a//b/s", "**/[!x]*.go", "**/secret"}
	allowed = []string{"", "", "execute_command", "execute_command", "execute_command", "execute_command(*)", "execute_command(cat *)", "execute_command(cp *)", "execute_command(grep *)", "execute_command(find *)",
		"execute_command(sed *)"}
)

func newScenario(t *testing.T, rt *rapid.T, programs string) *scenario {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		rt.Fatal(err)
	}
	base, err = os.MkdirTemp(base, "s")
	if err != nil {
		rt.Fatal(err)
	}
	s := &scenario{t: t, base: base, programs: programs, secrets: map[string]string{}}
	work := filepath.Join(base, "work")
	s.dirs = rapid.SliceOfNDistinct(rapid.SampledFrom(dirNames), 2, 5, rapid.ID).Draw(rt, "dirs")
	for _, dir := range append([]string{""}, s.dirs...) {
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(fileNames), 1, 4, rapid.ID).Draw(rt, "files") {
			file := filepath.Join(dir, name)
			if os.MkdirAll(filepath.Dir(filepath.Join(work, file)), 0o755) != nil {
				continue // a file has the name of the directory
			}
			if os.WriteFile(filepath.Join(work, file), []byte(mark(len(s.files))+"\n"), 0o644) == nil {
				s.files = append(s.files, file)
			}
		}
	}
	s.dirs = slices.DeleteFunc(s.dirs, func(dir string) bool { return !isDirectory(filepath.Join(work, dir)) })
	outside := filepath.Join(base, "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		rt.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "far"), []byte("OUTSIDE\n"), 0o644); err != nil {
		rt.Fatal(err)
	}
	for _, link := range []string{"l1", "a/l2", "out"} {
		to := rapid.SampledFrom(append(slices.Clone(s.files), s.dirs...)).Draw(rt, "link")
		if link == "out" {
			to = "../outside"
		}
		_ = os.Symlink(filepath.Join(work, to), filepath.Join(work, link))
	}
	s.host = builtin.Host{Workspace: work, Timeout: 20 * time.Second, Env: []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + outside, "LC_ALL=C"}}
	s.makeRules(rt)
	return s
}

// mark is the text that a file has and no other one.
func mark(i int) string { return fmt.Sprintf("MARK%03dEND", i) }

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// makeRules draws the rules, and looks up by itself which files they deny.
func (s *scenario) makeRules(rt *rapid.T) {
	var deny []string
	for i := range rapid.IntRange(1, 3).Draw(rt, "rules") {
		facet := rapid.SampledFrom([]string{"read", "read", "write"}).Draw(rt, "facet")
		pattern := rapid.SampledFrom(append(slices.Clone(patterns), s.files[i%len(s.files)])).Draw(rt, "pattern")
		if strings.ContainsAny(pattern, "*") && slices.Contains(s.files, pattern) {
			pattern = strings.ReplaceAll(pattern, "*", `\*`)
		}
		deny = append(deny, "any "+facet+"("+pattern+")")
		for j, file := range s.files {
			switch {
			case !means(pattern, file):
			case facet == "read":
				s.secrets[file] = mark(j)
			default:
				s.fixed = append(s.fixed, file)
			}
		}
	}
	if s.danger = rapid.Bool().Draw(rt, "danger"); s.danger {
		deny = append(deny, "any command(danger *)")
	}
	allow := rapid.SampledFrom(allowed).Draw(rt, "allow")
	s.open = allow == "execute_command" || allow == "execute_command(*)"
	s.rules = "deny: ['" + strings.Join(deny, "', '") + "']\n"
	if allow != "" {
		s.rules += "allow: ['" + allow + "']\n"
	}
	rules, err := permission.LoadRules("rules.yaml", []byte(s.rules))
	if err != nil {
		rt.Fatal(err)
	}
	s.policy = permission.Policy{Rules: []permission.Rules{rules}, Workspace: s.host.Workspace, Home: filepath.Join(s.base, "outside")}
	s.host.Hidden = s.policy.HiddenFilter
}

// means reports whether a pattern matches a file or a directory above it.
func means(pattern, file string) bool {
	pattern = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/"), "//", "/")
	for at := file; at != "."; at = filepath.Dir(at) {
		if ok, err := doublestar.Match(pattern, at); err == nil && ok {
			return true
		}
	}
	return false
}

// call decides on a random call and runs it where it is allowed.
func (s *scenario) call(rt *rapid.T) (ran bool) {
	name, args := "execute_command", object{}
	if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
		name = rapid.SampledFrom([]string{"fs_cat", "fs_read", "fs_ls", "fs_grep", "fs_glob", "fs_write", "fs_patch", "fs_rm", "fs_mkdir"}).Draw(rt, "tool")
		args = object{"path": s.path(rt, rapid.Bool().Draw(rt, "dir")), "contents": "@@\n-x\n+y", "pattern": "*"}
		if name == "fs_grep" {
			args["pattern"] = "."
		}
	} else {
		args["command"] = s.command(rt)
	}
	made := lookup(s.t, s.host, name)
	d, err := s.policy.Decide(s.t.Context(), made, tool.Call{Args: raw(s.t, args)})
	if err != nil || d.Verdict != permission.Allow {
		return false
	}
	before := s.state(rt)
	if d.Boxed {
		s.boxed++
	}
	result, err := made.Run(s.t.Context(), tool.Call{Args: raw(s.t, args), Permit: &tool.Permit{Allowed: d.Allowed, Unasked: d.Unasked, Boxed: d.Boxed, Hosts: d.Hosts}})
	output := fmt.Sprint(result, err)
	if strings.Contains(output, "timed out") {
		rt.Errorf("%s %v does not end", name, args)
	}
	say := func(format string, a ...any) {
		rt.Errorf("%s %v\n%s%s\n%s", name, args, s.rules, fmt.Sprintf(format, a...), output)
	}
	for file, secret := range s.secrets {
		if strings.Contains(output, secret) {
			say("it read %s", file)
		}
	}
	if _, err := os.Stat(filepath.Join(s.programs, "mark")); err == nil {
		_ = os.Remove(filepath.Join(s.programs, "mark"))
		if s.danger || !s.open {
			say("it ran danger")
		}
	}
	after := s.state(rt)
	for _, file := range s.fixed {
		if before["work/"+file] != after["work/"+file] {
			say("it wrote %s", file)
		}
	}
	if !s.open && !d.Boxed && (strings.Contains(output, "OUTSIDE") || strings.Contains(output, "far\n")) {
		say("it read outside the workspace")
	}
	for _, file := range []string{"outside", "outside/far", "outside/new"} {
		if !s.open && before[file] != after[file] {
			say("it wrote %s", file)
		}
	}
	return true
}

// state is what is in the tree: of each file its text and mode.
func (s *scenario) state(rt *rapid.T) map[string]string {
	state := map[string]string{}
	err := filepath.WalkDir(s.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if path == filepath.Join(s.base, "private") {
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(s.base, path)
		if d.IsDir() {
			entries, _ := os.ReadDir(path)
			state[rel] = fmt.Sprint(len(entries))
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		text, _ := os.ReadFile(path)
		state[rel] = info.Mode().String() + string(text)
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	return state
}

// path draws the path of something, in one of many spellings.
func (s *scenario) path(rt *rapid.T, dir bool) string {
	list := s.files
	if dir && len(s.dirs) > 0 {
		list = s.dirs
	} else if denied := slices.Sorted(maps.Keys(s.secrets)); len(denied) > 0 && rapid.Bool().Draw(rt, "denied") {
		list = append(denied, s.fixed...)
	}
	p := rapid.SampledFrom(append([]string{"l1", "a/l2", "."}, list...)).Draw(rt, "path")
	switch rapid.IntRange(0, 9).Draw(rt, "spelling") {
	case 0:
		return "./" + p
	case 1:
		return filepath.Join(s.host.Workspace, p)
	case 2:
		return strings.ReplaceAll(p, "/", "//")
	case 3:
		return "../work/" + p
	case 4:
		return "a/../" + p
	case 5:
		return rapid.SampledFrom([]string{"../outside/far", "out/far", "out", "..", "~/far", "../outside/new"}).Draw(rt, "far")
	}
	return p
}

// word draws a word of the shell that means a path.
func (s *scenario) word(rt *rapid.T, dir bool) string {
	p := s.path(rt, dir)
	if strings.HasPrefix(p, "~") {
		return p
	}
	quoted := "'" + p + "'"
	switch rapid.IntRange(0, 9).Draw(rt, "quoting") {
	case 0:
		if i := strings.LastIndexAny(p, "abcdeknstxy."); i > 0 && !strings.ContainsAny(p, " *") {
			return p[:i] + rapid.SampledFrom([]string{"?", "*", "[!q]", "[a-z.]", "{" + p[i:i+1] + ",q}"}).Draw(rt, "glob") + p[i+1:]
		}
	case 1:
		return `"$PWD"/` + quoted
	case 2:
		return quoted + "/" + rapid.SampledFrom([]string{"*", ".*", ".e*", "*/*", "?*", "[.k]*"}).Draw(rt, "below")
	case 3:
		return "$'" + p + "'"
	case 4:
		if len(p) > 1 {
			return "'" + p[:1] + "'\"" + p[1:] + "\""
		}
	}
	return quoted
}

// commands are shell texts: F means a file, D for a directory, N for the name of a
// file alone.
var commands = strings.Split(strings.TrimSpace(`
cat F
cat F F
head -n 3 F; tail -n 3 F
cat -- F
cat < F
x=$(< F); echo "$x"
while read -r l; do echo "$l"; done < F
grep -r . D
grep -rn '' D F
grep -h '' D/* D/.*
cd D && grep -r .
cd D; cat N
(cd D && cat N) && cat N
pushd D; cat N; popd; cat N
grep F -e M
grep -f F F
find D -type f -exec cat {} +
find D -type f -exec grep . {} \;
find D -name 's*' -exec cat {} \;
find D -type f | xargs cat
find D -type f -print0 | xargs -0 grep .
find D -delete
cat $(find D -type f)
for f in D/* D/.*; do cat "$f"; done
for f in D/*; do echo "$f"; done; cat D/*
sed -n 1,5p F
sed s/M/m/ F
sed -i s/M/m/ F
sed 'r F' F
awk 1 F
awk 'BEGIN{while((getline l < "N") > 0) print l}'
sort F F | uniq
diff D D
diff -r D D
paste F F; cut -c1- F; nl F
tar cf - F D | cat
tar cf x.tar D && tar xOf x.tar
tar -C D -cf - .
printf 'N\n' > list && tar cf - -T list
cp F new && cat new
cp -r D new && grep -r . new
cp F D
mv F new && cat new
mv D new && cat new/*
ln -s "$PWD" new && cat new/N
ln F new && cat new
ln -s F new; cat new
dd if=F 2>/dev/null
dd if=/dev/null of=F
python3 -c 'print(open("N").read())'
perl -pe 1 F
perl -e 'open(F, "N"); print <F>'
sh -c 'cat N'
bash -c "cat F"
echo 'cat N' | sh
sh <<< 'cat N'
eval cat F
eval 'cat N'
env cat F
env -C D cat N
timeout 5 cat F
nohup cat F
xargs cat <<< N
xargs -a list cat
f() { cat "$1"; }; f F
alias c=cat; c F
cat <(cat F)
tee new < F && cat new
x=N; cat $x
x=N; cat "$x"
cat $(echo N)
cat /proc/self/cwd/N
cat D/../N
cat D//N
cat D/{N,s,.env}
cat {N,s}
git diff --no-index D D
git grep --no-index . D
zip -q -0 -r - D | cat
trap 'cat F' EXIT
exec 3< F; cat <&3
mapfile -t a < F; echo "${a[@]}"
printf '%s' "$(cat F)"
. F
source F
. F 2>&1
make -f F
ls -R D; ls F
echo D/* F
test -f F && cat F
[ -r F ] && echo yes
echo x > F
echo x >> F
: > F
echo x > D/N
tee F < /dev/null
touch F; chmod 600 F
rm -f F
rm -rf D
cp N F
mv N F
cp -r D D
truncate -s 0 F
mkdir -p F D/new
ln -sf N F
find D -type f -exec sh -c 'echo x > "$1"' sh {} \;
python3 -c 'open("N", "w")'
echo x > ~/new
cp N ../outside/new
danger
danger F
\danger
'dan'ger
sh -c danger
sh -c "danger; ls"
env A=b danger
echo danger | sh
echo | xargs danger
find . -maxdepth 0 -exec danger \;
$(echo danger)
x=danger; $x
eval dan'ger'
perl -e 'system("danger")'
awk 'BEGIN{system("danger")}'
python3 -c 'import os; os.system("danger")'
flock . danger
nohup timeout 3 danger
command danger
f() { danger; }; f
alias x=danger
bash -c 'bash -c danger'
xargs -I{} sh -c {} <<< danger
"$(command -v danger)"
ls; ls D
wc F; stat F
git status
`), "\n")

// boxCommands run what no analysis sees.
var boxCommands = strings.Split(strings.TrimSpace(`
printf 'cat N\n' > job; sh job
printf 'echo x > N\n' > job; sh job
printf 'rm -f N; mv job N\n' > job; sh job
printf 'for f in D/* D/.*; do cat "$f"; echo x > "$f"; done\n' > job; sh ./job
printf 'all:\n\tcat N; echo x > N\n' > Makefile; make -s
printf 'echo x > ../outside/far; cat ../outside/far\n' > job; sh job
sh job
make -s
awk 'BEGIN { while ((getline l < "N") > 0) print l; print "x" > "N" }'
python3 -c 'import os; os.rename("N", "moved"); print(open("moved").read())'
python3 -c 'import shutil; shutil.rmtree("D", True)'
python3 -c 'import os; os.symlink("N", "link"); print(open("link").read())'
printf '#!/bin/sh\ncat N > copy; chmod 777 N; : > N\n' > job; chmod +x job; ./job; cat copy
printf 'cp -r D copy; rm -rf D; mv copy D\n' > job; sh job; sh job
printf 'cd D && mv N .. ; cat ../N; ln -f ../N N\n' > job; sh job
printf 'exec 3<>N; cat <&3; echo x >&3\n' > job; sh job
printf 'mkdir -p new; mount --bind D new; cat new/N; umount D; rmdir D\n' > job; sh job
printf 'mv D moved && mkdir D && cp moved/N D; grep -r . moved D\n' > job; sh job
`), "\n")

func (s *scenario) command(rt *rapid.T) string {
	list := commands
	if s.host.Box != nil && !s.open && rapid.Bool().Draw(rt, "unseen") {
		list = boxCommands
	}
	text := rapid.SampledFrom(list).Draw(rt, "command")
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		alone := (i == 0 || !isLetter(text[i-1])) && (i+1 == len(text) || !isLetter(text[i+1]))
		switch c := text[i]; {
		case alone && c == 'F' && !strings.HasPrefix(text, "perl -e"):
			b.WriteString(s.word(rt, rapid.IntRange(0, 4).Draw(rt, "odd") == 0))
		case alone && c == 'D':
			b.WriteString(s.word(rt, rapid.IntRange(0, 4).Draw(rt, "odd") > 0))
		case alone && c == 'N':
			name := rapid.SampledFrom(s.files).Draw(rt, "name")
			if strings.ContainsAny(name, " *") {
				name = ".env"
			}
			b.WriteString(name)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$'
}

// TestScenariosFindHoles makes sure that the scenarios find something: with rules that nothing
// applies they do.
func TestScenariosFindHoles(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("bash is needed")
	}
	for _, c := range []struct{ text, wants string }{{"cat a/.env", mark(0)}, {"grep -r . a", mark(0)}, {"danger", "DANGER"}} {
		programs := dangerous(t)
		h := place(t, map[string]string{"a/.env": mark(0) + "\n"})
		h.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH")}
		if got := use(t, h, "execute_command", object{"command": c.text}); !strings.Contains(got, c.wants) {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}
