//go:build unix

package chaos

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/runs"
)

// A stage is where the servers work: a directory with copies of the agents, and what the servers write.
type stage struct {
	root      string // the directory of all stages
	dir       string
	remove    func()
	token     string
	store     string // URL, not through a proxy
	ownStore  bool   // it is a file of the stage
	agent     *flow.Agent
	rehearsal *testrun.Rehearsal
	servers   []*child
	process   *app.Process // reads the store
	keep      bool
	named     []string // the runs that the command has made
}

// newStage makes the directory, and prepares the servers. None of them is started.
func (c *Command) newStage(ctx context.Context) (*stage, error) {
	a, err := c.Process.Load(app.LoadRequest{Agent: c.Agent})
	if err != nil {
		return nil, err
	}
	if err := a.ValidationFailure(); err != nil {
		return nil, err
	}
	s := &stage{root: filepath.Join(c.Process.Dirs.State, "chaos"), token: rand.Text(), agent: a, keep: c.Keep}
	w, err := c.describeWorld(a)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return nil, err
	}
	tempdir.RemoveStaleIn(s.root)
	if s.dir, s.remove, err = tempdir.NewIn(s.root, "stage-"); err != nil {
		return nil, err
	}
	if err := c.prepareStage(ctx, s, w); err != nil {
		return nil, errors.Join(err, s.close(nil))
	}
	return s, nil
}

// prepareStage writes the files of a stage, and prepares its servers.
func (c *Command) prepareStage(ctx context.Context, s *stage, w world) (err error) {
	if err := s.copyFiles(c.Process); err != nil {
		return err
	}
	w.Agent = filepath.Join(s.dir, "config", "agents", filepath.Base(s.agent.Dir))
	if s.store = c.Store; s.store == "" {
		s.store = "sqlite:" + filepath.Join(s.dir, "runs.db")
		s.ownStore = true
	}
	env := s.environ(c, "")
	if s.process, err = app.Open(app.Options{Environ: env, Work: filepath.Join(s.dir, "work"), Store: s.store}); err != nil {
		return err
	}
	if !s.process.Runs.KeepsRuns() {
		return failure.NewUsage("name one that keeps them", "the store %s keeps no runs", s.process.Runs.StoreURL())
	}
	if err := checkStore(ctx, s.process.Runs); err != nil {
		return err
	}
	if s.rehearsal, err = w.open(s.process); err != nil {
		return err
	}
	if err := s.tryCase(ctx); err != nil {
		return err
	}
	for n := range c.Servers {
		if err := s.addServer(c, w, n); err != nil {
			return err
		}
	}
	return nil
}

// tryCase runs the test case that is to answer, and refuses one that fails: what fails without faults would prove
// nothing. Without a case the first run does that.
func (s *stage) tryCase(ctx context.Context) error {
	if s.rehearsal.Case == nil {
		return nil
	}
	r, err := new(testrun.Runner).RunCase(ctx, s.rehearsal.Case, testrun.Setup{})
	if err != nil || r.HasPassed() {
		return err
	}
	return failure.NewInvalid("make it pass first: raddle test", "the test case %q fails, so that faults would prove nothing: %s: %s",
		s.rehearsal.Case.Name, r.Failures[0].What, r.Failures[0].Message)
}

// describeWorld chooses what answers for models and tools. It refuses to call real ones that no one has asked for.
func (c *Command) describeWorld(a *flow.Agent) (w world, err error) {
	if file, is := strings.CutPrefix(c.Model, scriptModel); is {
		w.Model = scriptModel + c.Process.Dirs.AbsPath(file)
	}
	if !c.Live && c.Model == "" {
		found, err := testrun.FindCase(a.Dir, c.Case)
		if err != nil {
			return w, err
		}
		if found != nil {
			w.Case, w.Name = found.Pos.File, found.Name
			return w, nil
		}
	}
	if c.Live {
		return w, nil
	}
	var real []string
	for _, each := range a.Agents() {
		for _, id := range each.Models() {
			if c.Model == "" && !strings.HasPrefix(id, scriptModel) && !slices.Contains(real, id) {
				real = append(real, id)
			}
		}
	}
	if len(real) > 0 {
		return w, failure.NewUsage("write a test case that answers for it, or use --model script:FILE; --live calls it, and pays",
			"the agent '%s' calls %s, and no test case can answer for it again and again", a.Name, strings.Join(real, ", "))
	}
	return w, nil
}

// copyFiles makes the directories of the stage: the configuration of the user with copies of the agents alone.
func (s *stage) copyFiles(p *app.Process) error {
	for _, name := range []string{"config/agents", "home", "tmp", "work"} {
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(p.Dirs.Config)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() == "agents" {
			continue
		}
		if err := os.Symlink(filepath.Join(p.Dirs.Config, e.Name()), filepath.Join(s.dir, "config", e.Name())); err != nil {
			return err
		}
	}
	return testrun.CopyAgent(s.agent, filepath.Join(s.dir, "config", "agents"))
}

// environ returns the environment of a server with a name, or that of the command. Keys of providers are in it only if
// models are real.
func (s *stage) environ(c *Command, server string) []string {
	own := map[string]string{
		"TMPDIR": filepath.Join(s.dir, "tmp"), "XDG_STATE_HOME": filepath.Join(s.dir, "state", server), "XDG_CACHE_HOME": filepath.Join(s.dir, "cache"),
		"RADDLE_CONFIG_DIR": filepath.Join(s.dir, "config"), "RADDLE_FUNCTIONS_DIR": c.Process.Dirs.Functions, "OTEL_SDK_DISABLED": "true",
		"RADDLE_SERVER_TOKEN": s.token,
	}
	if !c.Live {
		own["HOME"] = filepath.Join(s.dir, "home")
	}
	env := slices.DeleteFunc(slices.Clone(c.Environ), func(pair string) bool {
		name, _, _ := environ.SplitPair(pair)
		name = environ.FoldName(name)
		_, replaced := own[name]
		return replaced || name == "RADDLE_STORE" || !c.Live && strings.HasSuffix(name, "_API_KEY")
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// addServer prepares a server with its proxy and its world.
func (s *stage) addServer(c *Command, w world, n int) error {
	name := fmt.Sprintf("server-%d", n+1)
	server := &child{
		n:       n,
		program: c.Program,
		work:    filepath.Join(s.dir, "work"),
		world:   filepath.Join(s.dir, name+".json"),
		logFile: filepath.Join(s.dir, name+".log"),
	}
	through := s.store
	var err error
	if !s.ownStore {
		if server.proxy, through, err = openProxy(s.store); err != nil {
			return err
		}
	}
	server.env = append(s.environ(c, name), "RADDLE_STORE="+through)
	s.servers = append(s.servers, server)
	w.Server = n
	w.Effects = filepath.Join(s.dir, fmt.Sprintf("effects-%d.jsonl", n+1))
	return w.write(server.world)
}

// startServers starts all servers at the same time. The first one makes the store.
func (s *stage) startServers() error {
	if err := s.servers[0].start(); err != nil {
		return err
	}
	var starting sync.WaitGroup
	failed := make([]error, len(s.servers))
	for i, each := range s.servers[1:] {
		starting.Go(func() { failed[i] = each.start() })
	}
	starting.Wait()
	return errors.Join(failed...)
}

// close ends the servers and removes what they have written. The runs stay if the report says so, and if there is none
// in a store that is not the stage's own, because then no one has looked at them.
func (s *stage) close(r *Report) (err error) {
	var ending sync.WaitGroup
	for _, each := range s.servers {
		ending.Go(func() {
			each.thaw()
			each.stop()
			each.proxy.close()
		})
	}
	ending.Wait()
	if s.process != nil {
		if r != nil && r.Kept == "" && !s.ownStore {
			err = s.removeRuns()
		}
		err = errors.Join(err, s.process.Close())
	}
	if r != nil && r.Kept != "" && s.ownStore {
		kept := filepath.Join(s.root, newName())
		if moved := os.Rename(s.dir, kept); moved != nil {
			return errors.Join(err, moved)
		}
		r.Kept = "sqlite:" + filepath.Join(kept, "runs.db")
	}
	s.remove()
	_ = os.Remove(s.root) // unless there is something in it
	return err
}

// removeRuns deletes the runs that the command has made in the store of a user.
func (s *stage) removeRuns() error {
	return s.process.Runs.RemoveRuns(context.Background(), s.named, func(string) {})
}

// openStore opens the store, which a server has made.
func (s *stage) openStore() (*runs.Store, error) {
	st, err := s.process.Runs.StoreToRead()
	if err == nil && st == nil {
		err = fmt.Errorf("the store %s is not there", cmp.Or(s.process.Runs.StoreURL(), s.store))
	}
	return st, err
}
