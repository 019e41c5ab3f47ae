package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// role, when set, makes the test binary a process of a tool.
const role = "RADDLE_TEST_ROLE"

// address is where the processes of a tool call.
const address = "RADDLE_TEST_ADDRESS"

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		if err := play(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play calls the test, says who it is, starts what its role says, and stays until it is ended or told to go.
func play(r string) error {
	conn, err := net.Dial("tcp", os.Getenv(address))
	if err != nil {
		return err
	}
	next := map[string]string{"parent": "child", "child": "grandchild", "tool": "parent"}[r]
	if next != "" {
		command, err := newRole(next, os.Getenv(address))
		if err != nil {
			return err
		}
		cmd, err := buildCommand(command)
		if err != nil {
			return err
		}
		start := (&child{cmd: cmd}).startProcess
		if r != "tool" { // an ordinary program, which knows nothing of jobs
			cmd.SysProcAttr, start = nil, cmd.Start
		}
		if err := start(); err != nil {
			return err
		}
	}
	fmt.Fprintln(conn, r, os.Getpid())
	_, err = io.Copy(io.Discard, conn) // until the test closes it
	return err
}

// newRole returns a command that plays a role.
func newRole(r, at string) (Command, error) {
	self, err := os.Executable()
	env := []string{role + "=" + r, address + "=" + at}
	for _, name := range []string{"SystemRoot", "WINEPREFIX", "Path", "TEMP"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return Command{Path: self, Env: env}, err
}

// A caller is a process that has called the test.
type caller struct {
	conn net.Conn
	pid  int
}

// acceptRoles waits until all of the roles have called, and returns them by name.
func acceptRoles(t *testing.T, l net.Listener, roles ...string) map[string]caller {
	t.Helper()
	all := map[string]caller{}
	for range roles {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		var name string
		var pid int
		if _, err := fmt.Fscanln(bufio.NewReader(conn), &name, &pid); err != nil {
			t.Fatal(err)
		}
		all[name] = caller{conn, pid}
	}
	return all
}

// awaitEnd waits until a process has ended, which ends its connection.
func (c caller) awaitEnd(t *testing.T, who string) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s still runs", who)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// What a tool has started ends with it, in all ways in which a tool ends.
func TestJob(t *testing.T) {
	for name, end := range map[string]func(cancel context.CancelFunc, parent caller, h Handle){
		"cancelled": func(cancel context.CancelFunc, _ caller, _ Handle) { cancel() },
		"by itself": func(_ context.CancelFunc, parent caller, _ Handle) { parent.conn.Close() },
		"by its handle": func(_ context.CancelFunc, _ caller, h Handle) {
			if alive, err := EndHandle(h); !alive || err != nil {
				t.Errorf("EndHandle = %v, %v", alive, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			c, err := newRole("parent", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			handles := make(chan Handle, 1)
			c.Started = func(h Handle) error {
				handles <- h
				return nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := Run(ctx, c)
				ended <- err
			}()
			all := acceptRoles(t, l, "parent", "child", "grandchild")
			h := <-handles
			if h.PID != all["parent"].pid || h.Start == "" {
				t.Errorf("the handle is %+v, of process %d", h, all["parent"].pid)
			}
			end(cancel, all["parent"], h)
			if err := <-ended; (err == nil) != (name == "by itself") {
				t.Errorf("it ended with %v", err)
			}
			all["child"].awaitEnd(t, "the child")
			all["grandchild"].awaitEnd(t, "the grandchild")
			if alive, err := EndHandle(h); alive || err != nil {
				t.Errorf("the second EndHandle = %v, %v", alive, err)
			}
		})
	}
}

// What a tool has started ends with raddle, also if raddle is killed.
func TestJobOfAKilledProcess(t *testing.T) {
	l := listen(t)
	c, err := newRole("tool", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := buildCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = nil
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := acceptRoles(t, l, "tool", "parent", "child", "grandchild")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for name, c := range all {
		c.awaitEnd(t, "the "+name)
	}
}

// A program is found in the PATH of its own environment, which Windows calls Path.
func TestPathOfTheChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, file := filepath.Split(self)
	name := strings.TrimSuffix(file, filepath.Ext(file))
	path, err := lookPath(name, []string{"Path=relative;" + dir})
	if err != nil || !strings.EqualFold(path, self) {
		t.Errorf("found %q, %v", path, err)
	}
	if path, err := lookPath(name, []string{"PATH="}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without a PATH it found %q, %v", path, err)
	}
}
