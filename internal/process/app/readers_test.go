//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/skill"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term/excerpt"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/mcpsetup"
	"raddle.dev/internal/process/owncommand"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm/script"
	"raddle.dev/rag"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/declare"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/permission"
)

// A reader reads one file of a directory in the way of a part of the program.
type reader struct {
	of      string                                   // the functions that open the file, each with its file
	name    string                                   // of the file
	around  map[string]string                        // other files that must be there
	read    func(t *testing.T, dir string) (got any) // what was read, or the error
	beneath bool                                     // the file must lie beneath the directory
}

const scriptGraph = "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end}\n"

// both returns a text and an error as one value.
func both(text any, err error) any { return fmt.Sprint(text, " ", err) }

// readers are the readers of files that raddle finds by their names, or that a file or a request names.
func readers() []reader { return slices.Concat(agentReaders(), settingReaders(), toolReaders()) }

// agentReaders read the files of an agent.
func agentReaders() []reader {
	load := func(t *testing.T, dir string) any {
		a, err := flow.Load(dir, flow.Host{Workspace: t.TempDir()})
		if err != nil {
			return err
		}
		defer a.Close()
		files, err := a.BaseFiles(), a.Prepare(t.Context())
		return fmt.Sprint(a.Findings, a.Sources(), files, err)
	}
	pack := func(_ *testing.T, dir string) any {
		b, err := agentbundle.Pack([]agentbundle.Dir{{Name: "a", Path: dir}})
		return both(b, err)
	}
	return []reader{
		{of: "flow/load.go readFile", name: "graph.yaml", read: load},
		{of: "flow/load.go readFile", name: "config.yaml", read: load},
		{of: "flow/kind_script.go readScript, flow/source.go ReadSource", name: "s.sh", around: map[string]string{"graph.yaml": scriptGraph}, read: load},
		{of: "flow/knowledge_build.go openBase, flow/knowledge_file.go BaseFiles", name: "rag.yaml", around: map[string]string{"config.yaml": "name: a\ndocuments: [d.md]\nembedding_model: keyword\n", "d.md": "text"}, read: load},
		{of: "internal/storage/attach/attach.go Read", name: "a.txt", read: func(_ *testing.T, dir string) any {
			f, err := attach.Read(filepath.Join(dir, "a.txt"), "a.txt", 1<<20, true)
			return both(f, err)
		}},
		{of: "internal/storage/attach/attach.go ReadBeneath", name: "a.txt", read: func(_ *testing.T, dir string) any {
			f, err := attach.ReadBeneath(dir, "a.txt", "a.txt", 1<<20)
			return both(f, err)
		}, beneath: true},
		{of: "internal/storage/agentbundle/ignore.go addIgnoreFiles", name: ".gitignore", around: map[string]string{"graph.yaml": scriptGraph}, read: pack, beneath: true},
		{of: "internal/storage/agentbundle/pack.go addFile", name: "notes.txt", around: map[string]string{"graph.yaml": scriptGraph}, read: pack, beneath: true},
		{of: "internal/storage/agentbundle/pack.go findBases", name: "kb.yaml", around: map[string]string{"graph.yaml": scriptGraph}, read: pack, beneath: true},
	}
}

// settingReaders read what surrounds an agent, and what people write for raddle.
func settingReaders() []reader {
	gate := func(t *testing.T, dir string) any {
		p, err := app.Open(app.Options{Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}, Work: filepath.Join(dir, "work")})
		if err != nil {
			return err
		}
		defer p.Close()
		_, err = p.Tools.NewGate(p.Tools.NewToolbox(filepath.Join(dir, "work"), filepath.Join(dir, "work", "agent")), "", nil)
		return err
	}
	roles := func(_ *testing.T, dir string) any {
		p, err := app.Open(app.Options{Environ: []string{"HOME=" + dir, "RADDLE_CONFIG_DIR=" + filepath.Join(dir, "config")}, Work: dir})
		if err != nil {
			return err
		}
		defer p.Close()
		_, err = p.FindAgent("role:a")
		return both(p.ListRoles(), err)
	}
	commands := func(_ *testing.T, dir string) any {
		var all []any
		for _, c := range owncommand.List(filepath.Join(dir, "config"), filepath.Join(dir, "work")) {
			all = append(all, both(c.Expand("")))
		}
		return all
	}
	return []reader{
		{of: "internal/process/app/role.go ReadRole, internal/process/app/role.go ListRoles", name: "config/roles/a.md", read: roles},
		{of: "internal/process/app/role.go openRole", name: ".cache/raddle/roles/a/config.yaml", around: map[string]string{"config/roles/a.md": "x"}, read: roles},
		{of: "internal/process/owncommand/owncommand.go readFile", name: "work/.raddle/commands/a.md", read: commands},
		{of: "internal/process/owncommand/owncommand.go readFile", name: "config/macros/a.yaml", read: commands},
		{of: "internal/storage/config/config.go Load, internal/storage/config/explain.go ListSettings, internal/storage/config/write.go SetValue, internal/storage/config/write.go CheckFile, internal/storage/config/addclient.go AddClient, internal/storage/config/addentry.go ReadKey, internal/storage/config/addentry.go HasClient, internal/storage/config/addentry.go changeText", name: "config.yaml", read: func(t *testing.T, dir string) any {
			c, err1 := config.Load(dir, nil)
			list, err2 := config.ListSettings(config.Dirs{Config: dir}, nil)
			err3 := config.CheckFile(dir, nil)
			_, err4 := config.SetValue(dir, "model", "x", nil)
			_, there := config.ReadKey(dir, "model")
			err6 := config.AddKey(dir, "visible_skills", []string{"a"}, nil)
			has := config.HasClient(dir, "a")
			_, err5 := config.AddClient(dir, config.Client{Name: "new", Type: "openai"}, nil)
			return fmt.Sprint(c, err1, list, err2, err3, err4, err5, there, err6, has)
		}},
		{of: "internal/process/provider/facts.go readOwn", name: "models.json", read: func(_ *testing.T, dir string) any {
			about, err := provider.NewResolver(&config.Config{}, config.Dirs{Config: dir}, nil).Catalogue().About()
			return both(about, err)
		}},
		{of: "internal/process/provider/update.go readSource", name: "api.json", read: func(t *testing.T, dir string) any {
			about, err := provider.NewResolver(&config.Config{}, config.Dirs{Config: t.TempDir()}, nil).Catalogue().Update(t.Context(), filepath.Join(dir, "api.json"))
			return both(about, err)
		}},
		{of: "internal/base/interpreter/interpreter.go FindTypeScript", name: "tsconfig.json", around: map[string]string{"x.ts": ""}, read: func(t *testing.T, dir string) any {
			_, args, err := interpreter.Search{Path: os.Getenv("PATH")}.FindTypeScript(filepath.Join(dir, "x.ts"), t.TempDir())
			return both(args, err)
		}},
		{of: "internal/storage/runfile/file.go Load", name: "run.raddle", read: func(_ *testing.T, dir string) any {
			f, err := runfile.Load(filepath.Join(dir, "run.raddle"))
			return both(f, err)
		}},
		{of: "internal/base/skill/skill.go ReadFile", name: "s/SKILL.md", read: func(_ *testing.T, dir string) any {
			skills, problems := skill.ReadSkills(dir, dir)
			return fmt.Sprint(skills, problems)
		}, beneath: true},
		{of: "internal/base/skill/skill.go ReadFile", name: "s/more.md", around: map[string]string{"s/SKILL.md": "---\nname: s\ndescription: d\n---\n"}, read: func(_ *testing.T, dir string) any {
			text, err := skill.Skill{Dir: filepath.Join(dir, "s"), Root: dir}.ReadFile("more.md")
			return both(text, err)
		}, beneath: true},
		{of: "internal/base/term/excerpt/excerpt.go FormatExcerpt", name: "x.yaml", read: func(_ *testing.T, dir string) any {
			return excerpt.Look{}.FormatExcerpt(strictyaml.Finding{Pos: strictyaml.Pos{File: filepath.Join(dir, "x.yaml"), Line: 1, Col: 1}})
		}},
		{of: "internal/proving/testcase/case.go Load", name: "x.test.yaml", read: func(_ *testing.T, dir string) any {
			f, err := testcase.Load(filepath.Join(dir, "x.test.yaml"))
			return both(f, err)
		}},
		{of: "internal/process/toolbox/gate.go rulesOf", name: "home/.config/raddle/permissions.yaml", around: map[string]string{"work/x": ""}, read: gate},
		{of: "internal/process/toolbox/gate.go NewGate", name: "work/.raddle/permissions.yaml", around: map[string]string{"home/x": ""}, read: gate, beneath: true},
		{of: "internal/process/toolbox/gate.go LoadRulesFile", name: "rules.yaml", read: func(_ *testing.T, dir string) any {
			rules, err := toolbox.LoadRulesFile(filepath.Join(dir, "rules.yaml"), "rules.yaml")
			return both(rules, err)
		}},
		{of: "llm/script/transcript.go Open", name: "t.yaml", read: func(_ *testing.T, dir string) any {
			tr, err := script.Open(filepath.Join(dir, "t.yaml"))
			return both(tr != nil, err)
		}},
		{of: "llm/script/transcript.go OpenBeneath", name: "t.yaml", read: func(_ *testing.T, dir string) any {
			tr, err := script.OpenBeneath(dir, "t.yaml")
			if tr != nil {
				return "it is read"
			}
			return err
		}, beneath: true},
	}
}

// toolReaders read what tools and their permissions need.
func toolReaders() []reader {
	decide := func(command string) func(t *testing.T, dir string) any {
		return func(t *testing.T, dir string) any {
			p := permission.Policy{Workspace: dir}
			d, err := p.Decide(t.Context(), tool.Tool{Name: "execute_command", Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Commands: []string{command}}, nil }}, tool.Call{})
			return both(d.Reasons, err)
		}
	}
	use := func(name, args string) func(t *testing.T, dir string) any {
		return func(t *testing.T, dir string) any {
			tl, ok := builtin.Lookup(name, builtin.Host{Workspace: dir, Env: os.Environ()})
			if !ok {
				t.Fatal(name)
			}
			r, err := tl.Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
			return both(r.Text(), err)
		}
	}
	return []reader{
		{of: "rag/yaml.go isYAML, rag/yaml.go readYAML", name: "kb.db", read: func(_ *testing.T, dir string) any {
			b, err := rag.Open(filepath.Join(dir, "kb.db"), rag.Options{})
			if err != nil {
				return err
			}
			return b.Close()
		}},
		{of: "tool/builtin/files.go readFile", name: "a.txt", read: use("fs_cat", `{"path":"a.txt"}`)},
		{of: "tool/builtin/find.go searchFile", name: "a.txt", around: map[string]string{"b.txt": "x"}, read: use("fs_grep", `{"pattern":"x","path":"."}`)},
		{of: "tool/builtin/change.go readImage", name: "a.txt", read: func(_ *testing.T, dir string) any {
			return builtin.Preview(builtin.Host{Workspace: dir}, tool.Call{Args: json.RawMessage(`{"path":"a.txt","contents":"y"}`)}, "fs_write")
		}},
		{of: "tool/declare/declare.go Load, tool/script/host.go guardLines", name: "tools.sh", read: func(_ *testing.T, dir string) any {
			f := declare.Load(filepath.Join(dir, "tools.sh"))
			return fmt.Sprint(f.Declarations, f.Problems)
		}},
		{of: "internal/process/mcpsetup/file.go readServers", name: "mcp.json", read: func(_ *testing.T, dir string) any {
			there, err := mcpsetup.RemoveServer(filepath.Join(dir, "mcp.json"), "x")
			return both(there, err)
		}},
		{of: "internal/process/toolbox/project.go readProject", name: ".mcp.json", read: func(t *testing.T, dir string) any {
			own := t.TempDir()
			s := toolbox.NewShared(config.Dirs{Work: dir, Config: own, Functions: own, State: own}, &config.Config{}, environ.Environ{}, nil)
			list, err := s.ListServers()
			return both(list, err)
		}, beneath: true},
		{of: "tool/mcp/file.go Load", name: "mcp.json", read: func(_ *testing.T, dir string) any {
			f, err := mcp.Load(filepath.Join(dir, "mcp.json"))
			return both(f, err)
		}},
		{of: "tool/permission/consent.go loadConsents", name: "consent.json", read: func(_ *testing.T, dir string) any {
			has, err := permission.Consents{Path: filepath.Join(dir, "consent.json")}.HasConsent(dir, "x")
			return both(has, err)
		}},
		{of: "tool/permission/remember.go AddRules", name: "permissions.yaml", read: func(_ *testing.T, dir string) any {
			return permission.RememberRules(filepath.Join(dir, "permissions.yaml"), []string{"ls"})
		}},
		{of: "tool/permission/digest.go addFile", name: "x.sh", read: func(_ *testing.T, dir string) any {
			digest, files, err := permission.Digest(dir)
			return fmt.Sprint(digest, files, err)
		}},
		{of: "tool/permission/digest.go addFile", name: "x", read: func(_ *testing.T, dir string) any {
			digest, err := permission.DigestTree(dir, dir)
			return both(digest, err)
		}},
		{of: "tool/permission/content.go addContent", name: "x.sh", read: decide("bash x.sh")},
		{of: "tool/permission/content.go addContent", name: "package.json", read: decide("npm run x")},
	}
}

// elsewhere says of the other functions that open such files why they have no row.
var elsewhere = map[string]string{
	"internal/base/release/origin.go readMark":                 "what a package has put next to the program, with a limit",
	"internal/terminal/updateview/notice.go readMemo":          "a file that it has made itself, with a limit",
	"internal/proving/dataset/read.go Load":                    "the person names the data set, with a limit",
	"internal/proving/experiment/result.go readFiles":          "TestUnusableVariants in package experiment",
	"internal/proving/experiment/variant.go readValue":         "the person names the file, with a limit",
	"internal/terminal/evalview/dataset.go Run":                "the person names the data set, with a limit",
	"internal/terminal/evalview/eval.go readScorers":           "the person names the file, with a limit",
	"internal/terminal/ragview/eval.go RunEval":                "the person names the file, with a limit",
	"internal/proving/chaos/child.go readLog":                  "a file that raddle chaos has made itself",
	"internal/proving/chaos/world.go Rehearse":                 "a file that raddle chaos has made itself",
	"internal/proving/chaos/world.go readEffects":              "files that raddle chaos has made itself",
	"internal/process/fetchagent/fetchagent.go readArchive":    "the person names the archive, with a limit",
	"internal/terminal/language/workspace.go readInside":       "TestServerReadsOnlyFilesOfTheAgent in package lspview",
	"internal/terminal/language/workspace.go readText":         "what raddle check has read, with a limit",
	"internal/terminal/lspview/lspview.go formatFile":          "the person names the file, with a limit",
	"internal/terminal/chat/cmd_own.go askForProject":          "beneath the workspace, with a limit",
	"internal/terminal/moving/source.go readText":              "TestTraps in package moving",
	"internal/terminal/moving/source.go copyDir":               "TestTraps in package moving",
	"internal/terminal/moving/write.go compareWith":            "with a limit, in raddle's own directories",
	"internal/process/bundle/unpack.go IsUnchanged":            "TestUnchangedCopies in package bundle",
	"flow/project.go readProjectFile":                          "TestProjectFileStaysInTheWorkspace in package flow",
	"internal/base/box/attack.go AttackBox":                    "a file that it has made itself",
	"internal/base/box/layered_linux.go hasMounts":             "a file of the system",
	"internal/base/box/baseline_linux.go readKept":             "a protected file, after a look at its kind and its size",
	"internal/base/box/baseline_linux.go read":                 "a file that it has made itself",
	"internal/base/box/copies_linux.go refresh":                "a small file of the workspace, after a look at its kind and its size",
	"internal/base/box/layer_linux.go isSame":                  "what a command has written, after a look at its kind and its size",
	"tool/permission/boxgit.go readGitFile":                    "what a command has written, after a look at its kind and its size",
	"internal/base/box/layer_linux.go copyFile":                "what a command has written, after a look at its kind",
	"internal/process/toolbox/boxes.go isPlainSettings":        "the user's own home directory has the file",
	"internal/process/toolbox/hooks.go readProjectHooks":       "beneath the workspace, with a limit",
	"internal/process/toolbox/trusted.go compareTrusted":       "a file that raddle has written, with a limit",
	"internal/process/toolbox/trusted.go readTrusted":          "beneath the directory that asks for consent, with a limit",
	"tool/builtin/boxed.go readRegular":                        "after a look at its kind and its size",
	"tool/builtin/jobs.go readRecords":                         "a file that raddle has written, with a limit",
	"internal/process/cloudkey/awsfile.go readSections":        "the user's own environment or home directory names the file",
	"internal/process/cloudkey/awssession.go readSessionToken": "the user's own home directory has the file",
	"internal/process/cloudkey/awssession.go instanceRequest":  "the user's own environment names the file",
	"internal/process/cloudkey/google.go readFile":             "the user's own environment or home directory names the file",
	"internal/terminal/doctor/doctor.go CheckStore":            "the store is open by then",
	"internal/proving/replay/replay.go copyAgent":              "the files of an agent that was loaded: flow/load.go has a row",
	"internal/storage/runfile/collect.go readAgentFile":        "the files of an agent that was loaded: flow/source.go has a row",
	"internal/process/telemetry/settings.go readCertificates":  "the user's own environment names the file",
	"internal/proving/testrun/crashdiff.go readTree":           "what a test has written into its own copy",
	"internal/proving/testrun/scratch.go copyFile":             "after a look at its kind and its size, with a limit for all",
	"internal/process/toolbox/codepaths.go namedBeside":        "the files of a digest: tool/permission/digest.go has a row",
	"internal/process/toolbox/syntax.go lastLine":              "a script that its interpreter has read",
	"internal/process/toolbox/syntax.go findColumn":            "a script that its interpreter has read",
	"llm/script/record.go readTranscript":                      "the file is opened before: llm/script/transcript.go has a row",
	"rag/load/local.go readFile":                               "TestDocumentsThatAreNoFilesWhenTheyAreRead in package load",
	"server/api/catalogue.go readFile":                         "the files of an agent that was loaded, up to a limit: flow/source.go has a row",
	"tool/permission/repository.go readSmallFile":              "a file that git keeps, after a look at its kind",
	"tool/script/boxed.go fetchOutput":                         "TestScriptsOfOthersInTheBox in package cli",
	"tool/script/environment.go ReadDotenv":                    "TestDotenvStaysInItsDirectory in package script",
	"tool/script/environment.go refuseTooLarge":                "a script that was declared: tool/declare has a row",
	"tool/script/environment.go utilsRoot":                     "a script that was declared: tool/declare has a row",
	"tool/script/output.go readOutput":                         "TestResults in package script",
	"tool/script/output.go readJSON":                           "TestResults in package script",
}

// openers lists the functions of the program that open files with package plainfile, each with its file.
func openers(t *testing.T) (list []string) {
	t.Helper()
	root := testneed.FindRoot()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"node_modules", "testdata", "temporal", "out", "plainfile"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || !strings.HasPrefix(sel.Sel.Name, "Read") && !strings.HasPrefix(sel.Sel.Name, "Open") {
					return true
				}
				key := filepath.ToSlash(rel) + " " + fn.Name.Name
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == "plainfile" && !slices.Contains(list, key) {
					list = append(list, key)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every function that opens a file which was found has a row in readers, or a reason.
func TestEveryReaderHasARow(t *testing.T) {
	has := map[string]bool{}
	for _, r := range readers() {
		for of := range strings.SplitSeq(r.of, ", ") {
			has[of] = true
		}
	}
	found := openers(t)
	for _, key := range found {
		if has[key] == (elsewhere[key] != "") {
			t.Errorf("%s opens a file: give it a row in readers, or a reason in elsewhere", key)
		}
	}
	for key := range elsewhere {
		has[key] = true
	}
	for key := range has {
		if !slices.Contains(found, key) {
			t.Errorf("%s opens no file: delete its row", key)
		}
	}
}

// readWithin returns what a reader reads, and fails the test if it waits or reads without an end.
func readWithin(t *testing.T, r reader, dir string) string {
	t.Helper()
	got := make(chan any, 1)
	go func() { got <- r.read(t, dir) }()
	select {
	case text := <-got:
		return fmt.Sprint(text)
	case <-time.After(20 * time.Second):
		t.Fatalf("%s waits for %s", r.of, r.name)
		return ""
	}
}

// No reader waits for what is not a file, or reads one without an end, and none panics.
func TestReadersDoNotWait(t *testing.T) {
	for _, r := range readers() {
		for _, trap := range testfile.Traps() {
			t.Run(r.name+" "+trap.Name, func(t *testing.T) {
				dir := t.TempDir()
				testfile.WriteFiles(t, dir, r.around)
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, r.name)), 0o755); err != nil {
					t.Fatal(err)
				}
				trap.Put(t, filepath.Join(dir, r.name))
				readWithin(t, r, dir)
			})
		}
	}
}

// No reader of a file that belongs to a directory reads one outside of it.
func TestReadersStayBeneath(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	const secret = "---\nname: s\ndescription: words that are private\n---\nallow: [private]\n"
	testfile.WriteFile(t, outside, secret)
	for _, r := range readers() {
		if !r.beneath {
			continue
		}
		for _, way := range testfile.WaysOut() {
			t.Run(r.name+" "+way.Name, func(t *testing.T) {
				dir := t.TempDir()
				testfile.WriteFiles(t, dir, r.around)
				way.Put(t, dir, r.name, outside)
				if got := readWithin(t, r, dir); strings.Contains(got, "private") || got == "it is read" {
					t.Errorf("%s has read %s: %s", r.of, r.name, got)
				}
			})
		}
	}
}
