package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fileOpeners are the functions that open or read a file by its path, by the package that has them. Each may wait for a pipe, read without an
// end, or follow a link to anywhere.
var fileOpeners = map[string][]string{
	"os":        {"ReadFile", "Open", "OpenFile", "OpenRoot", "OpenInRoot", "DirFS", "CopyFS"},
	"io/fs":     {"ReadFile"},
	"io/ioutil": {"ReadFile", "ReadAll", "ReadDir"},
	"syscall":   {"Open", "Openat"},

	"golang.org/x/sys/unix": {"Open", "Openat", "Openat2"},
}

// ownOpeners are the functions that rightly open files in another way than internal/base/plainfile, with the reason. The key is the file and the
// function around the call.
var ownOpeners = map[string]string{
	"flow/config_text.go distroName":                        "a fixed file of the system",
	"graph/internal/process/process_linux.go hostID":        "fixed files of the system; the engine imports the standard library only",
	"graph/internal/process/process_linux.go processStart":  "the kernel's file of a process; the engine imports the standard library only",
	"internal/storage/agentbundle/cache.go verifyDir":       "a directory that raddle made, opened as a root",
	"internal/storage/agentbundle/cache.go write":           "a directory that raddle makes, opened as a root",
	"internal/process/bundle/install.go isInstalledUnit":    "files that raddle installs, in the user's own directory",
	"internal/process/bundle/install.go readCurrent":        "files that raddle installs, after a look at what is there",
	"internal/process/bundle/manifest.go readManifest":      "a list that raddle writes",
	"internal/terminal/chat/keys.go editElsewhere":          "a temporary file that raddle made for the user's editor",
	"internal/process/conversation/rewind.go rewindFiles":   "the workspace as a root, below which raddle restores files",
	"internal/storage/keystore/keystore.go readFile":        "a file that raddle writes",
	"internal/base/proc/look_linux.go a variable":           "a fixed file of the kernel",
	"internal/base/proc/look_linux.go inspectProcess":       "the kernel's file of a process",
	"internal/base/proc/mark_linux.go allProcesses":         "a fixed directory of the kernel",
	"internal/base/proc/mark_linux.go hasMark":              "the kernel's files of a process",
	"internal/base/proc/mark_linux.go isStarting":           "the kernel's file of a process",
	"internal/base/proc/mark_linux.go lastProcess":          "a fixed file of the kernel",
	"internal/storage/runs/lock.go readLockHolder":          "a file that raddle writes",
	"internal/storage/runs/lock_flock.go lockFile":          "a file that raddle writes",
	"internal/storage/runs/lock_flock.go tryLock":           "a file that raddle writes",
	"internal/storage/runs/lock_other.go lockFile":          "a file that raddle writes",
	"internal/storage/runs/lock_windows.go lockFile":        "a file that raddle writes",
	"internal/storage/runs/lock_windows.go tryLock":         "a file that raddle writes",
	"internal/terminal/setup/steps.go askCompletion":        "the user's own start file of the shell, which the user agreed to change",
	"internal/base/box/baseline_linux.go moveTree":          "a directory or link that a command made, which is copied without following links",
	"internal/base/box/confined_linux.go beginCommands":     "raddle's own lock",
	"internal/base/box/confined_linux.go settle":            "the workspace, beneath which changes are made",
	"internal/base/box/confinedchild_linux.go startGuard":   "the null device",
	"internal/base/box/confinedchild_linux.go allowReading": "a directory, which is listed",
	"internal/base/box/confinedchild_linux.go allowEntry":   "a place only",
	"internal/base/box/deputy_linux.go openNamed":           "a place only",
	"internal/base/box/deputy_linux.go openAs":              "a place only",
	"internal/base/box/landlock_linux.go allowPath":         "a place only",
	"internal/base/box/child_linux.go mountOverlay":         "a directory, as a place only",
	"internal/base/box/layer_linux.go gatherRemains":        "the workspace, beneath which changes are made",
	"internal/base/box/layer_linux.go copyFile":             "a new file is written",
	"internal/base/tempdir/tempdir.go RemoveStaleIn":        "a directory that raddle made",
	"internal/base/term/editor/history.go OpenHistory":      "a file that raddle writes",
	"examples/examples.go CopyTo":                           "files that are part of the program",
	"examples/examples.go UnpackAll":                        "files that are part of the program",
	"llm/script/lock_flock.go lock":                         "a directory, which is locked and not read",
	"server/breaks.go readBreaks":                           "a file that raddle writes, in its own directory",
	"server/files.go readMark":                              "a file that raddle writes, in its own directory",
	"server/files.go syncDir":                               "a directory that raddle made, which is not read",
	"server/gateway/login.go serveLoginFile":                "files that are part of the program",
	"server/gateway/tokens.go readOld":                      "a file that raddle writes, in its own directory",
	"server/gateway/tokens.go ReadFirst":                    "a file that raddle writes, in its own directory",
	"tool/script/helpers.go PromptUtils":                    "a file that raddle writes, in its own directory",
}

// TestFilesAreOpenedInOnePlace finds code that opens a file with a function of the standard library.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	left := maps.Clone(ownOpeners)
	for _, p := range packages(t) {
		if p.name == openFiles || isForTests(p.name) {
			continue
		}
		for _, f := range p.code() {
			for _, o := range findOpeners(f) {
				if ownOpeners[o.key] == "" {
					t.Errorf("%s:%d: %s waits for pipes, reads without an end and follows links to anywhere: use package %s, or add %q to ownOpeners (files_test.go) with the reason",
						f.path, o.line, o.name, openFiles, o.key)
				}
				delete(left, o.key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("ownOpeners has an entry %q, which opens no file: delete it", key)
	}
}

// isForTests reports whether a package is part of tests, of programs to read, or of measurements: they read no files of others.
func isForTests(name string) bool {
	return strings.HasSuffix(name, "test") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench") || slices.Contains([]string{"internal/testkit/testneed", "internal/testkit/testfile"}, name)
}

// An opener is a place that names a function that opens files.
type opener struct {
	key, name string
	line      int
}

// findOpeners finds the functions that open files in a file, also where they are not called but passed on. A call of os.OpenFile that opens for
// writing is none.
func findOpeners(f *goFile) (found []opener) {
	names := map[string]string{} // the packages of fileOpeners, by their names in the file
	for _, spec := range f.syntax.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if fileOpeners[path] == nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	for _, d := range f.syntax.Decls {
		around := "a variable"
		if fn, ok := d.(*ast.FuncDecl); ok {
			around = fn.Name.Name
		}
		writes := map[ast.Expr]bool{}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 3 && opensForWriting(call.Args[1]) {
				writes[call.Fun] = true
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || writes[sel] {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && slices.Contains(fileOpeners[names[id.Name]], sel.Sel.Name) {
				found = append(found, opener{f.path + " " + around, id.Name + "." + sel.Sel.Name, f.line(n)})
			}
			return true
		})
	}
	return found
}

// opensForWriting reports whether flags of os.OpenFile open a file only to write it, or a new one. A file that is opened to be read and written is read.
func opensForWriting(flags ast.Expr) bool {
	var names []string
	ast.Inspect(flags, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return slices.Contains(names, "O_WRONLY") || slices.Contains(names, "O_CREATE") && slices.Contains(names, "O_EXCL")
}

// TestOpenersAreFound compares what findOpeners finds in small sources with what reads files in them.
func TestOpenersAreFound(t *testing.T) {
	const head = "package p\nimport (\"os\"; files \"io/fs\"; \"syscall\"; \"golang.org/x/sys/unix\")\n"
	for source, want := range map[string]string{
		`func f() { os.ReadFile("x") }`:                                             "os.ReadFile",
		`func f() { os.Open("x") }`:                                                 "os.Open",
		`func f() { os.OpenFile("x", os.O_RDONLY, 0) }`:                             "os.OpenFile",
		`func f() { os.OpenFile("x", os.O_RDWR, 0) }`:                               "os.OpenFile",
		`func f() { os.OpenFile("x", os.O_RDWR|os.O_CREATE, 0o600) }`:               "os.OpenFile",
		`func f() { os.OpenFile("x", os.O_RDWR|syscall.O_NONBLOCK, 0) }`:            "os.OpenFile",
		`func f() { os.OpenFile("x", flags, 0) }`:                                   "os.OpenFile",
		`func f() { os.OpenFile("x", os.O_WRONLY|os.O_APPEND, 0) }`:                 "",
		`func f() { os.OpenFile("x", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0) }`:      "",
		`func f() { os.OpenFile("x", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0) }`:         "",
		`func f() { g(os.ReadFile) }`:                                               "os.ReadFile",
		`func f() { open := os.OpenFile; open("x", os.O_WRONLY, 0) }`:               "os.OpenFile",
		`var read = os.ReadFile`:                                                    "os.ReadFile",
		`func f() { files.ReadFile(nil, "x") }`:                                     "files.ReadFile",
		`func f() { os.DirFS("x"); os.OpenRoot("x"); os.OpenInRoot("x", "y") }`:     "os.DirFS os.OpenRoot os.OpenInRoot",
		`func f() { syscall.Open("x", syscall.O_RDONLY, 0); unix.Open("x", 0, 0) }`: "syscall.Open unix.Open",
		`func f() { os.Stat("x"); os.WriteFile("x", nil, 0); os.Remove("x") }`:      "",
		`func f() { var os struct{ X int }; _ = os.X }`:                             "",
	} {
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, "x.go", head+source, 0)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		var names []string
		for _, o := range findOpeners(&goFile{path: "x.go", syntax: syntax, fset: fset}) {
			names = append(names, o.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: found %q, want %q", source, got, want)
		}
	}
}
