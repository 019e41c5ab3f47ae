package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"raddle.dev/internal/base/gitrepo"
)

// An edge is a call of a small function at its limits, with what it returns, as text.
type edge struct {
	name      string
	got, want any
}

func checkEdges(t *testing.T, edges []edge) {
	t.Helper()
	for _, e := range edges {
		if got, want := fmt.Sprintf("%q", e.got), fmt.Sprintf("%q", e.want); got != want {
			t.Errorf("%s: %s, not %s", e.name, got, want)
		}
	}
}

// pair returns two results as one text.
func pair(a, b any) string { return fmt.Sprint(a, " ", b) }

func TestEdgesOfPatterns(t *testing.T) {
	t.Parallel()
	braces := func(pattern string) string {
		from, to, commas := findBraces(pattern)
		return fmt.Sprint(from, to, commas)
	}
	alternatives := func(pattern string) string {
		all, ok := expandBraces(pattern)
		slices.Sort(all)
		return pair(all, ok)
	}
	checkEdges(t, []edge{
		{"classEnd", classEnd("[a]", 0), 2},
		{"classEnd", classEnd("[]a]", 0), 3},
		{"classEnd", classEnd("[!]a]", 0), 4},
		{"classEnd", classEnd("[^]a]", 0), 4},
		{"classEnd", classEnd("[a!]", 0), 3},
		{"classEnd", classEnd("[", 0), -1},
		{"classEnd", classEnd("[!", 0), -1},
		{"classEnd", classEnd(`[a\]`, 0), -1},
		{"classEnd", classEnd(`[a\]]`, 0), 4},
		{"classEnd", classEnd("[[:alpha:]]", 0), 10},
		{"classEnd", classEnd("[[.a.]]", 0), 6},
		{"classEnd", classEnd("[[=a=]]", 0), 6},
		{"classEnd", classEnd("[[:alpha:]", 0), -1},
		{"classEnd", classEnd("[[a:]]", 0), 4},
		{"classEnd", classEnd("[a:b]", 0), 4},
		{"classEnd", classEnd("[a[:]", 0), 4},
		{"classEnd", classEnd("[a[", 0), -1},
		{"classEnd", classEnd("[a[.]", 0), 4},
		{"classEnd", classEnd("x[a]", 1), 3},
		{"widenClasses", pair(widenClasses("x[ab]y")), "x?y true"},
		{"widenClasses", pair(widenClasses("[ab]")), "? true"},
		{"widenClasses", pair(widenClasses("[]")), `\[] true`},
		{"widenClasses", pair(widenClasses("x[y")), `x\[y true`},
		{"widenClasses", pair(widenClasses("[a/b]")), " false"},
		{"widenClasses", pair(widenClasses(`\[ab]`)), `\[ab] true`},
		{"widenClasses", pair(widenClasses(`a\`)), `a\ true`},
		{"dropEscaped", dropEscaped(`a\*b\\c*`), "abc*"},
		{"dropEscaped", dropEscaped(`\`), ""},
		{"partsOf", partsOf("/a/./b//c"), []string{"a", "b", "c"}},
		{"countWildcards", countWildcards(`/a*/b\*/?/[c]`), 3},
		{"hidesDotFiles", hidesDotFiles([]string{"*"}, []string{".a"}), true},
		{"hidesDotFiles", hidesDotFiles([]string{"?a"}, []string{".a"}), true},
		{"hidesDotFiles", hidesDotFiles([]string{"*"}, []string{"a"}), false},
		{"hidesDotFiles", hidesDotFiles([]string{".*"}, []string{".a"}), false},
		{"hidesDotFiles", hidesDotFiles([]string{"a", "*"}, []string{"a", ".b"}), true},
		{"hidesDotFiles", hidesDotFiles([]string{"*", "a"}, []string{".b"}), false},
		{"findBraces", braces("a{b,c}d"), "1 5 [3]"},
		{"findBraces", braces("{b,{c,d},e}"), "0 10 [2 8]"},
		{"findBraces", braces(`\{a,{b,c}`), "4 8 [6]"},
		{"findBraces", braces("a,b{c}"), "3 5 []"},
		{"findBraces", braces("a{b"), "-1 0 []"},
		{"findBraces", braces("a,b"), "-1 0 []"},
		{"expandBraces", alternatives("{a,b}{c,d}"), "[ac ad bc bd] true"},
		{"expandBraces", alternatives("a{,b}"), "[a ab] true"},
		{"expandBraces", alternatives("{a,{b,c}}x"), "[ax bx cx] true"},
		{"expandBraces", alternatives("plain"), "[plain] true"},
		{"expandBraces", alternatives("{" + strings.Repeat(",", maxAlternatives+1) + "}"), "[] false"},
		{"matchesWildcard", matchesWildcard("a*b*c", "axxbxbxc"), true},
		{"matchesWildcard", matchesWildcard("*ab", "aab"), true},
		{"matchesWildcard", matchesWildcard("a*aab", "aaaab"), true},
		{"matchesWildcard", matchesWildcard("*a", "b"), false},
		{"matchesWildcard", matchesWildcard("a", "ab"), false},
		{"matchesWildcard", matchesWildcard("ab", "a"), false},
		{"matchesWildcard", matchesWildcard("a**", "a"), true},
		{"matchesWildcard", matchesWildcard(`a\*`, "a*"), true},
		{"matchesWildcard", matchesWildcard(`a\*`, "ab"), false},
		{"matchesWildcard", matchesWildcard(`a\`, `a\`), true},
		{"matchesWildcard", matchesWildcard("", ""), true},
		{"matchesWildcard", matchesWildcard("*", ""), true},
		{"isWithin", isWithin("/", "/a", false), true},
		{"isWithin", isWithin("/a", "/ab", false), false},
		{"isWithin", isWithin("/A", "/a/b", true), true},
		{"isWithin", isWithin("/A", "/a/b", false), false},
		{"isDevice", isDevice("/dev/fd/"), false},
		{"isDevice", isDevice("/dev/fd/3x"), false},
		{"isDevice", isDevice("/dev/fd/12"), true},
		{"isDevice", isDevice("/dev/null"), true},
	})
}

func TestEdgesOfNames(t *testing.T) {
	t.Parallel()
	checkEdges(t, []edge{
		{"plainName", plainName("\u200b.\u200fg\u202ai\u202et\u206a\u206f\ufeff"), ".git"},
		{"plainName", plainName(".gi\u2010t"), ".gi\u2010t"},
		{"plainName", plainName(".gi\u2029t"), ".gi\u2029t"},
		{"plainName", plainName(".gi\u202ft"), ".gi\u202ft"},
		{"plainName", plainName(".gi\u2069t"), ".gi\u2069t"},
		{"plainName", plainName(".gi\u2070t"), ".gi\u2070t"},
		{"plainName", plainName(".gi\u200at"), ".gi\u200at"},
		{"plainName", plainName(".GIT. . "), ".git"},
		{"plainName", plainName("a:b"), "a"},
		{"plainName", plainName(":b"), ":b"},
		{"plainName", plainName(".."), ".."},
		{"isShortName", isShortName("git~1", ".git"), true},
		{"isShortName", isShortName("gitmod~1", ".gitmodules"), true},
		{"isShortName", isShortName("gitmo~1", ".gitmodules"), false},
		{"isShortName", isShortName("workfl~1", ".github/workflows"), true},
		{"isShortName", isShortName("pnpmfi~1.cjs", ".pnpmfile.cjs"), true},
		{"isShortName", isShortName("pnpmfi~1", ".pnpmfile.cjs"), false},
		{"isShortName", isShortName("aiderc~1.yml", ".aider.conf.yml"), true},
		{"isShortName", isShortName("openco~1.jso", "opencode.jsonc"), true},
		{"isShortName", isShortName("a~1", "a.b"), false},
		{"isShortName", isShortName("a~1.b", "a.b"), true},
		{"isShortName", isShortName("~1", "x"), false},
		{"isShortName", isShortName("git~", ".git"), false},
		{"isShortName", isShortName("git~x", ".git"), false},
		{"isShortName", isShortName("git", ".git"), false},
		{"codeFileReason", codeFileReason("x.PTH"), "Python runs it"},
		{"codeFileReason", codeFileReason("GITMOD~1"), gitRuns},
		{"codeFileReason", codeFileReason("a~b"), ""},
		{"removeName", removeName("a .git b", ".git"), "a \x00 b"},
		{"removeName", removeName(".git", ".git"), "\x00"},
		{"removeName", removeName("x.git .gitx .git", ".git"), "x.git .gitx \x00"},
		{"removeName", removeName("a/.git .git/b", ".git"), "a/.git .git/b"},
		{"removeName", removeName(".git .git", ".git"), "\x00 \x00"},
		{"mentionsName", mentionsName("a .npmrc", ".npmrc"), true},
		{"mentionsName", mentionsName(".npmrc", ".npmrc"), true},
		{"mentionsName", mentionsName("x.npmrc .npmrc", ".npmrc"), true},
		{"mentionsName", mentionsName("x.npmrc", ".npmrc"), false},
		{"mentionsName", mentionsName("venv", "venv"), false},
		{"mentionsName", mentionsName("venv/x", "venv"), true},
		{"mentionsName", mentionsName("w.git/config", ".git"), true},
		{"mentionsName", mentionsName("w.git/other", ".git"), false},
		{"mentionsName", mentionsName("v.git/config", ".git"), false},
		{"mentionsName", mentionsName("https://w.git/config", ".git"), false},
		{"mentionsName", mentionsName("w.git", ".git"), false},
		{"mentionsName", mentionsName("w.npm/config", ".npm"), false},
		{"isNameByte", strings.Map(func(r rune) rune {
			if isNameByte(byte(r)) {
				return r
			}
			return -1
		}, "/09:@AZ[_`az{-.,"), "09AZ_az-."},
		{"shortenReason", shortenReason(strings.Repeat("a", longestReason)), strings.Repeat("a", longestReason)},
		{"shortenReason", shortenReason(strings.Repeat("a", longestReason+1)), strings.Repeat("a", longestReason) + " ..."},
		{"shortenReason", utf8.ValidString(shortenReason("a" + strings.Repeat("é", longestReason))), true},
		{"pathsIn", len(pathsIn(strings.Repeat("a", longestPath-1))), 1},
		{"pathsIn", len(pathsIn(strings.Repeat("a", longestPath))), 0},
		{"pathsIn", pathsIn("-x"), []string(nil)},
		{"pathsIn", pathsIn("-xa"), []string{"a"}},
		{"pathsIn", pathsIn("--xa"), []string(nil)},
		{"pathsIn", pathsIn("a=b,a"), []string{"a=b,a", "a", "b"}},
		{"pathsIn", pathsIn("file:///a"), []string{"/a", "file", "///a"}},
		{"namesIn", namesIn("", nil, "-abcdefghijklm"), []string{
			"bcdefghijklm", "bcdefghijklm", "cdefghijklm", "defghijklm", "efghijklm", "fghijklm", "ghijklm", "hijklm", "ijklm", "jklm", "klm",
		}},
		{"namesIn", namesIn("/h", nil, "~/x"), []string{"~/x", "~/x", "/h/x", "/h/x"}},
		{"namesIn", namesIn("/h", nil, "~u/x"), []string{"~u/x", "~u/x", "/h/x", "/h/x"}},
		{"namesIn", namesIn("/h", nil, "${HOME}/x"), []string{"${HOME}/x", "HOME", "/x", "${HOME}/x", "/h/x", "/h/x"}},
		{"namesIn", namesIn("", nil, "-ab/cd"), []string{"b/cd", "b/cd", "/cd"}},
		{"namesIn", namesIn("", nil, "-ab=cd"), []string{"b=cd", "cd", "b=cd", "=cd", "cd"}},
		{"namesIn", len(namesIn("", nil, strings.Repeat("a", longestPath-1))), 2},
		{"namesIn", len(namesIn("", nil, strings.Repeat("a", longestPath))), 0},
		{"unquotedSubstitution", unquotedSubstitution("a$"), false},
		{"unescapeDouble", unescapeDouble(`a\$b\`), `a$b\`},
		{"unescapeDouble", unescapeDouble(`a\b\\`), `a\b\`},
		{"unescapeDouble", unescapeDouble("a\\\nb"), "ab"},
		{"quoteWord", quoteWord(""), "''"},
		{"quoteWord", quoteWord("it's"), `'it'\''s'`},
		{"hostsIn", hostsIn("https://a.example:8/x/../y?q", false), [][]string{{"a.example", "a.example:8", "https://a.example:8/y?q"}}},
		{"hostsIn", hostsIn("a.example", true), [][]string{{"a.example", "http://a.example/"}}},
		{"hostsIn", hostsIn("-a", true), [][]string(nil)},
		{"hostsIn", hostsIn("", true), [][]string(nil)},
		{"hostsIn", hostsIn("a.example", false), [][]string(nil)},
	})
}

func TestEdgesOfCounts(t *testing.T) {
	t.Parallel()
	words := func(texts ...string) (list []word) {
		for _, text := range texts {
			list = append(list, literalWord(text))
		}
		return list
	}
	lines := func(texts ...string) string { return pair(seqLines(words(texts...))) }
	maybe := func(texts ...string) word { return word{text: "$x", vague: true, maybe: texts} }
	checkEdges(t, []edge{
		{"seqLines", lines("3"), "3 "},
		{"seqLines", lines("2", "3"), "2 "},
		{"seqLines", lines("5", "-2", "1"), "3 "},
		{"seqLines", lines("5", "2", "1"), "1 "},
		{"seqLines", lines("1", "0.5", "3"), "5 "},
		{"seqLines", lines("1", "0", "3"), "0 " + mayNeverEnd},
		{"seqLines", lines("-f", "%100000g", "3"), "3 "},
		{"seqLines", lines("-f", "%100001g", "3"), "0 " + mayNeverEnd},
		{"seqLines", lines("-f%100000g", "3"), "3 "},
		{"seqLines", lines("-w", "3"), "3 "},
		{"seqLines", lines("-s", "-9", "2", "3"), "2 "},
		{"seqLines", lines("-s"), "1 "},
		{"seqLines", lines(), "1 "},
		{"seqLines", pair(seqLines([]word{maybe("1", "7")})), "7 "},
		{"seqLines", pair(seqLines([]word{literalWord("1"), maybe("1", "-1"), literalWord("9")})), "9 "},
		{"seqLines", pair(seqLines([]word{literalWord("9"), maybe("1", "-1"), literalWord("1")})), "9 "},
		{"seqLines", pair(seqLines([]word{literalWord("1"), maybe("4", "2"), literalWord("9")})), "5 "},
		{"widthOf", widthOf("%09.99s"), 99.0},
		{"widthOf", widthOf("%-12.3f"), 12.0},
		{"widthOf", widthOf("90"), 0.0},
		{"fillsUp", fillsUp("%*s", words("100000")), false},
		{"fillsUp", fillsUp("%*s", words("-100001")), true},
		{"fillsUp", fillsUp("%s", words("100001")), false},
		{"isReplacement", isReplacement(words("sed", "s/a/b/", "x")), true},
		{"isReplacement", isReplacement(words("sed", "-i", "s/a/b/", "x")), false},
		{"isReplacement", isReplacement(words("sed", "w x")), false},
		{"isOnlyText", isOnlyText(words("git", "-m")), false},
		{"isOnlyText", isOnlyText(words("--exclude", "x")), false},
		{"isOnlyText", isOnlyText(words("git", "-m", "x")), true},
		{"isOnlyText", isOnlyText(words("git", "-t", "x")), false},
		{"isOnlyText", isOnlyText(words("gh", "-t", "x")), true},
		{"isOnlyText", isOnlyText(words("x", "--exclude=y")), true},
		{"isOnlyText", isOnlyText(words("x", "--ignore", "y")), false},
		{"beginsWith", beginsWith("list")([]string{"list"}), true},
		{"beginsWith", beginsWith("list")(nil), false},
		{"gitCheck", gitCheck(words("-C", "x")), ""},
		{"gitCheck", gitCheck(words("-C")), "does more than read with -C"},
		{"gitCheck", gitCheck(words("log", "-O")), "does more than read with -O"},
		{"gitCheck", gitCheck(words("log", "--", "--output")), ""},
		{"changesConfig", changesConfig("--"), false},
		{"changesConfig", changesConfig("--a"), true},
		{"testCheck", testCheck(words("]")), ""},
		{"testCheck", testCheck([]word{maybe(), literalWord("]")}), ""},
		{"testCheck", testCheck([]word{literalWord("!"), maybe()}), ""},
		{"testCheck", testCheck([]word{literalWord("!"), literalWord("-n"), maybe(), literalWord("]")}), ""},
		{"testCheck", testCheck([]word{maybe(), maybe()}), unknownArgument},
		{"testCheck", testCheck([]word{maybe(), literalWord("="), maybe()}), ""},
		{"testCheck", testCheck([]word{maybe(), maybe(), maybe()}), unknownArgument},
		{"testCheck", testCheck([]word{maybe(), maybe(), literalWord("x")}), unknownArgument},
		{"runsRelative", runsRelative(nil), false},
		{"runsRelative", runsRelative(words("./x")), true},
		{"filesRun", filesRun(nil), []string(nil)},
		{"filesRun", filesRun([]word{maybe("./x")}), []string(nil)},
		{"filesRun", filesRun(words("gmake", "x")), []string{"GNUmakefile", "makefile", "Makefile"}},
		{"filesRun", filesRun(words("make")), []string{"GNUmakefile", "makefile", "Makefile"}},
		{"filesRun", filesRun(words("./x", "y")), []string{"./x"}},
		{"filesRun", filesRun(words("bin/npm", "y")), []string{"bin/npm", "package.json"}},
		{"filesRun", filesRun(words("python3", "-u", "", "x.py", "d")), []string{"x.py", "d"}},
		{"filesRun", filesRun(append(words("python3"), maybe("x.py"))), []string(nil)},
		{"filesRun", filesRun(words("ls", "x")), []string(nil)},
		{"flagValues", fmt.Sprint(readOnlyRule{}.flagValues("--")), "[] 0"},
		{"flagValues", fmt.Sprint(readOnlyRule{valued: []string{"x"}}.flagValues("--x")), "[] 0"},
		{"flagValues", fmt.Sprint(readOnlyRule{valued: []string{"xy"}}.flagValues("--x")), "[] 1"},
		{"flagValues", fmt.Sprint(readOnlyRule{inputs: []string{"file"}}.flagValues("--file")), "[] 2"},
		{"replacesOperand", readOnlyRule{skipped: "e", values: "m"}.replacesOperand("-me"), false},
		{"replacesOperand", readOnlyRule{skipped: "e", values: "m"}.replacesOperand("-ne"), true},
		{"replacesOperand", readOnlyRule{skipped: "e"}.replacesOperand("e"), false},
	})
}

// TestLimitsOfLinks follows as many links as a path may have, and one more.
func TestLimitsOfLinks(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range linksFollowed + 1 {
		if err := os.Symlink(fmt.Sprint(i+1), filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	at, via, err := resolveVia(filepath.Join(dir, "1"))
	if err != nil || at != filepath.Join(dir, fmt.Sprint(linksFollowed+1)) || len(via) != linksFollowed {
		t.Error(at, via, err)
	}
	all, err := possiblePaths(dir, "0")
	if err == nil || all != nil || !strings.HasSuffix(err.Error(), "leads through too many links") {
		t.Error(all, err)
	}
	if _, err := resolvePath(filepath.Join(dir, "0")); err == nil {
		t.Error("a path may lead through too many links")
	}
	if all, err := possiblePaths(dir, "0/../x"); err == nil {
		t.Error(all)
	}
	if n := (area{workspace: dir}).fileNeed(reading, itself, "0", dir, "0"); n.fallback != Ask || !strings.HasPrefix(n.why, "cannot be looked at (") {
		t.Errorf("%+v", n)
	}
	if at, via, err := resolveVia(dir + "/./100/../x"); err != nil || at != filepath.Join(dir, "x") || !slices.Equal(via, []string{filepath.Join(dir, "x")}) {
		t.Error(at, via, err)
	}
}

// TestUnusablePolicies looks at what each function makes of a workspace that is no absolute path, and of directories
// that cannot be looked at.
func TestUnusablePolicies(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Policy{
		"no workspace":         {},
		"a relative one":       {Workspace: "w"},
		"one that is a loop":   {Workspace: loop},
		"guarded: a loop":      {Workspace: dir, Guarded: []string{loop}},
		"code: a loop, a file": {Workspace: dir, Code: []string{loop, filepath.Join(dir, "x")}},
	} {
		if _, err := p.resolveArea(); err == nil {
			t.Errorf("%s: it can be used", name)
		}
		if why := p.BoxReason(filepath.Join(dir, "x"), ""); !strings.HasPrefix(why, "cannot be judged: ") {
			t.Errorf("%s: BoxReason: %q", name, why)
		}
		if places := p.PlacesOutside("fs_read"); places != nil {
			t.Errorf("%s: PlacesOutside: %q", name, places)
		}
		if hides := p.HiddenFilter("fs_read"); !hides(filepath.Join(dir, "x")) {
			t.Errorf("%s: a search sees files", name)
		}
		if err := p.CheckNarrowed(nil, nil); err == nil {
			t.Errorf("%s: CheckNarrowed takes it", name)
		}
	}
	p := &Policy{Workspace: dir, Guarded: []string{"relative"}, Home: loop}
	if a, err := p.resolveArea(); err != nil || len(a.guarded) != 0 || !a.holdsHome {
		t.Errorf("%+v, %v: a home that cannot be looked at counts as below the workspace, and relative paths name no place", a, err)
	}
	if why := p.BoxReason("relative", ""); why != "is not in the workspace" {
		t.Errorf("%q", why)
	}
}

// TestConsentsThatCannotBeRead looks at directories and files that are no longer what they were.
func TestConsentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	link := filepath.Join(dir, "link")
	for from, to := range map[string]string{loop: "loop", link: "."} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	good := Consents{Path: filepath.Join(dir, "consents.json")}
	broken := Consents{Path: filepath.Join(dir, "broken.json")}
	if err := os.WriteFile(broken.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, look := range map[string]func() error{
		"HasConsent of a loop":          func() error { _, err := good.HasConsent(loop, ""); return err },
		"LookUpConsent of a loop":       func() error { _, _, err := good.LookUpConsent(loop); return err },
		"RecordConsent of a loop":       func() error { return good.RecordConsent(loop, "d") },
		"HasConsent in a broken file":   func() error { _, err := broken.HasConsent(dir, ""); return err },
		"LookUpConsent in one":          func() error { _, _, err := broken.LookUpConsent(dir); return err },
		"RecordConsent in one":          func() error { return broken.RecordConsent(dir, "d") },
		"HasConsent in a directory":     func() error { _, err := (Consents{Path: dir}).HasConsent(dir, ""); return err },
		"RecordConsent below a file":    func() error { return Consents{Path: broken.Path + "/x"}.RecordConsent(dir, "d") },
		"Digest of nothing":             func() error { _, _, err := Digest(filepath.Join(dir, "none")); return err },
		"DigestTree of nothing":         func() error { _, err := DigestTree(filepath.Join(dir, "none"), dir); return err },
		"AddRules to a directory":       func() error { return AddRules(dir, ListAllow, []string{"fs_read"}) },
		"AddRules to what is not rules": func() error { return AddRules(broken.Path, ListAllow, []string{"fs_read"}) },
	} {
		if look() == nil {
			t.Errorf("%s: it has no error", name)
		}
	}
	if text, err := os.ReadFile(broken.Path); err != nil || string(text) != "{" {
		t.Errorf("a broken file was replaced: %q, %v", text, err)
	}
	if err := good.RecordConsent(link, "d"); err != nil {
		t.Fatal(err)
	}
	if known, err := good.HasConsent(dir, "d"); err != nil || !known {
		t.Error("a consent does not follow links: ", known, err)
	}
	if digest, no, err := good.LookUpConsent(link); err != nil || no || digest != "d" {
		t.Error(digest, no, err)
	}
	if known, err := good.HasConsent(filepath.Join(dir, "other"), ""); err != nil || known {
		t.Error("nothing counts as a consent: ", known, err)
	}
}

// What is not known of a directory or of a pattern counts as a match, each alone.
func TestEdgesOfTrees(t *testing.T) {
	t.Parallel()
	other := pathPattern{exact: [][]string{{"other"}}, folded: [][]string{{"other"}}}
	unclear := pathPattern{unclear: true}
	whole := &subtree{paths: []string{"/w/a"}, links: []string{"/w/b"}, whole: true}
	part := &subtree{paths: []string{"/w/a"}, links: []string{"/w/b"}}
	checkEdges(t, []edge{
		{"mayHold: nothing matches", whole.mayHold(other), false},
		{"mayHold: a part was left out", part.mayHold(other), true},
		{"mayHold: the pattern is unclear", whole.mayHold(unclear), true},
		{"leadsTo: nothing matches", whole.leadsTo(other), false},
		{"leadsTo: a part was left out", part.leadsTo(other), true},
	})
}

// A flag that names a directory in all its forms.
func TestEdgesOfTargets(t *testing.T) {
	t.Parallel()
	targets := func(name string, args ...string) (dirs []string) {
		words := make([]word, len(args))
		for i, a := range args {
			words[i] = literalWord(a)
		}
		for _, dir := range targetDirs(name, words) {
			dirs = append(dirs, dir.text)
		}
		return dirs
	}
	none := []string(nil)
	checkEdges(t, []edge{
		{"--", targets("cp", "--", "a", "b"), none},
		{"--t", targets("cp", "--t", "a", "b"), []string{"a"}},
		{"--t=", targets("cp", "--t=a", "b"), []string{"a"}},
		{"--target-directory", targets("mv", "--target-directory", "a", "b"), []string{"a"}},
		{"--target-directory, last", targets("mv", "b", "--target-directory"), none},
		{"--times", targets("cp", "--times", "a"), none},
		{"-t", targets("cp", "-t", "a", "b"), []string{"a"}},
		{"-ta", targets("cp", "-ta", "b"), []string{"a"}},
		{"-rt", targets("cp", "-rt", "a", "b"), []string{"a"}},
		{"-rta=b", targets("cp", "-rta=b", "c"), []string{"a=b"}},
		{"t", targets("cp", "t", "a"), none},
		{"-r", targets("cp", "-r", "a"), none},
		{"rsync", targets("rsync", "-t", "a", "b"), none},
	})
}

// Which settings of a repository name programs. The rows with two conditions hold only if both do.
func TestEdgesOfSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{"submodule.lib.update", "!touch x", true},
		{"submodule.lib.update", " !touch x", true},
		{"submodule.lib.update", "rebase", false},
		{"submodule.lib.url", "!touch x", false},
		{"remote.origin.url", "ext::sh -c touch", true},
		{"remote.origin.url", "https://example.com/x", false},
		{"remote.origin.pushurl", "https://example.com/x", false},
		{"branch.main.url", "ext::sh", false},
		{"diff.tool", "x", true},
		{"merge.tool", "x", true},
		{"alias.st", "status", true},
		{"x.somecommand", "x", true},
		{"x.somecmd", "x", true},
		{"x.somehook", "x", true},
		{"x.vcs", "x", true},
		{"user.name", "x", false},
		{"include.path", "x", false},
		{"includeif.onbranch:x.path", "x", false},
		{"core.fsmonitor", "true", false},
		{"core.fsmonitor", "FALSE", false},
		{"remote.origin.promisor", "true", true},
		{"remote.origin.promisor", "false", false},
	} {
		got := area{workspace: "/w"}.namesProgram(gitrepo.ConfigEntry{Key: c.key, Value: c.value, Scope: "local"})
		if got != c.want {
			t.Errorf("%s = %s: %t", c.key, c.value, got)
		}
	}
}

// Why a need passes that no rule is about, for each kind. A guess of a command says no more than the command.
func TestEdgesOfGrounds(t *testing.T) {
	t.Parallel()
	p := &Policy{Trusted: func(name string) bool { return name == "trusted" }}
	m := matcher{area: area{workspace: "/w"}}
	harmless := "is known to be harmless here"
	for _, c := range []struct {
		n    need
		by   Basis
		want string
	}{
		{need{kind: command}, ByDefault, harmless},
		{need{kind: writing, guess: true}, ByDefault, harmless},
		{need{kind: writing}, ByMode, "may be changed in the mode " + string(ModeEdits)},
		{need{kind: reading, paths: []string{"/w/a"}}, ByDefault, "is read in the workspace"},
		{need{kind: reading, paths: []string{"/w/a"}, guess: true}, ByDefault, "is read in the workspace"},
		{need{kind: reading, paths: []string{"/w/a", "/x"}}, ByDefault, "may be read, although it is not in the workspace"},
		{need{kind: theCall}, ByDefault, "says what it touches, and that needs no question"},
		{need{kind: theCall, opaque: true, changes: true, text: "trusted"}, ByTrust, "belongs to what a person has named or agreed to"},
		{need{kind: theCall, opaque: true, changes: true, text: "other"}, ByDefault, "says that it only reads"},
		{need{kind: theCall, opaque: true, text: "trusted"}, ByDefault, "says that it only reads"},
		{need{kind: network}, ByDefault, "needs no question"},
	} {
		if g := p.groundOfDefault(m, c.n); g.By != c.by || g.Why != c.want {
			t.Errorf("%+v: %v %q, want %v %q", c.n, g.By, g.Why, c.by, c.want)
		}
	}
}

// In a home directory only what is known to lie in a readable place is read without a look at its name, and what is not
// known may be anything.
func TestEdgesOfHomes(t *testing.T) {
	t.Parallel()
	m := matcher{
		tool:     "any_tool",
		home:     "/h",
		area:     area{workspace: "/h", readable: []string{"/h/.agent"}, holdsHome: true},
		patterns: map[string]pathPattern{},
	}
	for _, c := range []struct {
		name string
		n    need
		asks bool
	}{
		{"a readable file", need{kind: reading, paths: []string{"/h/.agent/a"}}, false},
		{"one that is written", need{kind: writing, paths: []string{"/h/.agent/a"}}, true},
		{"one of several that is not readable", need{kind: reading, paths: []string{"/h/.agent/a", "/h/.ssh/a"}}, true},
		{"a name that only the shell knows", need{kind: reading}, true},
		{"a file that is not hidden", need{kind: reading, paths: []string{"/h/a"}}, false},
		{"a guess", need{kind: reading, paths: []string{"/h/.ssh/a"}, guess: true}, false},
		{"what asks already", need{kind: reading, paths: []string{"/h/.ssh/a"}, fallback: Ask}, false},
		{"a command", need{kind: command}, false},
	} {
		if why := m.judgeHome(c.n); (why != "") != c.asks {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// Which arguments of a reader are files: a word that only the shell knows takes the place of one operand, and one that
// may become any number of words takes none for sure.
func TestEdgesOfFileArguments(t *testing.T) {
	t.Parallel()
	unknown := word{text: "$a", vague: true}
	anyNumber := word{text: "$b", splits: true}
	pattern := readOnlyRule{skip: 1}
	args := func(texts ...any) (list []word) {
		for _, text := range texts {
			if w, isWord := text.(word); isWord {
				list = append(list, w)
			} else {
				list = append(list, literalWord(text.(string)))
			}
		}
		return list
	}
	files := func(list []word) string {
		found, named := pattern.fileArguments(list)
		var texts []string
		for _, w := range found {
			texts = append(texts, w.text)
		}
		return fmt.Sprintf("%q %t", texts, named)
	}
	checkEdges(t, []edge{
		{"a pattern", files(args("a")), `[] false`},
		{"a pattern and a file", files(args("a", "b")), `["b"] true`},
		{"an unknown pattern", files(args(unknown)), `["$a"] false`},
		{"an unknown pattern and an unknown file", files(args(unknown, unknown)), `["$a" "$a"] true`},
		{"a pattern and an unknown file", files(args("a", unknown)), `["$a"] true`},
		{"any number of words", files(args(anyNumber, anyNumber)), `["$b" "$b"] false`},
	})
}

// A guarded place that holds the workspace, or the root, is in nearly every text, and so is not looked for.
func TestEdgesOfProtectedTexts(t *testing.T) {
	t.Parallel()
	places := func(guarded, text string) (texts []string) {
		for _, n := range (area{workspace: "/w/x", guarded: []string{guarded}}).protectedTexts([]string{"/w/x"}, text) {
			texts = append(texts, n.text)
		}
		return texts
	}
	none := []string(nil)
	checkEdges(t, []edge{
		{"the root", places("/", "cat /etc/passwd"), none},
		{"what holds the workspace", places("/w", "cat /w/x/a"), none},
		{"the workspace", places("/w/x", "cat /w/x/a"), none},
		{"in the workspace", places("/w/x/a", "cat /w/x/a"), []string{"/w/x/a"}},
		{"in other letters", places("/w/x/a", "cat /W/X/A"), []string{"/w/x/a"}},
		{"outside", places("/rules", "cat '/rules'"), []string{"/rules"}},
		{"not named", places("/rules", "cat /other"), none},
	})
}

// Whose repository it is that git uses: links are followed, and what names another place counts only where git keeps it.
func TestEdgesOfRepositories(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(base, "ws")
	link := filepath.Join(base, "link")
	elsewhere := filepath.Join(base, "elsewhere")
	linked := filepath.Join(elsewhere, "linked")
	for _, dir := range []string{filepath.Join(ws, ".git"), linked} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(ws, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(linked, "gitdir"), []byte(filepath.Join(link, ".git")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	worktree := func(key, origin, value string) []gitrepo.ConfigEntry {
		return []gitrepo.ConfigEntry{{Key: key, Origin: origin, Value: value}}
	}
	config := filepath.Join(elsewhere, "config")
	for name, c := range map[string]struct {
		r    gitrepo.Repository
		want bool
	}{
		"of the workspace":                 {gitrepo.Repository{Top: ws, Dir: filepath.Join(ws, ".git")}, true},
		"through a link":                   {gitrepo.Repository{Top: link, Dir: filepath.Join(link, ".git")}, true},
		"around the workspace":             {gitrepo.Repository{Top: base, Dir: filepath.Join(base, ".git")}, true},
		"without a working tree":           {gitrepo.Repository{Dir: filepath.Join(ws, ".git")}, false},
		"of another place":                 {gitrepo.Repository{Top: elsewhere, Dir: filepath.Join(elsewhere, ".git")}, false},
		"with files elsewhere":             {gitrepo.Repository{Top: ws, Dir: elsewhere}, false},
		"a linked working tree":            {gitrepo.Repository{Top: ws, Dir: linked}, true},
		"a submodule":                      {gitrepo.Repository{Top: ws, Dir: elsewhere, Settings: worktree("core.worktree", config, "../ws")}, true},
		"settings of another file":         {gitrepo.Repository{Top: ws, Dir: elsewhere, Settings: worktree("core.worktree", filepath.Join(base, "other"), ws)}, false},
		"another setting":                  {gitrepo.Repository{Top: ws, Dir: elsewhere, Settings: worktree("core.editor", config, ws)}, false},
		"a submodule of another directory": {gitrepo.Repository{Top: ws, Dir: elsewhere, Settings: worktree("core.worktree", config, base)}, false},
	} {
		if got := (area{workspace: ws}).ownsRepository(&c.r); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
