//go:build unix

package chaos

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"raddle.dev/internal/base/plainfile"
)

// A child is a raddle serve that is hurt. Its process changes with each restart.
type child struct {
	n       int // its number, from 0
	program string
	env     []string
	work    string // its working directory
	world   string // the file for --rehearse
	logFile string
	proxy   *proxy // nil: its store is not reached through one

	mu      sync.Mutex // guards the fields below
	cmd     *exec.Cmd  // nil: no process
	life    io.Closer  // the process ends when it is closed
	ended   chan struct{}
	address string // of the running process; "": it does not serve
}

// startWait is how long a server may take until it listens.
const startWait = 30 * time.Second

// start starts the process and waits until it listens.
func (c *child) start() error {
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.program, "serve", "--listen", "127.0.0.1:0", "--user-header", userHeader, "--rehearse", c.world, "--grace", "5s", "--log-level", "warn")
	cmd.Args[0] = "raddle" // also if the program is a test
	cmd.Dir = c.work
	cmd.Env = c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the command
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	c.mu.Lock()
	c.cmd, c.life, c.ended, c.address = cmd, life, ended, ""
	c.mu.Unlock()
	first := make(chan string, 1)
	go func() {
		readSaid(said, c.logFile, first)
		_ = cmd.Wait() // how it ends does not matter: most are killed
		close(ended)
	}()
	select {
	case address := <-first:
		if address == "" {
			<-ended
			return fmt.Errorf("server %d ended before it listened:\n%s", c.n+1, c.readLog())
		}
		c.mu.Lock()
		c.address = address
		c.mu.Unlock()
		return nil
	case <-time.After(startWait):
		c.kill()
		return fmt.Errorf("server %d did not listen after %v:\n%s", c.n+1, startWait, c.readLog())
	}
}

// readSaid appends what a server says to its log, and sends the address at which it listens; "": it does not.
func readSaid(said io.Reader, logFile string, first chan<- string) {
	defer close(first)
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	told := false
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		_, _ = fmt.Fprintln(log, lines.Text())
		if _, rest, found := strings.Cut(lines.Text(), "raddle serves at "); found && !told {
			told = true
			address, _, _ := strings.Cut(rest, ";")
			first <- address
		}
	}
}

// maxLog is the size of the largest log that is shown, in bytes.
const maxLog = 16 << 20

// readLog returns the end of the log.
func (c *child) readLog() string {
	const shown = 2000 // bytes
	text, _ := plainfile.Read(c.logFile, maxLog)
	return strings.TrimSpace(string(text[max(0, len(text)-shown):]))
}

// listens returns the address of the server; "": it has none now.
func (c *child) listens() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address
}

// signal sends a signal to the process, if there is one.
func (c *child) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		_ = c.cmd.Process.Signal(s)
	}
}

// end sends a signal, and waits until the process has ended; it is killed if that takes longer than patience.
func (c *child) end(s syscall.Signal, patience time.Duration) {
	c.mu.Lock()
	cmd, life, ended := c.cmd, c.life, c.ended
	c.address = ""
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s)
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-ended
	}
	_ = life.Close()
	c.mu.Lock()
	c.cmd = nil
	c.mu.Unlock()
}

// kill kills the process, and waits until it has ended.
func (c *child) kill() { c.end(syscall.SIGKILL, time.Minute) }

// stop lets the process end by itself.
func (c *child) stop() { c.end(syscall.SIGTERM, 30*time.Second) }

// freeze stops the process; thaw lets it continue.
func (c *child) freeze() { c.signal(syscall.SIGSTOP) }
func (c *child) thaw()   { c.signal(syscall.SIGCONT) }
