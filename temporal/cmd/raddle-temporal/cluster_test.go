//go:build unix

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"math/rand/v2"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/temporal"
)

// keeper holds a server: it ends it when its own input ends, because the test has ended, however that was.
const keeper = `"$@" </dev/null & pid=$!
read -r _
kill -TERM $pid; wait $pid`

// A server is a running server of Temporal with an empty namespace for each test.
type server struct {
	address string
	client  client.Client // of the system's namespace
	input   io.Closer
	cmd     *exec.Cmd
	dir     string
}

var startShared = sync.OnceValues(startServer)

// shared is the server of all tests of the package; nil: none was needed.
var shared *server

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.end()
	}
	os.Exit(code)
}

// startServer starts a server that keeps its data in files, and waits until it answers.
func startServer() (_ *server, err error) {
	s := &server{}
	if s.dir, err = os.MkdirTemp("", "temporaltest-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			err = fmt.Errorf("start the server of Temporal: %w\n%s", err, text)
			s.end()
		}
	}()
	// The defaults are for many shards: the queue of one is read at most 20 times a second, and timers are up to a second late.
	if err := os.WriteFile(filepath.Join(s.dir, "dynamic.yaml"), []byte("history.transferProcessorMaxPollRPS: [{value: 2000}]\nhistory.timerProcessorMaxPollRPS: [{value: 2000}]\nhistory.timerProcessorMaxTimeShift: [{value: 50ms}]\n"), 0o600); err != nil {
		return nil, err
	}
	logged, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer logged.Close()
	ports, err := findPorts(10)
	if err != nil {
		return nil, err
	}
	s.address = "127.0.0.1:" + ports[0]
	s.cmd = exec.Command("sh", "-c", keeper, "keeper", testneed.FindProgram("temporal-server"), "--allow-no-auth", "start")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, logged, logged
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	s.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "DB=sqlite", "DBNAME=" + filepath.Join(s.dir, "t.db"), "VISIBILITY_DBNAME=" + filepath.Join(s.dir, "v.db"),
		"SQLITE_SYNCHRONOUS=1", "NUM_HISTORY_SHARDS=1", "LOG_LEVEL=warn", "BIND_ON_IP=127.0.0.1", "DYNAMIC_CONFIG_FILE_PATH=" + filepath.Join(s.dir, "dynamic.yaml"),
		"FRONTEND_GRPC_PORT=" + ports[0], "FRONTEND_HTTP_PORT=" + ports[1], "FRONTEND_MEMBERSHIP_PORT=" + ports[2],
		"HISTORY_GRPC_PORT=" + ports[3], "HISTORY_MEMBERSHIP_PORT=" + ports[4], "MATCHING_GRPC_PORT=" + ports[5], "MATCHING_MEMBERSHIP_PORT=" + ports[6],
		"WORKER_GRPC_PORT=" + ports[7], "WORKER_MEMBERSHIP_PORT=" + ports[8],
	}
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	shared = s
	return s, s.connect()
}

// connect waits until the server answers.
func (s *server) connect() (err error) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if s.client, err = client.Dial(client.Options{HostPort: s.address, Logger: quiet}); err == nil || time.Now().After(end) {
			return err
		}
	}
}

var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

func (s *server) end() {
	if s.client != nil {
		s.client.Close()
	}
	if s.input != nil {
		_ = s.input.Close()
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

// findPorts returns free ports below those that the system gives to outgoing connections.
func findPorts(n int) (ports []string, err error) {
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(20_000 + rand.N(12_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			if tries > 1000 {
				return nil, err
			}
			continue
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

// A cluster is a namespace of Temporal, a database for runs, and a directory with agents.
type cluster struct {
	t         testing.TB
	server    *server
	namespace string
	store     string
	work      string
	client    client.Client
	process   *app.Process // looks at runs
}

// buildProgram builds the program once.
var buildProgram = sync.OnceValues(func() (string, error) {
	file := filepath.Join(shared.dir, "raddle-temporal")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return file, err
})

// newCluster returns a cluster with agents, each with the files that agents names by AGENT/FILE.
func newCluster(t testing.TB, agents map[string]string) *cluster {
	t.Helper()
	return newClusterOn(t, pgtest.NewDatabase(t), agents)
}

// newClusterOn returns a cluster whose runs are in the store at a URL.
func newClusterOn(t testing.TB, store string, agents map[string]string) *cluster {
	t.Helper()
	testneed.RequirePrograms(t, "temporal-server", "sh", "go", "cat", "sleep", "date")
	c := &cluster{t: t, store: store, work: t.TempDir()}
	var err error
	if c.server, err = startShared(); err != nil {
		t.Fatal(err)
	}
	testfile.WriteFiles(t, c.work, agents)
	c.namespace = strings.ToLower("test-" + strconv.FormatUint(rand.Uint64(), 36))
	c.createNamespace()
	if c.process, err = app.Open(app.Options{Environ: c.environ("looker"), Work: c.work}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.process.Close() })
	return c
}

// createNamespace creates the namespace and waits until it can be used.
func (c *cluster) createNamespace() {
	c.t.Helper()
	ctx := context.Background()
	if _, err := c.server.client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{Namespace: c.namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)}); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if c.client, err = client.NewClientFromExisting(c.server.client, client.Options{Namespace: c.namespace, Logger: quiet}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.client.Close)
	c.await("the namespace", 30*time.Second, func() bool {
		_, err := c.client.DescribeTaskQueue(ctx, "default", enums.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil
	})
}

// environ returns the environment of a process on a machine of its own.
func (c *cluster) environ(machine string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(c.work, "home-"+machine), "RADDLE_STORE=" + c.store, "TMPDIR=" + os.TempDir()}
}

// await fails the test unless a condition is met in time.
func (c *cluster) await(what string, limit time.Duration, met func() bool) {
	c.t.Helper()
	for end := time.Now().Add(limit); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("after %v: not %s", limit, what)
		}
	}
}

// command returns the program on a machine, with arguments.
func (c *cluster) command(machine string, args ...string) *exec.Cmd {
	c.t.Helper()
	program, err := buildProgram()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "--address", c.server.address, "--namespace", c.namespace)...)
	cmd.Dir, cmd.Env = c.work, c.environ(machine)
	return cmd
}

// run runs a command to its end and returns what it wrote.
func (c *cluster) run(args ...string) string {
	c.t.Helper()
	cmd := c.command("client", args...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%q: %v\n%s", args, err, failed.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// A workerProcess is a worker on a machine of its own.
type workerProcess struct {
	cmd *exec.Cmd
	log string // file
}

// startWorker starts a worker and waits until it polls.
func (c *cluster) startWorker(machine string, args ...string) *workerProcess {
	c.t.Helper()
	w := &workerProcess{cmd: c.command(machine, append([]string{"worker"}, args...)...), log: filepath.Join(c.work, machine+".log")}
	file, err := os.Create(w.log)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	w.cmd.Stderr, w.cmd.Stdout = file, file
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
		if text, _ := os.ReadFile(w.log); c.t.Failed() {
			c.t.Logf("worker %s:\n%s", machine, text)
		}
	})
	c.await("worker "+machine+" polls", 20*time.Second, func() bool {
		text, _ := os.ReadFile(w.log)
		return strings.Contains(string(text), "drives runs of")
	})
	return w
}

// signal sends a signal to a worker.
func (c *cluster) signal(w *workerProcess, s syscall.Signal) {
	c.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// readRun returns the state of a run in the store.
func (c *cluster) readRun(id string) *runs.Detail {
	c.t.Helper()
	d, err := c.process.Runs.ReadRunDetail(context.Background(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// awaitStatus waits until a run has a status.
func (c *cluster) awaitStatus(id, status string) {
	c.t.Helper()
	var last string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("run %s is %s", id, last)
		}
	}()
	c.await("run is "+status, 20*time.Second, func() bool {
		d := c.readRun(id)
		last = d.Info.Status + " " + d.Reason
		return d.Info.Status == status
	})
}

// driver returns which of some workers drives a run, and another one.
func (c *cluster) driver(id string, workers ...*workerProcess) (by, other *workerProcess) {
	c.t.Helper()
	_, pid, _ := c.readRun(id).Snapshot.Lease.Holder()
	for _, w := range workers {
		if w.cmd.Process.Pid == pid {
			by = w
		} else {
			other = w
		}
	}
	if by == nil {
		c.t.Fatalf("no worker drives run %s, but process %d", id, pid)
	}
	return by, other
}

// lines returns the lines of a file in the directory of agents.
func (c *cluster) lines(name string) []string {
	text, _ := os.ReadFile(filepath.Join(c.work, name))
	return strings.Fields(string(text))
}

// create creates an empty file there.
func (c *cluster) create(name string) { testfile.WriteFile(c.t, filepath.Join(c.work, name), "") }

// awaitState waits until the workflow of a run has a state.
func (c *cluster) awaitState(id, state string) {
	c.t.Helper()
	c.await("the workflow is "+state, 20*time.Second, func() bool {
		found := false
		if err := temporal.List(context.Background(), c.client, false, func(l temporal.Listed) bool {
			found = found || l.Run == id && l.State == state
			return !found
		}); err != nil {
			c.t.Fatal(err)
		}
		return found
	})
}

func readFile(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// lastAnswer returns when the newest answer was recorded.
func lastAnswer(story []runs.Moment) (at time.Time) {
	for _, a := range runs.AnswersOf(story) {
		if a.At.After(at) {
			at = a.At
		}
	}
	return at
}

var update = flag.Bool("update", false, "write the histories of workflows that the replay test reads")

// saveHistory writes the history of a run's workflow for the replay test, with -update.
func (c *cluster) saveHistory(id, name string) {
	c.t.Helper()
	if !*update {
		return
	}
	h := &history.History{}
	for events := c.client.GetWorkflowHistory(context.Background(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			c.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	text, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(h)
	if err != nil {
		c.t.Fatal(err)
	}
	text = regexp.MustCompile(`"[^"]*@[^"]*"|"[^":]+:[0-9a-f]{8}-[0-9a-f-]{27}"`).ReplaceAll(text, []byte(`"a worker"`))
	testfile.WriteFile(c.t, filepath.Join("..", "..", "testdata", name+".json"), string(text)+"\n")
}
