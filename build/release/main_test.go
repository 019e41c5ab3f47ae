package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeModule makes a repository with a module that has a command and no dependencies.
func makeModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/tool\n\ngo 1.26.0\n",
		"cmd/tool/main.go":  "package main\n\nfunc main() { println(\"installed\") }\n",
		"LICENSE":           "terms\n",
		"nested/go.mod":     "module example.com/tool/nested\n",
		"nested/nested.txt": "not part of it\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "uncommitted.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestModuleArchiveCanBeInstalled installs a command from the archive alone.
func TestModuleArchiveCanBeInstalled(t *testing.T) {
	proxy, bin, cache := t.TempDir(), t.TempDir(), t.TempDir()
	if err := writeModule(makeModule(t), "v0.3.0", proxy); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "install", "example.com/tool/cmd/tool@v0.3.0")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy), "GONOSUMDB=example.com", "GOBIN="+bin,
		"GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := filepath.Join(bin, "tool")
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || string(out) != "installed\n" {
		t.Errorf("%q, %v", out, err)
	}
	for _, name := range []string{"nested/nested.txt", "uncommitted.txt"} {
		if _, err := os.Stat(filepath.Join(cache, "example.com", "tool@v0.3.0", name)); err == nil {
			t.Errorf("%s is in the archive", name)
		}
	}
	if err := writeModule(".", "0.3", proxy); err == nil || !strings.Contains(err.Error(), "not a version") {
		t.Errorf("a version without v was taken: %v", err)
	}
}

// TestBillOfMaterials reads the bill of a program that is built from modules: this test.
func TestBillOfMaterials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sbom.json")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeBill(program, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.Format != "CycloneDX" {
		t.Fatalf("%v in %s", err, text)
	}
	found := false
	for _, c := range bill.Components {
		found = found || c.Name == "golang.org/x/mod" && strings.HasPrefix(c.Version, "v") && c.Purl != ""
	}
	if !found {
		t.Errorf("golang.org/x/mod is missing in %s", text)
	}
	if err := writeBill(os.DevNull, file); err == nil {
		t.Error("a file that is no program was taken")
	}
}

// TestLicenseFiles: the terms of a module are found under their usual names.
func TestLicenseFiles(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	for _, name := range []string{"LICENSE", "LICENSE-MIT", "Licence.txt", "COPYING.md", "NOTICE", "licenses_test.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := copyMatching(from, to); err != nil || n != 5 {
		t.Errorf("%d files, %v", n, err)
	}
	if n, err := copyMatching(t.TempDir(), to); err != nil || n != 0 {
		t.Errorf("%d files in an empty directory, %v", n, err)
	}
}
