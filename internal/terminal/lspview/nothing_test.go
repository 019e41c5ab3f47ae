//go:build unix

package lspview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/internal/terminal/language"
)

// The server starts no programs, whatever the files say: not those of scripts, tools, hooks and servers, and no git.
func TestServerRunsNothing(t *testing.T) {
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	for _, name := range []string{"bash", "sh", "python3", "python", "node", "tsx", "deno", "npx", "git", "bwrap", "docker"} {
		text := fmt.Sprintf("#!/bin/sh\necho %s >> %s\n", name, ran)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	files := agentFiles()
	files["g/tools.sh"] = "# @cmd Look.\nlook() { :; }\n"
	files["g/.env"] = "SECRET=abcdefgh\n"
	files["a/config.yaml"] = "model: openai:gpt-5\ninstructions: x\ndynamic_instructions: true\nglobal_tools: [look]\nmcp_servers: [all]\nhooks: [{on: turn_start, run: \"true\"}]\n"
	files["a/tools.py"] = "def look():\n    \"\"\"Look.\"\"\"\n"
	files[".mcp.json"] = `{"mcpServers": {"docs": {"command": "npx", "args": ["docs"]}}}`
	c := start(t, files)
	for name, text := range files {
		if filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".sh" {
			uri := c.open(name, text)
			for _, method := range requests {
				c.request(method, map[string]any{"textDocument": map[string]any{"uri": uri}, "position": language.Position{Line: 1, Character: 3}, "newName": "other"})
			}
		}
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("programs ran: %s", text)
	}
}

// Nothing outside of an agent's directory is read for a name in it, and secrets are not shown.
func TestServerReadsOnlyFilesOfTheAgent(t *testing.T) {
	files := agentFiles()
	files["other/secret.sh"] = script
	files["g/graph.yaml"] = graph
	c := start(t, files)
	if err := os.Symlink(filepath.Join(c.dir, "other", "secret.sh"), filepath.Join(c.dir, "g", "link.sh")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../other/secret.sh", "link.sh"} {
		uri := c.open("g/graph.yaml", replaceOnce(graph, "scripts/sketch.sh", name))
		c.waitFor(uri, func([]language.Diagnostic) bool { return true })
		var found []language.Location
		c.call("textDocument/definition", c.place(uri, name, 1), &found)
		if len(found) != 0 {
			t.Errorf("%s: %s", name, compact(found))
		}
		c.close(uri)
	}
}
