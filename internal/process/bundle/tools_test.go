package bundle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
	"raddle.dev/tool/script"
)

// A box calls tools of installed agents as a run does: each call is a process.
type box struct {
	t      *testing.T
	agents string
	config string            // "": the directory above agents
	work   string            // the user's directory
	env    []string          // in addition to PATH and HOME
	vars   map[string]string // of the agent
}

func newBox(t *testing.T) *box {
	t.Helper()
	testneed.RequirePrograms(t, "bash", "git")
	b := &box{t: t, agents: filepath.Join(t.TempDir(), "agents"), work: t.TempDir()}
	install(t, b.agents, Options{})
	return b
}

// file writes a file of the project.
func (b *box) file(name, text string) {
	b.t.Helper()
	testfile.WriteFile(b.t, filepath.Join(b.work, filepath.FromSlash(name)), text)
}

// git runs git in the project, with a neutral author.
func (b *box) git(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = b.work
	cmd.Env = append(os.Environ(), "HOME="+b.agents, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit creates a repository for the project, or adds to it.
func (b *box) commit() string {
	b.t.Helper()
	if _, err := os.Stat(filepath.Join(b.work, ".git")); err != nil {
		b.git("init", "-q", "-b", "main")
	}
	b.git("add", "-A")
	b.git("commit", "-q", "-m", "change")
	return b.git("rev-parse", "HEAD")
}

// call calls a tool and returns what a model would read.
func (b *box) call(agent, name string, args map[string]string) (text string, failed bool) {
	b.t.Helper()
	config := b.config
	if config == "" {
		config = filepath.Dir(b.agents)
	}
	h := &script.Host{Config: config, Workspace: b.work,
		Env:   append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.agents, "GIT_CONFIG_NOSYSTEM=1"}, b.env...),
		Agent: &script.Agent{Name: agent, Dir: filepath.Join(b.agents, agent), Variables: b.vars}}
	tools, problems := h.OwnTools()
	for _, p := range problems {
		b.t.Error(p)
	}
	if args == nil {
		args = map[string]string{}
	}
	text = "there is no such tool"
	for _, t := range tools {
		if t.Name != name {
			continue
		}
		raw, err := json.Marshal(args)
		if err != nil {
			b.t.Fatal(err)
		}
		r, err := t.Run(b.t.Context(), tool.Call{ID: "c", Args: raw})
		if err != nil {
			b.t.Fatal(err)
		}
		return said(r), r.Error
	}
	b.t.Fatalf("%s: %s", name, text)
	return "", true
}

// said returns the text of a result.
func said(r tool.Result) string {
	var object struct{ Output, Stderr, Stdout string }
	if err := json.Unmarshal([]byte(r.Text()), &object); err == nil && object.Output+object.Stderr+object.Stdout != "" {
		return strings.TrimRight(object.Output+object.Stderr+object.Stdout, "\n")
	}
	return r.Text()
}

// want calls a tool whose result contains all of these and none that begins with "!".
func (b *box) want(agent, name string, args map[string]string, parts ...string) {
	b.t.Helper()
	text, failed := b.call(agent, name, args)
	if failed {
		b.t.Errorf("%s %s %v failed: %s", agent, name, args, text)
	}
	for _, part := range parts {
		if not, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(text, strings.TrimPrefix(not, "!")) {
			b.t.Errorf("%s %s %v: %q in\n%s", agent, name, args, part, text)
		}
	}
}

// refused calls a tool that must fail with a text.
func (b *box) refused(agent, name string, args map[string]string, part string) {
	b.t.Helper()
	if text, failed := b.call(agent, name, args); !failed || !strings.Contains(text, part) {
		b.t.Errorf("%s %s %v: %v, want %q: %s", agent, name, args, failed, part, text)
	}
}

// project writes a small project in Go that also contains foreign files.
func project(t *testing.T) *box {
	t.Helper()
	b := newBox(t)
	b.file("go.mod", "module example.com/shop\n\ngo 1.26\n")
	b.file("README.md", "# Shop\n")
	b.file("main.go", "package main\n\nfunc main() { order() }\n")
	b.file("order.go", "package main\n\n// order takes an order.\nfunc order() int { return 1 }\n")
	b.file("order_test.go", "package main\n\nimport \"testing\"\n\nfunc TestOrder(t *testing.T) {\n\tif order() != 1 {\n\t\tt.Error(\"no order\")\n\t}\n}\n")
	b.file("deep/a/b/c/far.go", "package c\n")
	b.file(".gitignore", "out/\n")
	b.file("out/made.go", "package out // order\n")
	return b
}

// tidy checks that tools have left nothing behind in the project.
func (b *box) tidy(before map[string]string) {
	b.t.Helper()
	after := tree(b.t, b.work)
	for name := range after {
		if _, ok := before[name]; !ok {
			b.t.Errorf("%s was left behind", name)
		}
	}
}

func TestReadingTools(t *testing.T) {
	for _, repository := range []bool{true, false} {
		b := project(t)
		ignored := "out/"
		if repository {
			b.commit()
		} else {
			ignored = "there is no list of what to ignore"
		}
		before := tree(t, b.work)
		for _, agent := range []string{"explore", "file-reviewer"} {
			b.want(agent, "get_structure", nil, "deep/ (1 file)", "main.go", "!far.go", "!"+ignored, "!.git/")
		}
		b.want("coder", "get_project_structure", nil, "kind: go", "test: go test ./...", "to read: README.md", "order_test.go")
		b.want("oracle", "get_project_info", nil, "kind: go", "build: go build ./...", "check: go vet ./...", ".go ")
		if repository {
			b.want("sisyphus", "get_project_info", nil, "git: branch main, 0 changed files")
		}
		b.want("explore", "search_files", map[string]string{"pattern": "ORDER"}, "order.go\norder_test.go")
		b.want("explore", "search_files", map[string]string{"pattern": "*_test.go"}, "order_test.go", "!main.go")
		b.want("explore", "search_files", map[string]string{"pattern": "deep/**/*.go"}, "deep/a/b/c/far.go", "!order")
		b.want("explore", "search_files", map[string]string{"pattern": "deep/*.go"}, "No file fits.")
		b.want("explore", "search_content", map[string]string{"pattern": `^func (order|main)\(`}, "main.go:3:func main", "order.go:4:func order", "!"+ignored)
		b.want("explore", "search_content", map[string]string{"pattern": "order", "file_type": "md"}, "Nothing matches.")
		b.want("oracle", "search_code", map[string]string{"pattern": "order", "file_type": "*_test.go"}, "order_test.go:6:", "!main.go")
		b.want("coder", "search_code", map[string]string{"pattern": "no order"}, "order_test.go:7:")
		b.refused("coder", "search_code", map[string]string{"pattern": "a("}, "no extended regular expression")
		b.want("coder", "read_file", map[string]string{"path": "main.go"}, "1: package main\n2: \n3: func main")
		b.want("explore", "read_file", map[string]string{"path": "./main.go", "lines": "3-9"}, "3: func main", "!1: ")
		b.want("explore", "read_file", map[string]string{"path": "main.go", "lines": "1"}, "1: package main\n[lines 1 to 1 of 3]")
		b.want("explore", "read_file", map[string]string{"path": "main.go", "lines": "90-"}, "has only 3 lines")
		b.refused("explore", "read_file", map[string]string{"path": "main.go", "lines": "all"}, "write a line such as 20")
		b.want("oracle", "read_file", map[string]string{"path": filepath.Join(b.work, "go.mod")}, "1: module")
		b.want("oracle", "list_directory", nil, "deep/", "go.mod")
		b.want("oracle", "list_directory", map[string]string{"path": "deep/a"}, "b/")
		b.want("coder", "find_similar_files", map[string]string{"path": "basket_test.go"}, "order_test.go\n")
		b.want("explore", "find_similar", map[string]string{"path": "order.go"}, "order_test.go", "main.go", "!README")
		b.want("explore", "find_similar", map[string]string{"path": "x.zig"}, "no file like it")
		b.tidy(before)
	}
}

// Tools cannot reach what lies outside the project, or what belongs to git: not by its
// path, through links, or through directories that do not exist.
func TestToolsStayInTheProject(t *testing.T) {
	b := project(t)
	b.commit()
	outside := filepath.Join(filepath.Dir(b.work), "secret.txt")
	testfile.WriteFile(t, outside, "secret\n")
	for link, to := range map[string]string{"link.txt": outside, "above": "..", "chain.txt": "link.txt", "dangling": "../new.txt", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(b.work, link)); err != nil {
			t.Skip("no links on this system: ", err)
		}
	}
	for _, path := range []string{outside, "../secret.txt", "link.txt", "chain.txt", "above/secret.txt", "deep/../../secret.txt", "none/../../secret.txt", "loop",
		".git/config", ".GIT/config", "deep/../.git/config", "", "/", "..", filepath.Join(b.work, "..", "secret.txt")} {
		for _, c := range []struct{ agent, tool, more string }{{"coder", "read_file", ""}, {"explore", "read_file", "lines"}, {"oracle", "read_file", ""},
			{"coder", "write_file", "content"}, {"oracle", "list_directory", ""}} {
			args := map[string]string{"path": path}
			if c.more != "" {
				args[c.more] = "1"
			}
			text, failed := b.call(c.agent, c.tool, args)
			if path == "" && c.tool == "list_directory" {
				continue // that is the project
			}
			if !failed || strings.Contains(text, "secret\n") || strings.Contains(text, "unexpected argument") {
				t.Errorf("%s %s %q: %s", c.agent, c.tool, path, text)
			}
		}
	}
	if get(t, outside) != "secret\n" {
		t.Error("a file outside was changed")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.work), "new.txt")); err == nil {
		t.Error("a file outside was made")
	}
	b.refused("coder", "write_file", map[string]string{"path": "deep", "content": "x"}, "is a directory")
	b.vars = map[string]string{"project_dir": "deep"}
	b.want("explore", "search_files", map[string]string{"pattern": "*.go"}, "a/b/c/far.go", "!main.go")
	b.refused("explore", "read_file", map[string]string{"path": "../main.go"}, "outside the project")
	b.vars["project_dir"] = "nowhere"
	b.refused("explore", "get_structure", nil, "set the agent's variable project_dir")
}

// A copy of an agent works in any place: it finds what the scripts share in
// the agents directory.
func TestCopiedAgents(t *testing.T) {
	b := project(t)
	b.commit()
	b.config = t.TempDir()
	if err := os.Mkdir(filepath.Join(b.config, "agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.agents, shared), filepath.Join(b.config, "agents", shared)); err != nil {
		t.Fatal(err)
	}
	b.want("coder", "search_code", map[string]string{"pattern": "no order"}, "order_test.go:7:")
	b.want("explore", "get_structure", nil, "main.go")
	b.want("oracle", "get_project_info", nil, "kind: go")
	b.want("sisyphus", "get_project_info", nil, "kind: go")
	b.want("file-reviewer", "get_structure", nil, "main.go")
	b.want("code-reviewer", "get_changed_files", nil, "main.go")
}

func TestWriteFile(t *testing.T) {
	b := newBox(t)
	for _, content := range []string{"", "one\ntwo", "trailing\n\n", "-n $HOME `x` 'q' \"d\" \\ %s é\r\n\t"} {
		b.want("coder", "write_file", map[string]string{"path": "new/dir/file.txt", "content": content}, "Written: new/dir/file.txt")
		if got := get(t, filepath.Join(b.work, "new/dir/file.txt")); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
}

// The project's own commands run, their failures are reported with their
// output, and long outputs keep their beginning and their end.
func TestBuildAndTest(t *testing.T) {
	b := newBox(t)
	testneed.RequirePrograms(t, "make")
	b.refusedNothing("coder", "verify_build", "no known command to check it")
	b.refusedNothing("sisyphus", "run_tests", "no known command to test it")
	b.file("Makefile", "all:\n\t@echo built in $$CI\ncheck:\n\t@echo checked\ntest:\n\t@echo \"FAIL: one is not two\"; exit 3\n")
	b.want("coder", "verify_build", nil, "checked\nOK: make check")
	b.want("sisyphus", "run_build", nil, "built in 1\nOK: make all")
	for _, agent := range []string{"coder", "sisyphus"} {
		b.refused(agent, "run_tests", nil, "FAIL: one is not two")
		b.refused(agent, "run_tests", nil, "FAILED with exit code 2: make test")
	}
	b.file("Makefile", "test:\n\t@i=0; while [ $$i -lt 900 ]; do i=$$((i+1)); echo line $$i; done\n")
	b.want("coder", "run_tests", nil, "line 1\n", "line 100\n[500 lines are left out]\nline 601\n", "line 900\nOK: make test")
}

func (b *box) refusedNothing(agent, tool, part string) {
	b.t.Helper()
	b.want(agent, tool, nil, part)
}

// Each kind of project is recognized by its files.
func TestKindsOfProjects(t *testing.T) {
	for name, c := range map[string]struct {
		files             map[string]string
		kind, build, test string
		check             string
	}{
		"nothing": {nil, "unknown", "none known", "none known", "none known"},
		"rust":    {map[string]string{"Cargo.toml": "", "Makefile": "test:\n"}, "rust", "cargo build", "cargo test", "cargo check --all-targets"},
		"go":      {map[string]string{"go.mod": "", "package.json": "{}"}, "go", "go build ./...", "go test ./...", "go vet ./..."},
		"deno":    {map[string]string{"deno.jsonc": ""}, "deno", "none known", "deno test", "deno check ."},
		"npm": {map[string]string{"package.json": "{\n \"name\": \"test\",\n \"scripts\": {\n  \"build\": \"tsc\",\n  \"test\": \"node --test\"\n }\n}"},
			"node (npm)", "npm run build", "npm run test", "none known"},
		"pnpm": {map[string]string{"package.json": `{"scripts":{"typecheck":"tsc"}, "devDependencies": {"build": "1"}}`, "pnpm-lock.yaml": ""},
			"node (pnpm)", "none known", "none known", "pnpm run typecheck"},
		"yarn":     {map[string]string{"package.json": "{}", "yarn.lock": "", "tsconfig.json": ""}, "node (yarn)", "none known", "none known", "npx --no-install tsc --noEmit"},
		"pytest":   {map[string]string{"pyproject.toml": "[tool.pytest]\n[tool.ruff.lint]\n", "uv.lock": ""}, "python", "none known", "uv run python3 -m pytest", "uv run ruff check ."},
		"unittest": {map[string]string{"setup.py": ""}, "python", "none known", "python3 -m unittest", "find . -name '*.py'"},
		"maven":    {map[string]string{"pom.xml": "", "mvnw": ""}, "maven", "sh ./mvnw -q -B compile", "sh ./mvnw -q -B test", "sh ./mvnw -q -B test-compile"},
		"gradle":   {map[string]string{"build.gradle.kts": ""}, "gradle", "gradle assemble", "gradle test", "gradle testClasses"},
		"dotnet":   {map[string]string{"a b.sln": ""}, "dotnet", "dotnet build", "dotnet test", "none known"},
		"cmake":    {map[string]string{"CMakeLists.txt": ""}, "cmake", "cmake -S . -B build && cmake --build build", "ctest --test-dir build --output-on-failure", "none known"},
		"ruby":     {map[string]string{"Gemfile": "", "spec/a_spec.rb": ""}, "ruby", "none known", "bundle exec rspec", "none known"},
		"elixir":   {map[string]string{"mix.exs": ""}, "elixir", "mix compile", "mix test", "mix compile --warnings-as-errors"},
		"php":      {map[string]string{"composer.json": ""}, "php", "none known", "vendor/bin/phpunit", "none known"},
		"swift":    {map[string]string{"Package.swift": ""}, "swift", "swift build", "swift test", "none known"},
		"zig":      {map[string]string{"build.zig": ""}, "zig", "zig build", "zig build test", "none known"},
		"just":     {map[string]string{"justfile": "@build:\n  x\ntest filter='':\n  x\nlint-all:\n  x\n"}, "just", "just build", "just test", "none known"},
		"make":     {map[string]string{"Makefile": "build = x\ntest:=1\nall: a\nlint:\n"}, "make", "make all", "none known", "make lint"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			for name, text := range c.files {
				b.file(name, text)
			}
			b.want("sisyphus", "get_project_info", nil, "kind: "+c.kind+"\n", "build: "+c.build+"\n", "test: "+c.test+"\n", "check: "+c.check)
		})
	}
}
