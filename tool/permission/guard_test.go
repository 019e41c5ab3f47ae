package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/tool/permission"
)

// Files that other programs run, and files that agents read as instructions, ask before they are written: by tools of files and by redirections, in each spelling that a file
// system may accept for their names, below directories and through links.
func TestFilesOfOtherProgramsAsk(t *testing.T) {
	r := newRoom(t)
	write := fileTool("fs_write", true)
	places := strings.Fields(`.vscode/tasks.json .vscode/settings.json .idea/workspace.xml .devcontainer/devcontainer.json .claude/settings.json .codex/config.toml .gemini/settings.json .cursor/rules/x.mdc
		.agents/skills/x/SKILL.md .mcp.json mcp.json .cargo/config.toml .cargo/config .mise.toml mise.toml .gitmodules .gitattributes .pre-commit-config.yaml .yarnrc.yml .npmrc .github/workflows/x.yml
		.github/actions/x/action.yml .gitlab-ci.yml conftest.py sitecustomize.py x.pth .envrc .husky/pre-commit AGENTS.md CLAUDE.md GEMINI.md CLAUDE.local.md .cursorrules .windsurfrules
		.github/copilot-instructions.md .clinerules x.code-workspace .git/config .git/hooks/x .git/info/attributes .git/modules/sub/config .git/config.worktree .circleci/config.yml`)
	spelled := func(place string) []string {
		dir := filepath.Dir(place)
		list := []string{place, "./" + place, "src/" + place, "src/deep/../" + place, strings.ToUpper(place), strings.ToLower(place), place + ".", place + " ", place + "::$DATA", filepath.Join(r.dir, place), "in/" + place}
		if dir != "." {
			first, rest, _ := strings.Cut(place, "/")
			if first != ".github" {
				list = append(list, first+"./"+rest, first+" /"+rest, strings.ToUpper(first)+"/"+rest, first[:2]+"\u200c"+first[2:]+"/"+rest)
			}
		}
		return list
	}
	ordinary := r.policy
	ordinary.Rules = []permission.Rules{rules(t, "allow: [fs_write, \"any write(**)\", execute_command]")}
	for _, place := range places {
		for _, path := range spelled(place) {
			for _, p := range []permission.Policy{r.policy, ordinary} {
				if d := decide(t, p, write, args(t, "path", path)); d.Verdict != permission.Ask {
					t.Errorf("fs_write %q: %v", path, d.Verdict)
				}
				if d := decide(t, p, shellTool, args(t, "command", "echo x > '"+path+"'")); d.Verdict != permission.Ask {
					t.Errorf("echo > %q: %v", path, d.Verdict)
				}
			}
		}
	}
	for _, path := range []string{"GIT~1/config", "git~1/hooks/x", "VSCODE~1/tasks.json", "CLAUDE~1/settings.json", "CONFTE~1.PY"} {
		if d := decide(t, r.policy, write, args(t, "path", path)); d.Verdict != permission.Ask {
			t.Errorf("fs_write %q: %v", path, d.Verdict)
		}
	}
	if err := os.Symlink("AGENTS.md", filepath.Join(r.dir, "notes.md")); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, r.policy, write, args(t, "path", "notes.md")); d.Verdict != permission.Ask {
		t.Errorf("through a link: %v", d.Verdict)
	}
	for _, path := range strings.Fields(`package.json Makefile README.md src/main.go .github/ISSUE_TEMPLATE/x.md .github/dependabot.yml .gitignore .editorconfig pyproject.toml Cargo.toml tsconfig.json
		tests/test_x.py docs/agents.html agents/x.md my.vscode/x cargo/config.toml workflows/x.yml .eslintrc.json Dockerfile .dockerignore git~x ab~1.txt .env x.git.txt`) {
		if d := decide(t, r.policy, write, args(t, "path", path)); d.Verdict != permission.Allow {
			t.Errorf("fs_write %q: %v %q", path, d.Verdict, d.Reasons)
		}
	}
}
