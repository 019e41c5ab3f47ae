package moving

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/permission"
)

// secret is part of every secret in the homes of the tests. It must be nowhere in what an import writes or shows.
const secret = "S3cr3tV4lueN0b0dyM4ySee"

// newTarget returns raddle's empty directories.
func newTarget(t *testing.T) *Target {
	t.Helper()
	dir := t.TempDir()
	return &Target{Dirs: config.Dirs{Config: filepath.Join(dir, "raddle"), Functions: filepath.Join(dir, "raddle", "functions"), Work: filepath.Join(dir, "work"), Home: dir}}
}

// importHome imports the files of a home, checks that nothing of it has changed, that no secret was copied, and that
// what was written can be used. It returns a line for each thing.
func importHome(t *testing.T, to *Target, program string, files map[string]string) (lines []string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	testfile.WriteFiles(t, home, files)
	return importDir(t, to, program, home)
}

func importDir(t *testing.T, to *Target, program, home string) (lines []string) {
	t.Helper()
	p, err := FindProgram(program)
	if err != nil {
		t.Fatal(err)
	}
	before := readTree(t, filepath.Dir(home))
	plan, err := Find(to, Request{Programs: []Program{p}, From: home})
	if err != nil {
		t.Fatal(err)
	}
	if failed := plan.Write(to); failed > 0 {
		t.Errorf("%d things could not be written: %s", failed, plan.Text(false))
	}
	if after := readTree(t, filepath.Dir(home)); after != before {
		t.Errorf("the home has changed:\n%s\nwas:\n%s", after, before)
	}
	shown, _ := json.Marshal(plan)
	for where, text := range map[string]string{"written": readTree(t, to.Dirs.Config), "JSON": string(shown), "shown": plan.Text(true)} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is in what is %s:\n%s", where, text)
		}
	}
	checkWritten(t, to)
	for _, thing := range plan.Things {
		lines = append(lines, strings.Join([]string{string(thing.Verdict), thing.Kind, thing.Name}, " "))
	}
	return lines
}

// readTree returns the names and texts of all files below a directory.
func readTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if len(text) > 1<<16 {
			text = text[:1<<16]
		}
		b.WriteString(path + " " + info.Mode().String() + "\n" + string(text) + "\n")
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b.String()
}

// checkWritten checks that raddle can read what is in its directories.
func checkWritten(t *testing.T, to *Target) {
	t.Helper()
	if err := config.CheckFile(to.Dirs.Config, to.Environ); err != nil && !strings.Contains(err.Error(), "names the variable") {
		t.Errorf("config.yaml: %v", err)
	}
	if text, err := os.ReadFile(to.rulesFile()); err == nil {
		if _, err := permission.LoadRules("permissions.yaml", text); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(to.serversFile()); err == nil {
		if f, err := mcp.Parse("mcp.json", text); err != nil || len(f.Problems) > 0 {
			t.Errorf("mcp.json: %v %v", err, f.Problems)
		}
	}
	agents, _ := filepath.Glob(filepath.Join(to.Dirs.Config, "agents", "*", "config.yaml"))
	for _, path := range agents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := spec.ParseConfig(path, text)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range c.Findings {
			t.Errorf("%s: %s", path, f.Text())
		}
	}
}

// wantLines compares the things of an import, in any order.
func wantLines(t *testing.T, got []string, want string) {
	t.Helper()
	list := strings.Split(strings.TrimSpace(want), "\n")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	slices.Sort(list)
	got = slices.Sorted(slices.Values(got))
	if !slices.Equal(got, list) {
		t.Errorf("things:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(list, "\n"))
	}
}

func readWritten(t *testing.T, to *Target, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(to.Dirs.Config, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var lokiHome = map[string]string{
	"config.yaml": `# written by the wizard
model: claude:claude-opus-4
temperature: null
stream: true
save: true
keybindings: emacs
light_theme: true
repl_prelude: role:poet
mapping_tools:
  mine: 'fs_cat,weather'
vault_password_file: ~/.secret
wrap: no
rag_top_k: five
clients:
- type: claude
  api_key: '{{ANTHROPIC_API_KEY}}'
- type: openai
  api_key: sk-` + secret + `
  organization_id: org-1
  extra:
    proxy: socks5://127.0.0.1:1080
    connect_timeout: 10
- type: openai-compatible
  name: local
  api_base: http://localhost:8000/v1
  models:
  - name: small
    max_input_tokens: 8192
    supports_function_calling: true
  patch:
    chat_completions:
      '.*':
        body: {seed: 1}
        headers: {X-Team: blue}
      small:
        body: {top_k: 3}
      'gpt-.*':
        body: {x: 1}
- type: cohere
  api_key: xxx
- type: pigeon
`,
	".env":                          "WEATHER_KEY=" + secret + "\n",
	"agents/helper/config.yaml":     "name: helper\ninstructions: Help.\n",
	"agents/helper/tools.sh":        "#!/bin/sh\n",
	"agents/helper/.env":            "TOKEN=" + secret,
	"agents/coder/graph.yaml":       "name: coder\n",
	"agents/empty/notes.txt":        "x",
	"functions/agents/old/tools.sh": "#!/bin/sh\n",
	"functions/agents/old/index.yaml": "name: Old\ndescription: An old one\ninstructions: |\n  Do {{what}}.\nvariables:\n- name: what\n  description: the task\n" +
		"conversation_starters: [Begin]\n",
	"agents/old/config.yaml":     "model: openai:gpt-4o\nuse_tools: mine,fs\nagent_prelude: temp\n",
	"functions/tools/weather.sh": "#!/bin/sh\n",
	"functions/tools/fs_cat.sh":  "#!/bin/sh\n",
	"functions/tools/old.js":     "x",
	"functions/mcp.json":         `{"mcpServers": {"docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ` + secret + `"}}}}`,
	"roles/poet.md":              "\ufeff---\r\ntemperature: 0.5\r\nuse_tools: mine\r\nmemory: false\r\n---\r\nWrite verse.\r\n",
	"macros/commit.yaml":         "steps:\n- .file `git diff` -- message\n",
	"skills/notes/SKILL.md":      "---\nname: notes\ndescription: Writes notes\n---\nDo.\n",
	"skills/notes/token.json":    secret,
	"sessions/old.yaml":          "model: x\nmessages: []\n",
	"memory/MEMORY.md":           "The user likes tea.\n",
	"claude_oauth_tokens.json":   secret,
	"rags/base.yaml":             "x",
	"messages.md":                "x",
}

// A home of Loki: what works is taken, everything else is in the list, and a second import says what is there.
func TestLoki(t *testing.T) {
	to := newTarget(t)
	lines := importHome(t, to, "loki", lokiHome)
	wantLines(t, lines, `
		changed agent coder
		changed agent helper
		changed agent old
		changed client cohere
		changed client local
		changed client openai
		changed memory MEMORY.md
		changed role poet
		changed server docs
		changed setting light_theme
		changed skill notes
		left client pigeon
		left key .env
		left key ANTHROPIC_API_KEY
		left key claude_oauth_tokens.json
		left key openai
		left other messages.md
		left other rags
		left session old
		left setting clients.local.patch.chat_completions.gpt-.*
		left setting keybindings
		left setting mapping_tools
		left setting rag_top_k
		left setting repl_prelude
		left setting save
		left setting stream
		left setting vault_password_file
		left setting wrap
		left tool fs_cat.sh
		left tool old.js
		taken client claude
		taken macro commit
		taken setting model
		taken tool weather.sh`)
	c, err := config.Load(to.Dirs.Config, []string{"ANTHROPIC_API_KEY=k"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "claude:claude-opus-4" || c.Theme != "light" || len(c.Clients) != 4 {
		t.Errorf("%+v", c)
	}
	for _, client := range c.Clients {
		switch client.Name {
		case "claude":
			if client.Key != "k" || client.Type != "anthropic" {
				t.Errorf("%+v", client)
			}
		case "openai":
			if client.Key != "" || client.Proxy != "socks5://127.0.0.1:1080" || client.Headers["OpenAI-Organization"] != "org-1" {
				t.Errorf("%+v", client)
			}
		case "local":
			if client.Headers["X-Team"] != "blue" || client.Models[0].Window != 8192 || len(client.Body) != 1 || len(client.Models[0].Body) != 1 {
				t.Errorf("%+v", client)
			}
		}
	}
	for _, want := range []string{"global_tools: [fs_cat, weather, fs]", "agent_session: temp", "name: Old", "model: openai:gpt-4o", "Do {{what}}."} {
		if text := readWritten(t, to, "agents/old/config.yaml"); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := readWritten(t, to, "mcp.json"); !strings.Contains(text, `"Authorization": "Bearer ${DOCS_AUTHORIZATION}"`) {
		t.Error(text)
	}
	again := importHome(t, to, "loki", lokiHome)
	for _, line := range again {
		if !strings.HasPrefix(line, "left ") {
			t.Errorf("imported again: %s", line)
		}
	}
}

// What raddle has stays, unless the person wants it to be replaced.
func TestReplace(t *testing.T) {
	to := newTarget(t)
	testfile.WriteFiles(t, to.Dirs.Config, map[string]string{"roles/poet.md": "Mine.\n", "config.yaml": "model: openai:mine\n"})
	importHome(t, to, "loki", lokiHome)
	if text := readWritten(t, to, "roles/poet.md") + readWritten(t, to, "config.yaml"); !strings.Contains(text, "Mine.") || !strings.Contains(text, "openai:mine") {
		t.Errorf("replaced without a word: %s", text)
	}
	home := filepath.Join(t.TempDir(), "home")
	testfile.WriteFiles(t, home, lokiHome)
	p, _ := FindProgram("loki")
	plan, err := Find(to, Request{Programs: []Program{p}, From: home, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	plan.Write(to)
	if text := readWritten(t, to, "roles/poet.md") + readWritten(t, to, "config.yaml"); strings.Contains(text, "Mine.") || strings.Contains(text, "openai:mine") {
		t.Errorf("not replaced: %s", text)
	}
}

var claudeHome = map[string]string{
	".claude/settings.json": `{
  // a comment
  "model": "opus",
  "apiKeyHelper": "pass show claude",
  "env": {"API_TOKEN": "` + secret + `"},
  "permissions": {
    "allow": ["Bash(npm run test:*)", "Bash(git log *)", "Bash(curl https://*)", "Bash", "Read(src/**)", "WebFetch(domain:example.com)", "mcp__files__read", "Task", 7],
    "deny": ["Bash(rm -rf *)", "Bash(git * main)", "Read(./.env)", "Read(secrets)", "Edit(//etc/**)", "WebFetch(domain:evil.example)"],
    "ask": ["Bash(git push:*)"],
    "defaultMode": "bypassPermissions",
    "additionalDirectories": ["../other"],
  },
  "hooks": {"PreToolUse": [{"command": "x"}]},
  "enableAllProjectMcpServers": true,
}`,
	".claude/settings.local.json":      `{"permissions": ["wrong"]}`,
	".claude/.credentials.json":        `{"token": "` + secret + `"}`,
	".claude/agents/reviewer.md":       "---\nname: reviewer\ndescription: Reviews: use it after changes\ntools: Read, Grep, Bash, mcp__files__read, Magic\nmodel: sonnet\n---\n\nReview it.\n",
	".claude/agents/reader.md":         "---\ndisallowedTools: Write, Edit, Bash\n---\nOnly read.\n",
	".claude/agents/empty.md":          "",
	".claude/commands/fix.md":          "---\ndescription: Fix it\nallowed-tools: Bash(*)\n---\nFix $ARGUMENTS\n!`git status`\n",
	".claude/commands/git/commit.md":   "Commit $1\r\n",
	".claude/skills/pdf/SKILL.md":      "---\ndescription: PDF\n---\n",
	".claude/CLAUDE.md":                "Be brief.\n",
	".claude/projects/-home-x/a.jsonl": `{}`,
	".claude.json": `{"oauthAccount": {"token": "` + secret + `"}, "mcpServers": {
  "files": {"command": "npx", "args": ["-y", "server-files", "--api-key", "` + secret + `99"], "env": {"FILES_TOKEN": "` + secret + `", "MODE": "${MODE:-fast}"}},
  "odd": {"type": "http", "url": "https://user:` + secret + `@example.org/mcp"},
  "ghp": {"command": "x", "args": ["ghp_` + secret + `"]},
  "wrong": {"command": ["a"]},
  "bad name!": {"command": "x"}},
  "projects": {"/home/x": {"mcpServers": {"own": {"command": "y"}}}}}`,
}

// A home of Claude Code: rules that deny are taken whole, rules that allow only where they allow no more.
func TestClaude(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, claudeHome)
	to := newTarget(t)
	lines := importDir(t, to, "claude", filepath.Join(dir, ".claude"))
	wantLines(t, lines, `
		changed agent reader
		changed agent reviewer
		changed client anthropic
		changed command fix
		changed command git-commit
		changed instructions CLAUDE.md
		changed rule deny Bash(git * main)
		changed server files
		changed server ghp
		changed server odd
		left agent empty
		left hook PreToolUse
		left key .credentials.json
		left key env
		left rule allow Bash
		left rule allow Bash(curl https://*)
		left rule allow Task
		left server bad name!
		left server own
		left server wrong
		left session -home-x
		left setting additionalDirectories
		left setting defaultMode bypassPermissions
		left setting enableAllProjectMcpServers
		left setting model
		left setting permissions
		left setting permissions.allow
		left setting mcpServers.wrong.command
		taken rule allow Bash(git log *)
		taken rule allow Bash(npm run test:*)
		taken rule allow Read(src/**)
		taken rule allow WebFetch(domain:example.com)
		taken rule allow mcp__files__read
		taken rule ask Bash(git push:*)
		taken rule deny Bash(rm -rf *)
		taken rule deny Edit(//etc/**)
		taken rule deny Read(./.env)
		taken rule deny Read(secrets)
		taken rule deny WebFetch(domain:evil.example)
		taken skill pdf`)
	rules := readWritten(t, to, "permissions.yaml")
	for _, want := range []string{
		`"execute_command(npm run test *)"`, `"any command(rm -rf *)"`, `"any command(git *)"`, `"any read(.env)"`, `"any read(**/secrets)"`, `"any write(/etc/**)"`,
		`"any command(git push *)"`, `"any host(evil.example)"`, `"mcp_invoke_files(tool=read)"`,
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("%s is not in\n%s", want, rules)
		}
	}
	for path, want := range map[string]string{
		"agents/reviewer/config.yaml": "global_tools: [fs_read, fs_grep, execute_command]\nmcp_servers: [files]\n",
		"agents/reader/config.yaml":   "global_tools: [fs_read, fs_ls, fs_glob, fs_grep, fetch_url_via_curl]\n",
		"commands/git-commit.md":      "Commit $1\n",
		"mcp.json":                    `"MODE": "${MODE}"`,
		"config.yaml":                 "- pass show claude",
	} {
		if text := readWritten(t, to, path); !strings.Contains(text, want) {
			t.Errorf("%q is not in %s:\n%s", want, path, text)
		}
	}
}

// Files that are no files, lead elsewhere or are too large are in the list, and nothing else of them is read.
func TestTraps(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, ".claude")
	testfile.WriteFiles(t, dir, map[string]string{
		"outside/secret.md":              secret,
		"outside/skill/SKILL.md":         secret,
		".claude/settings.json":          `{"permissions": {"deny": ["Bash(` + strings.Repeat("x", largestText) + `)"]}}`,
		".claude/agents/fine.md":         "Work.",
		".claude/agents/binary.md":       "\xff\xfe",
		".claude/skills/ok/SKILL.md":     "---\ndescription: d\n---\n",
		".claude/commands/-evil.md":      "x",
		".claude/commands/ok.md":         "x",
		".claude/commands/sub/.git/x.md": "x",
	})
	for link, target := range map[string]string{
		"agents/link.md": "../../outside/secret.md", "skills/out": "../../outside/skill", "skills/ok/data": "../../../outside/secret.md", "CLAUDE.md": "/etc/hostname",
		"commands/round": "..",
	} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	lines := importDir(t, newTarget(t), "claude", home)
	wantLines(t, lines, `
		changed agent fine
		changed skill ok
		left command -evil
		left other CLAUDE.md
		left other binary.md
		left other link.md
		left other settings.json
		left skill out
		taken command ok`)
}

// otherHomes are homes of the programs that have no test of their own, with the things and the texts that come of them.
var otherHomes = map[string]struct {
	files map[string]string
	want  string
	has   map[string]string
}{
	"codex": {
		files: map[string]string{
			"config.toml": "model = \"gpt-5\"\nmodel_provider = \"azure\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nnotify = [\"x\"]\n" +
				"[model_providers.azure]\nname = \"Azure\"\nbase_url = \"https://a.example/v1\"\nenv_key = \"AZURE_KEY\"\nwire_api = \"responses\"\n" +
				"[mcp_servers.docs]\nurl = \"https://docs.example/mcp\"\nbearer_token_env_var = \"DOCS_TOKEN\"\n" +
				"[mcp_servers.off]\ncommand = \"x\"\nenabled = false\n[mcp_servers.inline]\nurl = \"https://i.example\"\nbearer_token = \"" + secret + "\"\n" +
				"[profiles.fast]\nmodel = \"gpt-5-mini\"\n[projects.\"/home/x\"]\ntrust_level = \"trusted\"\n",
			"auth.json":             secret,
			"prompts/review.md":     "---\ndescription: Review\n---\nReview $1\n",
			"AGENTS.md":             "Be kind.\n",
			"rules/default.rules":   "prefix_rule()",
			"sessions/2026/a.jsonl": "{}",
			"skills/one/SKILL.md":   "---\ndescription: One\n---\n",
		},
		want: `
				taken client azure
				changed instructions AGENTS.md
				changed server inline
				changed setting model
				left hook notify
				left key AZURE_KEY
				left key auth.json
				left rule default.rules
				left server off
				left session sessions
				left setting approval_policy never
				left setting profiles.fast
				left setting projects
				left setting sandbox_mode danger-full-access
				taken command review
				taken server docs
				taken skill one`,
		has: map[string]string{"mcp.json": `Bearer ${DOCS_TOKEN}`, "config.yaml": "model: azure:gpt-5"},
	},
	"gemini": {
		files: map[string]string{
			"settings.json": `{"model": {"name": "gemini-2.5-pro"}, "tools": {"exclude": ["run_shell_command(rm -rf)", "web_fetch"], "allowed": ["run_shell_command(git)", "write_file"]},
					"mcpServers": {"a": {"httpUrl": "https://a.example/mcp", "trust": true, "timeout": 5000}, "b": {"url": "https://b.example/sse"}}, "experimental": {}}`,
			"oauth_creds.json":                   secret,
			"commands/git/msg.toml":              "description = \"Message\"\nprompt = \"\"\"\nWrite for {{args}}\n!{git diff}\n\"\"\"\n",
			"commands/bad.toml":                  "prompt = ",
			"GEMINI.md":                          "Hi.",
			"extensions/x/gemini-extension.json": "{}",
		},
		want: `
				changed command git-msg
				changed instructions GEMINI.md
				changed rule deny web_fetch
				changed server a
				changed setting model
				left key oauth_creds.json
				left other commands/bad.toml
				left other extension x
				left rule allow write_file
				left setting experimental
				taken rule allow Bash(git:*)
				taken rule deny Bash(rm -rf:*)
				taken server b`,
		has: map[string]string{"commands/git-msg.md": "description: Message\n---\n\nWrite for $ARGUMENTS", "mcp.json": `"type": "sse"`},
	},
	"opencode": {
		files: map[string]string{
			"opencode.jsonc": `{"model": "anthropic/claude-x", /* note */
					"provider": {"lab": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://lab/v1", "apiKey": "{env:LAB_KEY}"}, "models": {"m1": {}}}, "odd": {}},
					"mcp": {"local": {"type": "local", "command": ["npx", "-y", "s"], "environment": {"A": "{env:A}"}}, "far": {"type": "remote", "url": "https://far.example", "enabled": false}},
					"agent": {"docs": {"description": "Writes", "prompt": "Write docs."}, "build": {"model": "x"}},
					"command": {"test": {"template": "Run tests $ARGUMENTS", "description": "Tests"}},
					"permission": {"edit": "ask", "bash": {"git push*": "deny", "ls": "allow", "*": "ask"}, "doom_loop": "deny"}}`,
			"agents/plan.md": "---\ndescription: Plans\nmode: subagent\ntools:\n  write: false\n  bash: false\n---\nPlan.\n",
		},
		want: `
				changed agent docs
				changed agent plan
				changed setting model
				left agent build
				left client odd
				left key LAB_KEY
				left rule bash *: ask
				left rule doom_loop: deny
				left server far
				taken client lab
				taken command test
				taken rule allow Bash(ls)
				taken rule ask Edit
				changed rule deny Bash(git push*)
				taken server local`,
		has: map[string]string{
			"mcp.json": `"A": "${A}"`, "permissions.yaml": `"any command(git *)"`, "agents/plan/config.yaml": "global_tools: [fs_read, fs_ls, fs_glob, fs_grep, fetch_url_via_curl]\n",
		},
	},
	"crush": {
		files: map[string]string{
			"crush.json": `{"providers": {"ds": {"type": "openai-compat", "base_url": "https://d.example/v1", "api_key": "$DS_KEY", "models": [{"id": "chat"}]}, "v": {"type": "vertexai"}},
					"models": {"large": {"provider": "ds", "model": "chat"}}, "mcp": {"gh": {"type": "http", "url": "https://g.example", "headers": {"Authorization": "Bearer $GH"}, "timeout": 30}},
					"permissions": {"allowed_tools": ["bash"]}, "lsp": {}, "options": {}}`,
			"commands/go.md": "Go $NAME\n",
		},
		want: `
				changed setting models.large
				left client v
				left key DS_KEY
				left rule allow bash
				left setting lsp
				left setting options
				taken client ds
				taken command go
				taken server gh`,
		has: map[string]string{"mcp.json": `"timeout": "30s"`, "config.yaml": "api_key: ${DS_KEY}"},
	},
	"goose": {
		files: map[string]string{
			"config.yaml": "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\nGOOSE_MODE: auto\nextensions:\n  developer: {type: builtin, enabled: true}\n" +
				"  gh: {type: stdio, enabled: true, cmd: npx, args: [-y, gh], envs: {MODE: a}, env_keys: [GH_TOKEN], timeout: 300}\n  web: {type: streamable_http, enabled: true, uri: 'https://w.example'}\n",
			"secrets.yaml":       secret,
			"permission.yaml":    "user:\n  always_allow: [shell]\n",
			"recipes/daily.yaml": "version: 1.0.0\ntitle: Daily\ndescription: A report\ninstructions: Report on {{ topic }}.\nprompt: Begin\nparameters:\n- key: topic\n  description: what\n  default: all\n",
		},
		want: `
				changed agent daily
				changed setting GOOSE_MODEL
				left key secrets.yaml
				left rule always_allow shell
				left server developer
				left setting GOOSE_MODE auto
				taken server gh
				taken server web`,
		has: map[string]string{"mcp.json": `"GH_TOKEN": "${GH_TOKEN}"`, "agents/daily/config.yaml": "Report on {{topic}}."},
	},
}

// The homes of the other programs.
func TestOthers(t *testing.T) {
	for program, c := range otherHomes {
		t.Run(program, func(t *testing.T) {
			to := newTarget(t)
			wantLines(t, importHome(t, to, program, c.files), c.want)
			for path, want := range c.has {
				if text := readWritten(t, to, path); !strings.Contains(text, want) {
					t.Errorf("%q is not in %s:\n%s", want, path, text)
				}
			}
		})
	}
}

// Of two programs that have an agent of one name, the first counts, and the other is in the list.
func TestSameName(t *testing.T) {
	to := newTarget(t)
	testfile.WriteFiles(t, to.Dirs.Home, map[string]string{
		".config/loki/agents/helper/config.yaml": "name: helper\ninstructions: One.\n",
		".claude/agents/helper.md":               "Two.\n",
	})
	plan, err := Find(to, Request{})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Things) != 2 || plan.Things[1].Verdict != Left || !strings.Contains(plan.Things[1].Why, "loki has one of this name") {
		t.Errorf("%+v", plan.Things)
	}
	if _, err := Find(newTarget(t), Request{}); err == nil || !strings.Contains(err.Error(), "no configuration of another program") {
		t.Error(err)
	}
}
