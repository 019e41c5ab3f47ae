package permission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// outputPrograms are programs that write a file which an argument names, known to raddle or not.
var outputPrograms = strings.Fields(`curl wget tar zip unzip 7z ar cpio rsync cp mv ln install dd tee touch truncate rm mkdir mkfifo mktemp shuf split csplit sort uniq xxd iconv script gcc cc clang go rustc cargo
	javac tsc esbuild webpack rollup babel sass openssl gpg ssh-keygen age convert ffmpeg pandoc protoc flex bison m4 jq yq xmllint sqlite3 pg_dump mysqldump redis-cli git hg svn patch sed awk perl python3 node ruby php
	docker podman kubectl terraform helm aws gcloud make cmake ninja npm yarn pnpm pip uv poetry gh unknown-program ./run.sh`)

// outputForms are the ways in which programs take the name of a file to write.
var outputForms = []string{"-o %s", "-o%s", "--output %s", "--output=%s", "of=%s", "-so%s", "-xzvf%s", "-f=%s", "x %s", "%s", "-out %s", "-MF %s", "--to-dir='%s'", "a:%s", "a,%s", "-D x=%s", "sub --flag=a:%s"}

// newProtectedRoom returns a policy with places that are protected, and these places in all spellings.
func newProtectedRoom(t *testing.T) (p permission.Policy, places []string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, home := filepath.Join(base, "home", "work"), filepath.Join(base, "home")
	config, agent := filepath.Join(home, ".config", "raddle"), filepath.Join(home, ".config", "raddle", "agents", "dev")
	for _, path := range []string{filepath.Join(ws, ".git", "config"), filepath.Join(ws, "src", "x.go"), filepath.Join(ws, "in.txt"), filepath.Join(config, "permissions.yaml"), filepath.Join(agent, "tools.sh")} {
		testfile.WriteFile(t, path, "")
	}
	for link, to := range map[string]string{"repo": ".git", "here": ".", "set": config} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	p = permission.Policy{Workspace: ws, Home: home, Guarded: []string{filepath.Join(config, "permissions.yaml"), filepath.Join(ws, ".raddle", "permissions.yaml")}, Code: []string{config, agent}, Readable: []string{agent}}
	places = []string{".git/config", "./.git/hooks/post-checkout", "src/../.git/info/attributes", ".git/modules/sub/config", ".git/config.worktree", filepath.Join(ws, ".git/hooks/x"), "~/work/.git/config", "repo/config", "here/.git/hooks/x",
		"~/.config/raddle/permissions.yaml", filepath.Join(config, "permissions.yaml"), "$HOME/.config/raddle/permissions.yaml", "${HOME}/.config/raddle/config.yaml", "set/config.yaml", "../.config/raddle/agents/dev/tools.sh",
		".raddle/permissions.yaml", ".vscode/tasks.json", "AGENTS.md", "sub/CLAUDE.md", ".github/workflows/x.yml", ".GIT/config", ".gi?/config", ".g*/config", ".{git,x}/config", ".git/con{fig,x}", "\"$PWD\"/.git/config"}
	return p, places
}

// Whatever rule allows a command, by its name or without a pattern, a protected place in any word of it asks, in every spelling of the place and of the flag.
func TestProtectedPlacesWinOverRules(t *testing.T) {
	p, places := newProtectedRoom(t)
	count := 0
	asks := func(p permission.Policy, text string) {
		t.Helper()
		ruleless := p
		ruleless.Rules = []permission.Rules{rules(t, "allow: [\"any read(/**)\"]")}
		if decide(t, ruleless, shellTool, args(t, "command", text)).Verdict == permission.Allow {
			return // it only reads what it names
		}
		count++
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict != permission.Ask {
			t.Errorf("%s: %v", text, d.Verdict)
		}
	}
	bare, star := p, p
	bare.Rules = []permission.Rules{rules(t, "allow: [execute_command]")}
	star.Rules = []permission.Rules{rules(t, "allow: [execute_command(*)]")}
	for i, program := range outputPrograms {
		named := p
		named.Rules = []permission.Rules{rules(t, fmt.Sprintf("allow: [\"execute_command(%s *)\", \"any read(/**)\"]", program))}
		for j, form := range outputForms {
			for k, place := range places {
				if (i+j+k)%11 != 0 && i > 1 {
					continue // each form and place with a part of the programs
				}
				if strings.Contains(form, "'") && strings.ContainsAny(place, "$\"{*?~") {
					continue // quotes take the meaning from these characters
				}
				if strings.ContainsAny(place, "*?") && !strings.HasPrefix(form, "x %") && form != "%s" && !strings.HasSuffix(form, " %s") {
					continue // the pattern matches nothing behind other characters
				}
				text := program + " " + fmt.Sprintf(form, place)
				asks(named, text)
				if k%5 == j%5 {
					asks(bare, text)
					asks(star, text)
				}
			}
		}
		for _, text := range []string{"cd .git && %s config", "cd src && %s -o../.git/config", "cd ~/.config/raddle && %s x", "cd repo/hooks; %s -O http://x.example/post-checkout", "p=.git/config; %s -o $p", "for f in a .git/config; do %s $f; done", "for f in a b c d e f .git/config; do %s $f; done", "for f in .gi*/config; do %s $f; done",
			"%s $(echo .git/config)", "%s \"$(git rev-parse --git-dir)/hooks/x\"", "%s $'\\x2egit/config'", "f() { %s -o \"$1\"; }; f .git/config"} {
			asks(bare, fmt.Sprintf(text, program))
		}
	}
	t.Logf("%d calls", count)
}

// The calls that were reported, and texts for other programs that write a protected place.
func TestTextsThatWriteProtectedPlaces(t *testing.T) {
	p, _ := newProtectedRoom(t)
	bare := p
	bare.Rules = []permission.Rules{rules(t, "allow: [execute_command]")}
	asks := func(p permission.Policy, text string) {
		t.Helper()
		if d := decide(t, p, shellTool, args(t, "command", text)); d.Verdict != permission.Ask {
			t.Errorf("%s: %v", text, d.Verdict)
		}
	}
	for rule, texts := range map[string][]string{
		"git log *":  {`git log -1 --format='[core]%n fsmonitor = "touch x; false"' --output=.git/config`},
		"git diff *": {"git diff --output=.git/config HEAD", "git diff --output .git/hooks/x", "git diff --outpu=.git/config"},
		"git *": {"git archive -o .git/hooks/x HEAD", "git archive -o.git/hooks/x HEAD", "git format-patch -o .git/hooks", "git bundle create .git/hooks/x HEAD", "git worktree add .git/hooks/x", "git clone . .git/x", "git init .vscode",
			"git config core.fsmonitor x", "git -c a.b=c config core.fsmonitor x", "git --git-dir=.git config core.hooksPath x", "git --work-tree . config alias.x y", "git config -f .git/config a.b c", "git config set core.pager x",
			"git -c alias.x='!echo > .git/config' x", "git config --unset core.bare", "git mv in.txt .vscode/tasks.json"},
		"find *": {"find . -maxdepth 0 -fprintf ~/.config/raddle/permissions.yaml 'allow: [execute_command]\\n'", "find . -fprint .git/config", "find . -fls AGENTS.md", "find .git -type f -exec sed -i s/a/b/ {} +"},
		"curl *": {"curl -so~/.config/raddle/permissions.yaml file:///x", "curl -sSLo.git/config https://x.example", "curl --output-dir .git -O https://x.example/config", "curl -sLD.git/config https://x.example"},
		"tar *": {"tar --transform='s#.*#" + p.Guarded[0] + "#' -Pxf p.tar", "tar cf .git/hooks/x in.txt", "tar -C .git -xf p.tar", "tar -xf p.tar --directory=.git/hooks",
			"tar --to-command='tee .git/config' -xf p.tar", "tar -cf.git/hooks/x in.txt"},
		"sed *":     {"sed -n 'w.git/config' in.txt", "sed 's/a/b/w .git/config' in.txt", "sed -i s/a/b/ .git/config", "sed -n '/x/w AGENTS.md' in.txt"},
		"awk *":     {`awk '{print > ".git/config"}' in.txt`, `awk 'BEGIN{f=".git/hooks/x"; print "x" > f}'`, "awk -v f=.git/config '{print > f}' in.txt"},
		"python3 *": {`python3 -c 'open(".git/config","w")'`, `python3 -c "import os; os.symlink('x', '.vscode')"`, `python3 -c 'open("src/AGENTS.md", "w")'`},
		"xargs *":   {"echo .git/config | xargs -n1 tee"},
		"tee *":     {"echo .git/config | xargs tee"},
		"echo *":    {"echo x > $HOME/.config/raddle/permissions.yaml"},
	} {
		q := p
		q.Rules = []permission.Rules{rules(t, "allow: [\"execute_command("+rule+")\"]")}
		for _, text := range texts {
			asks(q, text)
			q := bare
			asks(q, text)
		}
	}
	asks(bare, "p=.git/config; echo x > $p")
	asks(bare, "echo 'open(\".git/config\", \"w\")' | python3")

	// A rule that names the word, or the place, allows it; an answer of the call names both.
	for _, list := range []string{`"execute_command(pack cf .git/hooks/x in.txt)"`, `"execute_command(pack *)", "any write(.git/**)"`, `"execute_command(pack cf .git/hooks/x *)"`} {
		q := p
		q.Rules = []permission.Rules{rules(t, "allow: ["+list+"]")}
		if d := decide(t, q, shellTool, args(t, "command", "pack cf .git/hooks/x in.txt")); d.Verdict != permission.Allow {
			t.Errorf("%s: %q", list, d.Reasons)
		}
	}
	d := decide(t, p, shellTool, args(t, "command", "git add AGENTS.md"))
	var granted []permission.Rule
	for _, text := range d.Grant {
		r, err := permission.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		granted = append(granted, r)
	}
	q := p
	q.Granted = granted
	if again := decide(t, q, shellTool, args(t, "command", "git add AGENTS.md")); len(granted) == 0 || again.Verdict != permission.Allow {
		t.Errorf("an answer for the run does not hold: %q then %q", d.Grant, again.Reasons)
	}
	if other := decide(t, q, shellTool, args(t, "command", "echo x > AGENTS.md")); other.Verdict != permission.Ask {
		t.Errorf("an answer about git allows to write the file: %q", d.Grant)
	}
}

// Everyday commands that a rule allows still run, with words that look like protected names and are none.
func TestRulesStillAllowEverydayCommands(t *testing.T) {
	p, _ := newProtectedRoom(t)
	for rule, texts := range map[string][]string{
		"go *": {"go test ./...", "go build -o bin/x ./cmd/x", "go vet ./src/...", "go test -run TestGit -count=1 ./src", "go run . -o out.txt"}, "make *": {"make", "make -C src test", "make install PREFIX=build"},
		"git *": {"git add .", "git add src/x.go", "git commit -m 'Describe AGENTS.md and .git/config'", "git commit -am \"mend .vscode\"", "git push origin main", "git clone https://git.example/x/y.git", "git clone git@git.example:x/y.git",
			"git fetch --all", "git checkout -b feature/git", "git stash", "git pull --rebase", "git remote add up https://git.example/x.git", "git tag v1", "git merge main", "git rebase main", "git -C src status"},
		"npm *": {"npm test", "npm run build", "npm install left-pad", "npm run lint -- --fix"}, "curl *": {"curl -sS https://x.example/y.git/info", "curl -fsSL -o out.html https://x.example"}, "tar *": {"tar czf out.tgz src", "tar --exclude=.git -czf x.tgz src", "tar --exclude node_modules -cf x.tar src"},
		"docker *": {"docker build -t x .", "docker compose up -d", "docker run --rm -v ./src:/src x"}, "pytest *": {"pytest -q tests", "pytest tests/test_x.py::test_y"}, "python3 *": {"python3 x.py", "python3 -m http.server", "python3 -c 'print(1)'"},
		"sed *": {"sed -i s/a/b/ src/x.go", "sed -e s/w/x/ in.txt"}, "cp *": {"cp in.txt out.txt", "cp -r src dst"}, "rm *": {"rm out.txt", "rm -rf build"}, "mkdir *": {"mkdir -p build/x"}, "find *": {"find . -name '*.go' -delete -path ./src"},
		"gh *": {"gh pr create --title 'AGENTS.md' --body 'see .git/config'", "gh pr list"}, "rsync *": {"rsync -a --exclude=node_modules src/ dst/"}, "jq *": {"jq -r .a.git in.txt"}, "gcc *": {"gcc -o x x.c"}, "cargo *": {"cargo build --release"},
	} {
		q := p
		q.Rules = []permission.Rules{rules(t, "allow: [\"execute_command("+rule+")\"]")}
		bare := p
		bare.Rules = []permission.Rules{rules(t, "allow: [execute_command]")}
		for _, text := range texts {
			if d := decide(t, bare, shellTool, args(t, "command", text)); d.Verdict != permission.Allow {
				t.Errorf("%s: %q", text, d.Reasons)
			}
			if d := decide(t, q, shellTool, args(t, "command", text)); d.Verdict != permission.Allow && rule != "find *" {
				t.Errorf("%s, with %s: %q", text, rule, d.Reasons)
			}
		}
	}
}

// A rule about files that allows one protected place of a command does not hide another one, wherever in the command the two are; with both allowed, the
// command runs.
func TestAllowedPlacesHideNoOthers(t *testing.T) {
	p, _ := newProtectedRoom(t)
	config := filepath.Dir(p.Guarded[0])
	testfile.WriteFile(t, filepath.Join(p.Workspace, "src", ".git", "config"), "")
	places := []struct{ name, rule string }{
		{".git/config", ".git/**"}, {"AGENTS.md", "AGENTS.md"}, {".vscode/tasks.json", ".vscode/**"}, {".github/workflows/x.yml", ".github/workflows/**"}, {"src/.envrc", "src/.envrc"},
		{p.Guarded[0], p.Guarded[0]}, {filepath.Join(config, "agents/dev/tools.sh"), filepath.Join(config, "agents/dev/**")},
	}
	check := func(text, one, other string, apart bool) {
		t.Helper()
		q := p
		allowed := []string{`"execute_command(pack *)"`, `"execute_command(python3 *)"`, `"execute_command(X=* pack *)"`, `"any read(/**)"`, fmt.Sprintf("%q", "any write("+one+")")}
		q.Rules = []permission.Rules{rules(t, "allow: ["+strings.Join(allowed, ", ")+"]")}
		if d := decide(t, q, shellTool, args(t, "command", text)); d.Verdict != permission.Ask {
			t.Errorf("%s: %s hides %s", text, one, other)
		}
		q.Rules = []permission.Rules{rules(t, "allow: ["+strings.Join(append(allowed, fmt.Sprintf("%q", "any write("+other+")")), ", ")+"]")}
		if d := decide(t, q, shellTool, args(t, "command", text)); apart && d.Verdict != permission.Allow {
			t.Errorf("%s, with %s and %s: %q", text, one, other, d.Reasons)
		}
	}
	for _, one := range places {
		for _, other := range places {
			if one == other {
				continue
			}
			for _, form := range []string{"pack %s %s", "pack %[2]s %[1]s", "pack --to=%s -o %s", "pack x; pack %s; pack %s", "bash -c 'pack %s %s'"} {
				check(fmt.Sprintf(form, one.name, other.name), one.rule, other.rule, true)
			}
			// Together the two may also be the name of a third one, which no rule allows.
			for _, form := range []string{"pack -o%s --to=%s", "X=%s pack %s", "pack %s,%s", "pack '%s %s'", "pack %s:%s", "pack a=%s,b=%s", "pack {%s,%s}", "python3 -c 'open(\"%s\",\"w\"); open(\"%s\",\"w\")'", "p=%s; p=%s; pack $p", "pack $(echo %s %s)"} {
				check(fmt.Sprintf(form, one.name, other.name), one.rule, other.rule, false)
			}
		}
	}
	for _, c := range [][3]string{ // text, allowed, other
		{"cd src && pack .git/config", ".git/**", "src/.git/**"},
		{"cd src && pack .git/config", "src/.git/**", ".git/**"},
		{"cd src && python3 -c 'open(\".git/config\")'", ".git/**", "src/.git/**"},
		{"cd src && python3 -c 'open(\"%s\" % \"+.git/config\")'", ".git/**", "src/.git/**"},
		{"pack .gi*/config src/.gi*/config", ".git/**", "src/.git/**"},
	} {
		check(c[0], c[1], c[2], true)
	}
}

// A pattern of files that may match more names than raddle looks at asks, whatever rule allows the command. Looking takes no longer than the limits
// allow. One with fewer names does not.
func TestWidePatternsAsk(t *testing.T) {
	p, _ := newProtectedRoom(t)
	p.Rules = []permission.Rules{rules(t, `allow: [execute_command, "execute_command(pack *)"]`)}
	for i := range 600 {
		testfile.WriteFile(t, filepath.Join(p.Workspace, "many", fmt.Sprintf("d%d", i%20), fmt.Sprintf("f%d", i)), "")
	}
	asks := []string{"pack */*/*", "pack /*/*/*/*", "pack */*/*/*/*/*/*/*", "pack many/*/*", "pack many/d*/f?*", "pack -o */*/*/x", "X=1 pack many/*/*", "pack many/[a-z]*/[a-z]*", "cd many && pack d*/f*",
		"bash -c 'pack many/*/*'", "find . -exec pack many/*/* ';'", "for f in many/*/*; do pack $f; done", "for f in " + strings.Repeat("x ", 101) + "; do pack $f; done", "p=many/*/*; pack $p", "pack /proc/*/*/*/*", "pack many/d*/*/*"}
	runs := []string{"pack many/*", "for f in many/d1/*; do pack $f; done", "for f in " + strings.Repeat("x ", 100) + "; do pack $f; done", "pack many/d1/*", "pack many/d1?/*", "pack 'many/*/*'", "pack many/\\*/\\*", "pack *.go", "pack many/*/f1*"}
	for text, want := range map[*[]string]permission.Verdict{&asks: permission.Ask, &runs: permission.Allow} {
		for _, text := range *text {
			d := decide(t, p, shellTool, args(t, "command", text))
			if d.Verdict != want {
				t.Errorf("%s: %v, want %v: %q", text, d.Verdict, want, d.Reasons)
			}
			if want == permission.Ask && !strings.Contains(strings.Join(d.Reasons, " "), "too many") {
				t.Errorf("%s: the reason is not said: %q", text, d.Reasons)
			}
		}
	}
}
