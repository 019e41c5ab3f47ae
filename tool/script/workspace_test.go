//go:build unix

package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool/declare"
)

// plant writes files into a workspace, each of which leaves a mark when it runs, and
// returns the marks.
func plant(t *testing.T, h *Host) (marks func() []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "marks")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(name string) {
		write(t, h.Workspace, name, "#!/bin/sh\ntouch '"+dir+"/"+strings.ReplaceAll(name, "/", "_")+"'\nexit 7\n")
		if err := os.Chmod(filepath.Join(h.Workspace, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	py := func(name string) {
		write(t, h.Workspace, name, "open('"+dir+"/"+strings.ReplaceAll(name, "/", "_")+"', 'w')\n")
	}
	js := func(name string) {
		write(t, h.Workspace, name, "require('fs').writeFileSync('"+dir+"/"+strings.ReplaceAll(name, "/", "_")+"', ''); exports.x = 'planted';\n")
	}
	for _, name := range []string{".venv/bin/python", ".venv/bin/python3", "venv/bin/python3", "node_modules/.bin/tsx", "node_modules/.bin/node",
		"bin/python3", "bin/bash", "bin/node", "bin/tsx", "bin/npx", "python3", "bash", "node", "tsx", "npx", "cat", "env.sh"} {
		sh(name)
	}
	for _, name := range []string{"json.py", "inspect.py", "importlib/__init__.py", "sitecustomize.py", "usercustomize.py", "helper.py", "traceback.py",
		".venv/lib/python3/site-packages/sitecustomize.py", "lib/sitecustomize.py", "lib/json.py", "start.py"} {
		py(name)
	}
	for _, name := range []string{"evil.cjs", "node_modules/planted/index.js", "node_modules/tsx/index.js", "node_modules/dotenv/config.js", "node_modules/left/index.js"} {
		js(name)
	}
	write(t, h.Workspace, "tsconfig.json", `{"compilerOptions": {"baseUrl": ".", "paths": {"fs": ["./evil.cjs"], "node:fs": ["./evil.cjs"], "*": ["./evil.cjs"]}}}`)
	write(t, h.Workspace, "package.json", `{"name": "tsx", "bin": "./evil.cjs", "imports": {"#x": "./evil.cjs"}}`)
	write(t, h.Workspace, ".npmrc", "node-options=--require ./evil.cjs\nscript-shell=./env.sh\n")
	write(t, h.Workspace, ".env", "BASH_ENV=./env.sh\nENV=./env.sh\nPYTHONPATH=lib\nNODE_OPTIONS=--require ./evil.cjs\nLD_PRELOAD=./x.so\nPYTHONSTARTUP=start.py\nHARMLESS=yes\n")
	return func() []string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// lure is an environment that leads programs into the workspace, in all ways that we
// know.
func lure(h *Host) []string {
	path := strings.TrimPrefix(h.Env[0], "PATH=")
	return []string{
		"PATH=.:" + h.Workspace + ":bin::" + h.Workspace + "/bin:" + h.Workspace + "/node_modules/.bin:./node_modules/.bin:" + path + ":",
		h.Env[1], "BASH_ENV=./env.sh", "ENV=" + h.Workspace + "/env.sh", "PYTHONPATH=:lib:" + h.Workspace, "PYTHONSTARTUP=start.py", "PYTHONUSERBASE=.",
		"NODE_PATH=node_modules:" + h.Workspace, "NODE_OPTIONS=--require ./evil.cjs --require dotenv/config", "TSX_TSCONFIG_PATH=tsconfig.json",
		"npm_config_userconfig=.npmrc", "npm_config_update_notifier=false",
	}
}

// runsAlone calls a tool in a workspace full of planted files, of which none may run.
func runsAlone(t *testing.T, file, source string) {
	t.Helper()
	for name, env := range map[string]func(*Host) []string{"plain": func(h *Host) []string { return h.Env }, "lured": lure} {
		h := surroundings(t)
		marks := plant(t, h)
		tl := one(t, h, file, source)
		h.Env = env(h)
		if got := call(t, tl, ``).Text(); got != `{"output":"done yes"}` {
			t.Errorf("%s: got %s", name, got)
		}
		if ran := marks(); len(ran) > 0 {
			t.Errorf("%s: these files of the workspace ran: %v", name, ran)
		}
	}
}

// Nothing that lies in the workspace runs with a tool, however it lies there.
func TestNothingOfTheWorkspaceRuns(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	runsAlone(t, "t.sh", "# @describe T.\n# @meta dotenv\nmain() { cat /dev/null; bash -c :; printf 'done %s' \"$HARMLESS\" >>\"$LLM_OUTPUT\"; }\n")
	runsAlone(t, "t.py", "import json, subprocess\ndef run():\n    'T.'\n    subprocess.run(['bash', '-c', ':'])\n    return 'done yes'\n")
}

func TestExtraNothingOfTheWorkspaceRunsWithTypeScript(t *testing.T) {
	testneed.RequirePrograms(t, "tsx")
	runsAlone(t, "t.ts", "import { readFileSync } from \"fs\";\n/** T. */\nexport function run() { return typeof readFileSync === \"function\" ? \"done yes\" : \"replaced\"; }\n")
}

// A TypeScript tool of an agent in the workspace gets packages of its own, and those
// of the workspace only after consent.
func TestExtraPackagesOfTheWorkspace(t *testing.T) {
	testneed.RequirePrograms(t, "tsx")
	for _, source := range []string{
		"import { x } from \"NAME\";\n/** T. */\nexport function go() { return x; }\n",
		"/** T. */\nexport async function go() { return (await import(\"NAME\")).x; }\n",
		"import { createRequire } from \"node:module\";\n/** T. */\nexport function go() { return createRequire(import.meta.url)(\"NAME\").x; }\n",
	} {
		h := surroundings(t)
		marks := plant(t, h)
		h.Agent = &Agent{Name: "bot", Dir: filepath.Join(h.Workspace, "bot")}
		write(t, h.Agent.Dir, "node_modules/mine/index.js", "exports.x = 'mine';\n")
		run := func(name string, packages ...string) string {
			write(t, h.Agent.Dir, "tools.ts", strings.ReplaceAll(source, "NAME", name))
			h.Packages = packages
			return call(t, own(t, h)["go"], ``).Text()
		}
		if got := run("planted", h.Agent.Dir); !strings.Contains(got, "planted") || !strings.Contains(got, "tool_call_error") || len(marks()) > 0 {
			t.Errorf("%s\nwithout consent: got %s, ran %v", source, got, marks())
		}
		if got := run("mine", h.Agent.Dir); got != `{"output":"mine"}` {
			t.Errorf("%s\nits own package: got %s", source, got)
		}
		if got := run("left", h.Agent.Dir, filepath.Join(h.Workspace, "node_modules")); got != `{"output":"planted"}` && !strings.Contains(got, "exited with code 7") {
			t.Errorf("%s\nwith consent: got %s", source, got)
		}
	}
}

// What runs when a file is only declared: nothing.
func TestDeclaringRunsNothing(t *testing.T) {
	h := surroundings(t)
	marks := plant(t, h)
	write(t, h.Workspace, "t.py", "import helper\ndef run():\n    'T.'\n")
	declare.Load(filepath.Join(h.Workspace, "t.py"))
	if ran := marks(); len(ran) > 0 {
		t.Error(ran)
	}
}
