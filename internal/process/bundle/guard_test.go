package bundle

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// The adviser's command runs what only reads, as a shell would.
func TestAnalyzeWithCommand(t *testing.T) {
	b := project(t)
	b.commit()
	b.file("order.go", strings.Replace(get(t, filepath.Join(b.work, "order.go")), "return 1", "return 2", 1))
	b.file("-rf.txt", "x\n")
	before := tree(t, b.work)
	for command, part := range map[string]string{
		"git log --oneline":                      " change",
		"git diff --stat":                        "order.go | 2 +-",
		"git show HEAD:main.go":                  "package main",
		"git blame -L 4,4 order.go":              "return 2",
		"grep -rn 'return [12]' order.go":        "4:func order() int { return 2 }",
		`grep -c "func \(order\|main\)" main.go`: "1",
		"grep nothing main.go":                   "(exit code 1)",
		"ls *.go":                                "main.go\norder.go\norder_test.go",
		"ls -1 *.txt":                            "./-rf.txt",
		"wc -l main.go | cut -d ' ' -f 1":        "3",
		"cat main.go | grep -n order | head -1":  "3:func main() { order() }",
		"find . -name '*.go' | sort | tail -2":   "./order_test.go\n./out/made.go",
		"echo 'a|b; $HOME' \"c'd\" e\\ f":        "a|b; $HOME c'd e f",
		"sed -n '3,3p' main.go":                  "func main() { order() }",
		"grep -n /api/v1 main.go":                "(exit code 1)",
	} {
		b.want("oracle", "analyze_with_command", map[string]string{"command": command}, part)
	}
	if diff := cmp.Diff(before, tree(t, b.work)); diff != "" {
		t.Errorf("the project is not what it was:\n%s", diff)
	}
}

// Everything else is refused, and no part of it runs.
func TestAnalyzeRefuses(t *testing.T) {
	b := project(t)
	b.commit()
	outside := filepath.Join(filepath.Dir(b.work), "secret.txt")
	testfile.WriteFile(t, outside, "secret\n")
	if err := os.Symlink(outside, filepath.Join(b.work, "link")); err != nil {
		t.Skip("no links on this system: ", err)
	}
	before := tree(t, b.work)
	for _, command := range []string{
		"rm main.go", "/bin/rm main.go", "touch x", "ls; rm main.go", "ls && rm main.go", "ls || rm main.go", "ls & rm main.go", "ls | rm main.go", "ls |& rm main.go",
		"ls > x", "ls >> x", "cat < main.go", "echo $(rm main.go)", "echo `rm main.go`", "echo \"$(rm main.go)\"", "echo \"`rm main.go`\"", "echo $HOME", "(ls)", "{ ls; }",
		"ls\nrm main.go", "ls\rrm main.go", "bash -c ls", "env ls", "xargs rm", "awk 'BEGIN { system(\"ls\") }'", "perl -e 1", "python3 -c 1", "sudo ls", "tee x", "sed -i s/a/b/ main.go",
		"sed -n '1,2w x' main.go", "sed -n 1p -i main.go", "sed -n 1e main.go", "find . -delete", "find . -exec rm {} +", "find . -fprint x", "find . -execdir ls ;", "sort -o main.go order.go",
		"sort --outp=x main.go", "sort --compress-program=rm main.go", "sort -uox main.go", "uniq main.go x", "tail -f main.go", "tail --follow main.go", "tree -o x", "date -s 0", "date 0101",
		"rg --pre rm x", "file -C -m x", "git commit -m x", "git checkout .", "git branch new", "git tag v1", "git stash", "git push", "git -c core.pager=rm log", "git -C .. log", "git -h",
		"git --git-dir=x log", "git log --output=x", "git diff --outpu=x", "git grep -Orm x", "git grep --open-files-in-pager=rm x", "git diff --ext-diff", "git diff --no-index main.go link", "git config --get x",
		"cat " + outside, "cat ../secret.txt", "cat link", "cat ./link", "grep -r secret ..", "ls /", "ls /etc", "find / -name x", "grep -f" + outside + " main.go", "grep --file=" + outside + " main.go",
		"wc --files0-from=" + outside, "cat .git/config", "diff main.go link", "ls 'unclosed", "ls \\", "", "  ", "| ls", "ls |", "ls | | wc", "! ls", "ls # x", "A=1 ls",
	} {
		text, failed := b.call("oracle", "analyze_with_command", map[string]string{"command": command})
		if !failed || strings.Contains(text, "secret\n") || strings.Contains(text, "unexpected argument") {
			t.Errorf("%q was run: %s", command, text)
		}
	}
	if diff := cmp.Diff(before, tree(t, b.work)); diff != "" {
		t.Errorf("the project is not what it was:\n%s", diff)
	}
}

// Looking at a directory that pretends to be a repository, with settings that name a
// program, runs nothing.
func TestFeignedRepository(t *testing.T) {
	b := newBox(t)
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "objects/info/x": "", "refs/heads/x": "", "a.txt": "order\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch RUN; false\"\n"} {
		b.file(name, text)
	}
	b.git("status", "--short")
	if err := os.Remove(filepath.Join(b.work, "RUN")); err != nil {
		t.Skip("this git does not fall for it: ", err)
	}
	before := tree(t, b.work)
	b.want("oracle", "get_project_info", nil, "kind: unknown", "!git:")
	b.want("explore", "search_content", map[string]string{"pattern": "order"}, "a.txt:1:order")
	b.want("explore", "get_structure", nil, "a.txt")
	b.want("oracle", "analyze_with_command", map[string]string{"command": "git status"}, "(exit code 128)")
	b.refused("code-reviewer", "get_diff", nil, "no git repository")
	if _, errs := b.script("review-gate/scripts/diff.py", `{"initial_prompt": ""}`); !strings.Contains(errs, "no git repository") {
		t.Errorf("got %s", errs)
	}
	b.tidy(before)
}

// fakeSQL is a replacement for usql that prints how it was called.
func fakeSQL(t *testing.T, b *box) {
	t.Helper()
	bin := t.TempDir()
	testfile.WriteFile(t, filepath.Join(bin, "usql"), "#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done\necho\n")
	if err := os.Chmod(filepath.Join(bin, "usql"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.env = []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

func TestSQL(t *testing.T) {
	b := newBox(t)
	fakeSQL(t, b)
	b.refused("sql", "list_tables", nil, "does not name a database")
	b.vars = map[string]string{"dsn": "--help"}
	b.refused("sql", "list_tables", nil, "does not name a database")
	b.vars["dsn"] = "sqlite:a b.db"
	const called = "[-X][-w][-c]"
	b.want("sql", "list_tables", nil, called+`[\dt][sqlite:a b.db]`)
	b.want("sql", "describe_table", map[string]string{"table_name": "shop.orders"}, called+`[\d shop.orders][sqlite:a b.db]`)
	b.want("sql", "write_query", map[string]string{"query": "DELETE FROM a; DROP TABLE b -- all"}, called+"[DELETE FROM a; DROP TABLE b -- all]", "Done.")
	for _, query := range []string{
		"select 1", "SELECT * FROM orders;", " \n\tSelect\nname, updated_at from t where note = 'drop table x; delete' limit 5 ;\n", "with a as (select 1) select * from a",
		`select "delete", "update" from t`, "select `insert` from t", "values (1)", "show tables", "explain select 1", "describe t", "(select 1) union (select 2)",
		"select replace(a, 'x', 'y'), 'it''s' from t", "select json_extract(a, '$.b'), json_extract(a, '$.c') from t", "select t.offset, created_at from [order details]",
	} {
		b.want("sql", "read_query", map[string]string{"query": query}, called+"["+strings.TrimSpace(query[:3]))
	}
	for _, query := range []string{
		"delete from t", "insert into t values (1)", "drop table t", "pragma journal_mode = off", "call p()", "do $$ begin end $$", "vacuum", "", ";", "'select'",
		"select 1; drop table t", "select 1;;", "with a as (delete from t returning *) select * from a", "explain analyze delete from t", "explain analyze select f()", "select * into new from t",
		"select 1 into outfile 'x'", "select * from t for update", "select setval('s', 1)", "select load_extension('x')", "SELECT lo_export(1, '/x')",
		`\! rm x`, `select 1 \g x`, `select 'a\'; drop table t; --'`, "select 1 -- drop", "select 1--1; drop table t", "select /* x */ 1", "select /*!50000 1 */", "select 1 # '\n; drop table t; #'",
		"select $$'$$; drop table t; --'", "select $a$'$a$, 1", "select [a'b]; drop table t; select '1'", "select 'open", `select "open`,
	} {
		text, failed := b.call("sql", "read_query", map[string]string{"query": query})
		if !failed || strings.Contains(text, called) {
			t.Errorf("%q was run: %s", query, text)
		}
	}
	for _, name := range []string{"a; drop table b", `a\! rm`, "a b", "", "$x", "a'"} {
		if text, failed := b.call("sql", "describe_table", map[string]string{"table_name": name}); !failed {
			t.Errorf("%q: %s", name, text)
		}
	}
	b.refused("sql", "write_query", map[string]string{"query": `\! rm x`}, "backslash")
	b.env = []string{"PATH=" + withoutSQL()}
	b.refused("sql", "list_tables", nil, "missing tools: usql")
}

// withoutSQL is the PATH of the test without directories that have usql.
func withoutSQL() string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "usql")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// The demo's tool in both of its languages, against a server of the test.
func TestDemo(t *testing.T) {
	b := newBox(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(`{"ip": "192.0.2.1", "city": "Bergen", "country": "NO", "readme": "https://example.org"}`))
	}))
	defer server.Close()
	if err := os.MkdirAll(filepath.Join(b.agents, "twin"), 0o755); err != nil {
		t.Fatal(err)
	}
	testfile.WriteFile(t, filepath.Join(b.agents, "twin", "tools.sh"), get(t, filepath.Join(b.agents, "demo", "tools.sh.off")))
	for agent, program := range map[string]string{"demo": "python3", "twin": "curl"} {
		testneed.RequirePrograms(t, program)
		b.env = []string{"IPINFO_URL=" + server.URL}
		b.want(agent, "get_ipinfo", nil, "Bergen")
		b.env = []string{"IPINFO_URL=" + server.URL + "/broken"}
		if text, failed := b.call(agent, "get_ipinfo", nil); !failed && !strings.Contains(text, "could not be asked") {
			t.Errorf("%s: %s", agent, text)
		}
	}
}
