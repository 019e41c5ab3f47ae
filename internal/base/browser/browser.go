// Package browser opens the browser of the person at this machine.
package browser

import (
	"fmt"
	"os/exec"
	"runtime"

	"raddle.dev/internal/base/environ"
)

// opener returns the program that opens the browser, with its arguments.
func opener() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return []string{"xdg-open"}
}

// IsThere reports whether the person at this terminal would see a browser: not through SSH, and on Linux and BSD only
// on a desktop.
func IsThere(env environ.Environ) bool {
	if env.IsSet("SSH_CONNECTION") || env.IsSet("SSH_TTY") {
		return false
	}
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && env.Get("DISPLAY") == "" && env.Get("WAYLAND_DISPLAY") == "" {
		return false
	}
	_, err := exec.LookPath(opener()[0])
	return err == nil
}

// Open opens a file or an address. Other users of the machine can see it as the argument of a program. Open returns
// when the program that opens the browser has ended.
func Open(target string) error {
	program := opener()
	if err := exec.Command(program[0], append(program[1:], target)...).Run(); err != nil {
		return fmt.Errorf("open the browser with %s: %w", program[0], err)
	}
	return nil
}
