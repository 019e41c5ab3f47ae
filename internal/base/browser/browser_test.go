package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"raddle.dev/internal/base/environ"
)

func TestIsThere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a program that stands in for xdg-open is found on Linux only")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, test := range []struct {
		env  environ.Environ
		want bool
	}{{nil, false}, {environ.Environ{"DISPLAY=:0"}, true}, {environ.Environ{"WAYLAND_DISPLAY=w"}, true}, {environ.Environ{"DISPLAY=:0", "SSH_CONNECTION=a"}, false}} {
		if got := IsThere(test.env); got != test.want {
			t.Errorf("%v: %v", test.env, got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if IsThere(environ.Environ{"DISPLAY=:0"}) {
		t.Error("without xdg-open")
	}
}
