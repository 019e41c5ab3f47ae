package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheEngineBringsNothingWithIt builds another module that imports only the engine: it gets the engine with its own internal packages, and
// otherwise no package from outside the standard library and no line in its go.sum.
func TestTheEngineBringsNothingWithIt(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(own), "\ngo ")
	version, _, _ = strings.Cut(version, "\n")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	write("go.mod", "module example.com/user\n\ngo "+version+"\n\nrequire "+modulePath+" v0.0.0\n\nreplace "+modulePath+" => "+root+"\n")
	write("main.go", "package main\n\nimport \""+modulePath+"/graph\"\n\nfunc main() { _ = graph.Runner{} }\n")
	run("build", "-o", os.DevNull, ".")
	for _, p := range strings.Fields(run("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")) {
		if p != "example.com/user" && p != modulePath+"/graph" && !strings.HasPrefix(p, modulePath+"/graph/") {
			t.Errorf("a module that imports %s/graph gets %s too", modulePath, p)
		}
	}
	if sum, err := os.ReadFile(filepath.Join(dir, "go.sum")); err == nil && len(sum) > 0 {
		t.Errorf("a module that imports only %s/graph gets a go.sum:\n%s", modulePath, sum)
	}
}

// TestTheModuleDoesNotKnowTemporal keeps Temporal in its own module, which imports this one.
func TestTheModuleDoesNotKnowTemporal(t *testing.T) {
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, module := range []string{"go.temporal.io/", modulePath + "/temporal"} {
			if strings.Contains(string(text), module) {
				t.Errorf("%s names %s: only temporal/go.mod may", file, module)
			}
		}
	}
}
