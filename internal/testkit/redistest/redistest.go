// Package redistest starts Redis servers for tests: real processes, each with a directory and a port of its own.
package redistest

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// Server is a Redis server on this machine. It keeps its data until the end of the test, also if it is killed and
// started again.
type Server struct {
	URL string // of its first database, without a password

	port string
	dir  string
	args []string
	end  func() // kills the process and waits for its end
}

// keeper starts a server and kills it when its standard input ends, which it also does when the process of the test is
// killed.
const keeper = `redis-server "$@" & server=$!; exec >&-; read -r _; kill -KILL $server; wait $server`

// Start starts a server with further arguments, and waits until it is ready. It skips the test if Redis is not
// installed. The end of the test kills the server.
func Start(t testing.TB, args ...string) *Server { return StartIn(t, t.TempDir(), args...) }

// StartIn is Start with the directory in which the server saves its data.
func StartIn(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	if _, ok := t.(*testing.B); !ok {
		testneed.RequirePrograms(t, "redis-server")
	} else if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	s := &Server{dir: dir, args: args}
	const tries = 5 // another process may take the port before the server does
	for range tries {
		s.port = findFreePort(t)
		if s.tryStart(t) {
			s.URL = "redis://127.0.0.1:" + s.port + "/0"
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatalf("redis-server has not started in %d tries", tries)
	return nil
}

// Kill kills the server with SIGKILL and waits for its end.
func (s *Server) Kill() { s.end() }

// Restart starts a killed server again, at the same address and with the data that it has saved.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if !s.tryStart(t) {
		t.Fatal("redis-server has not started again")
	}
}

// WithPassword returns the URL with a user and a password.
func (s *Server) WithPassword(user, password string) string {
	return strings.Replace(s.URL, "://", "://"+user+":"+password+"@", 1)
}

// tryStart starts the server and reports whether it has become ready.
func (s *Server) tryStart(t testing.TB) bool {
	t.Helper()
	args := append([]string{"-c", keeper, "sh", "--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes"}, s.args...)
	c := exec.Command("sh", args...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	s.end = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_, _ = io.Copy(io.Discard, out)
			_ = c.Wait() // the error says that the server was killed
		}
	}
	var log strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return true
		}
	}
	s.end()
	t.Logf("redis-server:\n%s", log.String())
	return false
}

// findFreePort returns a port of 127.0.0.1 that no process uses now.
func findFreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
