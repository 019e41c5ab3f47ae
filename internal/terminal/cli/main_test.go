//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A panic of raddle has an exit code of its own, and says what to do.
func TestAPanicHasItsOwnExitCode(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "err"))
	if err != nil {
		t.Fatal(err)
	}
	env := newEnvironment(os.Stdin, f, f)
	defer env.close()
	if code := runGuarded(env.Console, func() int { return 7 }); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if code := runGuarded(env.Console, func() int { panic("oops") }); code != 10 {
		t.Errorf("exit code %d", code)
	}
	text, err := os.ReadFile(f.Name())
	if err != nil || !strings.Contains(string(text), "raddle: internal error: panic: oops\n") || !strings.Contains(string(text), "main_test.go") || !strings.Contains(string(text), "\nnext: report it") {
		t.Errorf("%v\n%s", err, text)
	}
}
