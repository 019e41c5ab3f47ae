//go:build unix

package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// lendingScript, when set, makes the test binary a parent that lends its terminal to this script, says how that ended, and then reads
// a line itself.
const lendingScript = "RADDLE_TEST_LENDING_SCRIPT"

func lendTerminal(script string) int {
	c := bash(script)
	c.Grace = 100 * time.Millisecond
	c.Terminal = &Terminal{In: os.Stdin, Out: os.Stderr, Suspended: func() {
		fmt.Printf("suspended, foreground %v\n", inForeground())
		readLine()
	}}
	if os.Getenv(lendingScript+"_TIMEOUT") != "" {
		c.Timeout = 300 * time.Millisecond
	}
	if os.Getenv(lendingScript+"_MISSING") != "" {
		// The child gets the terminal before the system finds that it cannot run this.
		c.Path = os.Getenv(lendingScript + "_MISSING")
	}
	_, err := Run(context.Background(), c)
	fmt.Printf("ended: %v, foreground %v\n", err, inForeground())
	fmt.Printf("the parent read %q\n", readLine())
	return 0
}

func inForeground() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func readLine() string {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return strings.TrimSpace(line)
}

// A scene is a parent on a terminal of its own.
type scene struct {
	t   *testing.T
	tty *os.File

	mu   sync.Mutex
	more sync.Cond
	text string
	over bool
}

func openScene(t *testing.T, script string, env ...string) *scene {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), lendingScript+"="+script), env...)
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, tty: tty}
	s.more.L = &s.mu
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.over = err != nil
			s.more.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); tty.Close() })
	return s
}

func (s *scene) await(text string) {
	s.t.Helper()
	late := time.AfterFunc(20*time.Second, func() {
		s.mu.Lock()
		s.over = true
		s.more.Broadcast()
		s.mu.Unlock()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text, text) {
		if s.over {
			s.t.Fatalf("%q is not on the terminal:\n%s", text, s.text)
		}
		s.more.Wait()
	}
}

func (s *scene) press(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestLendTerminal(t *testing.T) {
	file := t.TempDir() + "/no-program"
	if err := os.WriteFile(file, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		script string
		env    string
		keys   func(s *scene)
		want   string
	}{
		"an answer": {script: `read -r -p "name? " x; echo "hello $x" >&2`, keys: func(s *scene) {
			s.await("name? ")
			s.press("Ada\n")
			s.await("hello Ada")
		}, want: "ended: <nil>, foreground true"},
		"stdout is the screen": {script: `[[ -t 0 && -t 1 && -t 2 ]] && echo three`, keys: func(s *scene) { s.await("three") }, want: "ended: <nil>, foreground true"},
		"Ctrl-C": {script: `read -r -p "name? " x; echo not reached`, keys: func(s *scene) {
			s.await("name? ")
			s.press("\x03")
		}, want: "ended: bash was ended by SIGINT, foreground true"},
		"killed":  {script: `kill -KILL $$`, want: "ended: bash was ended by SIGKILL, foreground true"},
		"timeout": {script: `trap '' TERM; while :; do sleep 1; done`, env: lendingScript + "_TIMEOUT=yes", want: "ended: bash timed out after 300ms, foreground true"},
		"not started": {script: `:`, env: lendingScript + "_MISSING=" + file,
			want: "no such file or directory, foreground true"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			s := openScene(t, c.script, c.env)
			if c.keys != nil {
				c.keys(s)
			}
			s.await(c.want)
			s.press("more\n")
			s.await(`the parent read "more"`)
		})
	}
}
