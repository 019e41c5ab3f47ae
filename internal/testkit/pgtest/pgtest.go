//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/internal/testkit/testneed"
)

// User and Password are those of every server; the user may do everything.
const (
	User     = "raddle"
	Password = "s3cret-of-the-tests"
)

// startTimeout limits how long a server may take to accept connections.
const startTimeout = 30 * time.Second

// keeper is the program that holds a server. It reads commands, and when its input ends, because
// the test or its process has ended, it ends the server and removes its directory. After a kill
// nothing of the server is left, as after a power failure.
const keeper = `dir=$1; shift; pid=
while read -r command; do
	case $command in
	start) "$@" </dev/null & pid=$! ;;
	kill)
		kill -STOP $pid # so that it starts no more processes
		kids=$(ps -A -o pid= -o ppid= | awk -v p=$pid '$2 == p {print $1}')
		kill -9 $pid $kids
		wait $pid
		pid=
		# Their memory belongs to the files until the last one has ended.
		while ps -o stat= -p "$(echo $kids)" | grep -qv '^Z'; do sleep 0.01; done ;;
	esac
	echo "$command" >&3
done
[ -z "$pid" ] || { kill -QUIT $pid; wait $pid; }
rm -rf "$dir" 2>/dev/null || [ -z "$(ls -A "$dir")" ] # only the owner of the parent may remove the directory itself`

// Server is a running PostgreSQL server.
type Server struct {
	dir, port string
	commands  io.WriteCloser
	done      *os.File // answers of the keeper
	cmd       *exec.Cmd
	databases atomic.Int32
	shown     sync.Once // the log, after the first test that has failed
}

// Start starts a server for one test, which ends with the test. It skips the test if PostgreSQL is
// not installed.
func Start(t testing.TB) *Server {
	t.Helper()
	testneed.RequirePrograms(t, "postgres", "initdb", "sh", "ps", "awk", "grep", "rm")
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.endServer(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var startShared = sync.OnceValues(startServer)

// NewDatabase returns the URL of an empty database, on a server that all tests of a package share.
// It skips the test if PostgreSQL is not installed.
func NewDatabase(t testing.TB) string {
	t.Helper()
	testneed.RequirePrograms(t, "postgres", "initdb", "sh", "ps", "awk", "grep", "rm")
	s, err := startShared()
	if err != nil {
		t.Fatal(err)
	}
	url := s.NewDatabase(t)
	t.Cleanup(func() {
		if t.Failed() {
			s.shown.Do(func() { s.showLog(t) })
		}
		// Hundreds of databases would fill the disk of a small machine, and the server ends then.
		Exec(t, s.URL("postgres"), "DROP DATABASE "+path.Base(url)+" WITH (FORCE)")
	})
	return url
}

// startServer creates the files of a server, starts it and waits until it accepts connections.
func startServer() (*Server, error) {
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.createFiles(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		_ = s.endServer()
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start PostgreSQL: %w\n%s", err, log)
	}
	return s, nil
}

// createFiles creates the files of the server and starts its keeper and itself.
func (s *Server) createFiles() error {
	attr, err := chooseUser(s.dir)
	if err != nil {
		return err
	}
	password := filepath.Join(s.dir, "password")
	if err := os.WriteFile(password, []byte(Password), 0o644); err != nil { // the directory is private
		return err
	}
	data := filepath.Join(s.dir, "data")
	init := exec.Command(testneed.FindProgram("initdb"), "-D", data, "-U", User, "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	init.SysProcAttr, init.Dir, init.Env = attr, s.dir, serverEnv()
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if s.port, err = findPort(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	answers, reply, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reply.Close()
	s.done = answers
	c := exec.Command("sh", "-c", keeper, "keeper", s.dir, testneed.FindProgram("postgres"), "-D", data, "-p", s.port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=64MB", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "min_wal_size=32MB",
		"-c", "max_wal_size=128MB", "-c", "log_min_messages=log", "-c", "log_checkpoints=off")
	c.SysProcAttr, c.Dir, c.Env, c.Stdout, c.Stderr, c.ExtraFiles = attr, s.dir, serverEnv(), log, log, []*os.File{reply}
	if s.commands, err = c.StdinPipe(); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	s.cmd = c
	return s.startProcess()
}

// serverEnv returns the environment of the server, without variables that would change it.
func serverEnv() []string { return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"} }

// chooseUser returns as whom the server runs, and gives the directory to that user: the server
// refuses to run as root.
func chooseUser(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	if os.Getuid() != 0 {
		return attr, nil
	}
	uid := 65534
	gid := 65534 // the user who owns nothing
	if u, err := user.Lookup("postgres"); err == nil {
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return nil, err
		}
		if gid, err = strconv.Atoi(u.Gid); err != nil {
			return nil, err
		}
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}

// findPort returns a free port below those that the system gives to outgoing connections: one of these
// could take it while the server is down.
func findPort() (string, error) {
	for try := 0; ; try++ {
		port := strconv.Itoa(20_000 + rand.N(12_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, l.Close()
		}
		if try == 100 {
			return "", err
		}
	}
}

// sendCommand sends a command to the keeper and waits for its answer.
func (s *Server) sendCommand(name string) error {
	if _, err := fmt.Fprintln(s.commands, name); err != nil {
		return err
	}
	_, err := io.ReadFull(s.done, make([]byte, len(name)+1))
	return err
}

// startProcess starts the server and waits until it accepts connections.
func (s *Server) startProcess() error {
	if err := s.sendCommand("start"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return errors.Join(s.checkOwner(ctx, c), c.Close(ctx))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// checkOwner returns an error if another server answers at the port: one that took it in the moment before this one
// could.
func (s *Server) checkOwner(ctx context.Context, c *pgx.Conn) error {
	var data string
	if err := c.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		return err
	}
	if want := filepath.Join(s.dir, "data"); data != want {
		return fmt.Errorf("port %s belongs to the server of %s, want %s", s.port, data, want)
	}
	return nil
}

// showLog prints the end of the log of the server, which says why it ended a connection or itself.
func (s *Server) showLog(t testing.TB) {
	const end = 4000 // bytes
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Log(err)
		return
	}
	t.Logf("the log of PostgreSQL:\n%s", log[max(0, len(log)-end):])
}

// endServer ends the server and removes its files.
func (s *Server) endServer() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.commands.Close() // so that the keeper ends
	err := s.cmd.Wait()
	s.cmd = nil
	_ = s.done.Close()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// URL returns the URL of a database of the server.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(User, Password), Host: net.JoinHostPort("127.0.0.1", s.port), Path: "/" + database}
	return u.String()
}

// NewDatabase creates a database and returns its URL.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("test", s.databases.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return s.URL(name)
}

// NewDatabaseIn returns the URL of an empty database whose files are in an existing directory. The
// directory then belongs to the user who runs the server.
func (s *Server) NewDatabaseIn(t testing.TB, dir string) string {
	t.Helper()
	if _, err := chooseUser(dir); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "postgres", "CREATE TABLESPACE small LOCATION '"+dir+"'")
	s.Exec(t, "postgres", "CREATE DATABASE small TABLESPACE small")
	return s.URL("small")
}

// Exec runs statements in a database.
func (s *Server) Exec(t testing.TB, database, statements string) {
	t.Helper()
	Exec(t, s.URL(database), statements)
}

// Exec runs statements in the database of a URL.
func Exec(t testing.TB, url, statements string) {
	t.Helper()
	ctx := context.Background() // that of the test has ended when its cleanups run
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// Kill kills all processes of the server at once.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.sendCommand("kill"); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the server after Kill, at the same address and with the same content.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.startProcess(); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		t.Fatalf("%v\n%s", err, log)
	}
}
