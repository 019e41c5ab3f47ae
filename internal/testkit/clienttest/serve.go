package clienttest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a process of raddle serve.
type Server struct {
	URL   string // such as http://127.0.0.1:43121, without a slash at the end
	Token string // allows everything
	Home  *Home
	PID   int // of the process
}

// address finds the address in the line that raddle serve prints.
var address = regexp.MustCompile(`https?://[^\s/#;,]+`)

// Serve starts raddle serve on a port of its own, with further arguments, and waits until it listens. The end of the
// test stops it.
func (h *Home) Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Token: rand.Text() + rand.Text(), Home: h}
	c := h.Command(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 30 * time.Second
	c.Env = append(c.Env, "RADDLE_SERVER_TOKEN="+s.Token)
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = c.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.PID = c.Process.Pid
	var log syncBuffer
	found := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			_, _ = log.Write(append(lines.Bytes(), '\n'))
			if url := address.FindString(lines.Text()); url != "" {
				select {
				case found <- url:
				default: // it was found before
				}
			}
		}
	}()
	t.Cleanup(func() { // the context of the test has ended, so that the process has got its signal
		<-ended
		_ = c.Wait()
		if t.Failed() {
			t.Logf("raddle serve:\n%s", log.String())
		}
	})
	select {
	case s.URL = <-found:
	case <-ended:
		t.Fatalf("raddle serve printed no address:\n%s", log.String())
	}
	return s
}

// syncBuffer is a buffer that a process writes and a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
