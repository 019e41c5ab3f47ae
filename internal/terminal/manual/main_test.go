package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteManual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1750000000")
	dir := t.TempDir()
	if err := writeManual(dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"man/raddle.1":            "raddle examples run hello",
		"man/raddle-run.1":        "--dry-run",
		"man/raddle-runs-show.1":  "raddle-runs(1)",
		"completions/raddle.bash": "__start_raddle",
		"completions/_raddle":     "#compdef raddle",
		"completions/raddle.fish": "complete -c raddle",
		"completions/raddle.ps1":  "Register-ArgumentCompleter",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), want) {
			t.Errorf("%s does not contain %q:\n%.600s", file, want, text)
		}
	}
}
