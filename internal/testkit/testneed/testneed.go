// Package testneed lets tests say which programs they need.
//
// The list of programs, .ci/programs, has three groups. Any test may use those of the group base. A test that needs one
// of the group extra is named TestExtra…, one that needs something optional TestOptional…, and may need programs of the
// group extra too: make test runs neither, make test-all runs both.
package testneed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// RequirePrograms skips the test unless all programs are installed. It fails the test if .ci/programs does not allow
// the test to use one of them.
func RequirePrograms(t testing.TB, names ...string) {
	t.Helper()
	groups, err := readGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := mayUse(t.Name(), name, groups[name]); err != nil {
			t.Fatal(err)
		}
		if !isInstalled(name) {
			t.Skipf("%s is not installed", name)
		}
	}
}

// RequireClients skips the test unless .ci/prepare has installed the packages of a file:
// internal/testkit/clients/FOLDER/node_modules/.prepared or internal/testkit/clients/FOLDER/.venv/.prepared. The name
// of the test must begin with TestExtra.
func RequireClients(t testing.TB, file string) {
	t.Helper()
	if err := mayUse(t.Name(), filepath.ToSlash(file), "extra"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(FindRoot(), file)); err != nil {
		t.Skipf("the packages of %s are not installed: run .ci/prepare", filepath.Dir(filepath.Dir(file)))
	}
}

// mayUse returns an error if the test may not use a program of the group.
func mayUse(test, program, group string) error {
	prefix := map[string]string{"extra": "TestExtra", "optional": "TestOptional"}[group]
	if rest, ok := strings.CutPrefix(test, "Benchmark"); ok {
		test = "Test" + rest
	}
	rest, ok := strings.CutPrefix(test, prefix)
	// make test-all runs it with these programs
	if optional, is := strings.CutPrefix(test, "TestOptional"); group == "extra" && is {
		rest = optional
		ok = true
	}
	switch {
	case group == "":
		return fmt.Errorf("%s is not in .ci/programs: add it, and to the README if it is for make test", program)
	case !ok || prefix != "" && (rest == "" || rest[0] < 'A' || rest[0] > 'Z'): // TestExtract is not such a name
		return fmt.Errorf("%s is in the group %s of .ci/programs: only tests whose names begin with %s may need it", program, group, prefix)
	}
	return nil
}

func isInstalled(program string) bool {
	if FindProgram(program) != "" {
		return true
	}
	// npx finds it in places that are not in PATH
	return program == "tsx" && exec.Command("npx", "--no-install", "tsx", "--version").Run() == nil
}

// FindProgram returns the path of a program, or "" if it is not installed. Debian keeps the
// programs of PostgreSQL outside of PATH; of several versions it returns the last one. .ci/prepare
// builds programs in out/programs.
func FindProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if built, err := exec.LookPath(filepath.Join(FindRoot(), "out", "programs", name)); err == nil {
		return built
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// readGroups returns the group of each program of .ci/programs.
var readGroups = sync.OnceValues(func() (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(FindRoot(), ".ci", "programs"))
	if err != nil {
		return nil, err
	}
	groups := map[string]string{}
	for line := range strings.Lines(string(data)) {
		head, programs, ok := strings.Cut(line, ":")
		if ok && !strings.HasPrefix(line, "#") {
			group, _, _ := strings.Cut(head, " ")
			for _, program := range strings.Fields(programs) {
				groups[program] = group
			}
		}
	}
	return groups, nil
})

// Soaks reports whether tests of properties make all of their rounds, as they do in make soak, which sets RADDLE_SOAK.
// In make test they make few, so that it takes minutes.
func Soaks() bool { return os.Getenv("RADDLE_SOAK") != "" }

// FindRoot returns the directory of the repository.
func FindRoot() string { return root }

// root is found when the program starts, before a test changes its directory.
var root = findRoot()

// findRoot returns the directory above this file, or if the program was compiled with -trimpath and does not know it,
// the directory with go.mod in or above the one in which go test starts the tests of a package.
func findRoot() string {
	if _, file, _, _ := runtime.Caller(0); filepath.IsAbs(file) {
		return filepath.Join(filepath.Dir(file), "..", "..", "..")
	}
	start, err := os.Getwd()
	if err != nil {
		return "."
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return start
		}
	}
}
