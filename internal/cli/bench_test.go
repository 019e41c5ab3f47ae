package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkColdStart measures the time that a command takes from its start to its end,
// in a program built as it is released. The goal for check is 50 ms.
func BenchmarkColdStart(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "raddle")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", exe, "raddle.dev/cmd/raddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"check", "../../examples/hello"},
		{"run", "-q", "../../examples/hello", "x"},
		{"version"},
	} {
		b.Run(args[0], func(b *testing.B) {
			env := append(surroundings(b.TempDir()), "PATH="+os.Getenv("PATH"))
			for b.Loop() {
				cmd := exec.Command(exe, args...)
				cmd.Env = env
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
