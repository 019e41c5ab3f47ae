package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/script"
)

// toolbox opens the tools of the agents of a run: files of the agent and of the
// user, what the program brings along, and MCP servers.
type toolbox struct {
	process   *Process
	workspace string
	named     string // the directory of the agent that somebody named
	log       *slog.Logger

	mu      sync.Mutex
	servers map[string]*mcp.Servers // by the path of their file
	trusted map[string]bool         // tools by name: true where their agent was named, or their file installed; false where nobody stands for one of that name
}

var _ flow.Toolbox = (*toolbox)(nil)

func (p *Process) toolbox(workspace, named string) *toolbox {
	b := &toolbox{process: p, workspace: workspace, named: named, servers: map[string]*mcp.Servers{}, trusted: map[string]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes = append(p.boxes, b)
	return b
}

// Open implements [flow.Toolbox].
func (b *toolbox) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	h := b.scripts(n)
	set := &flow.Toolset{}
	for _, name := range n.Global {
		b.global(h, n, name, set)
	}
	own, problems := h.Own()
	for _, p := range problems {
		set.Problems = append(set.Problems, p.String())
	}
	b.add(set, own, b.standsFor(n.Dir))
	if file := ownFile(n.Dir); file != "" {
		set.Scripts = append(set.Scripts, file)
		set.Instructions = b.instructions(h, n)
	}
	return set, b.serve(n, set)
}

// instructions runs the function of an agent's file that makes its instructions.
func (b *toolbox) instructions(h *script.Host, n flow.ToolNeed) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if !b.standsFor(n.Dir) {
			return "", stale("read the files, then name the agent: raddle run "+b.process.Dirs.Short(n.Dir), "the scripts of agent '%s' in %s need consent before they run", n.Agent, b.process.Dirs.Short(n.Dir))
		}
		return h.Instructions(ctx, nil)
	}
}

// standsFor tells whether somebody stands for the scripts of an agent: by naming
// it or an agent that it belongs to, by installing it, or by consent.
func (b *toolbox) standsFor(dir string) bool {
	return b.process.vouched(dir, b.named) || b.process.consented(dir)
}

// add takes tools of files in.
func (b *toolbox) add(set *flow.Toolset, tools []tool.Tool, trusted bool) {
	b.trust(tools, trusted)
	set.Tools = append(set.Tools, tools...)
}

// trust notes tools by their names. Where two have one name, and nobody stands for
// one of them, the name is not trusted.
func (b *toolbox) trust(tools []tool.Tool, trusted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range tools {
		before, known := b.trusted[t.Name]
		b.trusted[t.Name] = trusted && (before || !known)
	}
}

// Trusts tells whether a tool comes from a file that the user stands for.
func (b *toolbox) Trusts(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trusted[name]
}

// Doubts tells whether a tool comes from a file for which nobody stands.
func (b *toolbox) Doubts(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	trusted, known := b.trusted[name]
	return known && !trusted
}

// scripts are the surroundings of an agent's scripts.
func (b *toolbox) scripts(n flow.ToolNeed) *script.Host {
	return &script.Host{
		Config: b.process.Dirs.Config, Functions: b.process.Dirs.Functions, Workspace: b.workspace, Env: b.process.scriptEnv(),
		Agent:   &script.Agent{Name: n.Agent, Dir: n.Dir, Variables: b.process.resolved(n.Variables)},
		Timeout: b.process.Config.ToolTimeout,
		Started: func(ctx context.Context, child json.RawMessage) error { return graph.Note(ctx, child) },
	}
}

// toolEndings are the endings of files of tools, in the order in which they are
// looked for.
var toolEndings = []string{"", ".sh", ".py", ".ts"}

// global finds a tool that an agent's file names: beside the agent, among the
// user's functions, then in the program.
func (b *toolbox) global(h *script.Host, n flow.ToolNeed, name string, set *flow.Toolset) {
	for _, dir := range []string{n.Dir, b.process.Dirs.Functions} {
		file := toolFile(filepath.Join(dir, "tools"), name)
		if file == "" {
			continue
		}
		in := *h
		in.Functions = dir
		tools, problems := in.Global([]string{name}, nil)
		for _, p := range problems {
			set.Problems = append(set.Problems, p.String())
		}
		b.add(set, tools, dir != n.Dir || b.standsFor(dir))
		set.Scripts = append(set.Scripts, file)
		return
	}
	if t, ok := builtin.Lookup(name, b.builtins()); ok {
		set.Tools = append(set.Tools, t)
		return
	}
	next := didYouMean(strings.TrimSuffix(name, filepath.Ext(name)), builtin.Names())
	if next == "" {
		next = "put its file into " + b.process.Dirs.Short(filepath.Join(b.process.Dirs.Functions, "tools")) + " (raddle tools ls lists what there is)"
	}
	set.Problems = append(set.Problems, fmt.Sprintf("there is no tool %q: %s", name, next))
}

func (b *toolbox) builtins() builtin.Host {
	return builtin.Host{Workspace: b.workspace, Env: b.process.scriptEnv(), Timeout: b.callTimeout()}
}

// toolFile is the file of a tool in a directory, "" if there is none.
func toolFile(dir, name string) string {
	for _, ending := range toolEndings {
		path := filepath.Join(dir, name+ending)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.Ext(path) != "" {
			return path
		}
	}
	return ""
}

// ownFile is the file of an agent's own tools, "" if it has none.
func ownFile(dir string) string {
	for _, ending := range toolEndings[1:] {
		if path := filepath.Join(dir, "tools"+ending); isFile(path) {
			return path
		}
	}
	return ""
}

// serversFile names MCP servers.
const serversFile = "mcp.json"

// serverFiles are the files that name MCP servers, the first to know an id counts.
func (b *toolbox) serverFiles(agentDir string) []string {
	d := b.process.Dirs
	files := []string{filepath.Join(agentDir, serversFile), filepath.Join(d.Functions, "mcp.json"), filepath.Join(d.Config, "mcp.json")}
	if own := b.process.Config.MCPFile; own != "" {
		if !filepath.IsAbs(own) {
			own = filepath.Join(d.Config, own)
		}
		files = append(files, own)
	}
	return files
}

// callTimeout is the time of one call where it cannot be "none".
func (b *toolbox) callTimeout() time.Duration {
	if t := b.process.Config.ToolTimeout; t >= 0 {
		return t
	}
	const ages = 10_000 * time.Hour
	return ages
}

// serve finds the servers that an agent asks for. None is started.
func (b *toolbox) serve(n flow.ToolNeed, set *flow.Toolset) error {
	if len(n.Servers) == 0 {
		return nil
	}
	if on := b.process.Config.MCP; on != nil && !*on {
		set.Problems = append(set.Problems, "mcp_server_support is off: the agent's MCP servers are not used")
		return nil
	}
	home := map[string]*mcp.Servers{}
	var known []string
	for i, path := range b.serverFiles(n.Dir) {
		if i == 0 && isFile(path) && !b.standsFor(n.Dir) {
			set.Problems = append(set.Problems, fmt.Sprintf("the servers of %s are not used: they need consent before they run", b.process.Dirs.Short(path)))
			continue
		}
		servers, err := b.open(path, n.Dir, set)
		if err != nil {
			return err
		}
		for _, id := range servers.IDs() {
			if home[id] == nil {
				home[id] = servers
				known = append(known, id)
			}
		}
	}
	slices.Sort(known)
	set.Servers = n.Servers
	if slices.Equal(n.Servers, []string{"all"}) {
		set.Servers = known
	}
	var found []string
	for _, id := range set.Servers {
		if home[id] == nil {
			set.Problems = append(set.Problems, fmt.Sprintf("there is no MCP server %q: name it in %s", id, b.process.Dirs.Short(b.serverFiles(n.Dir)[1])))
			continue
		}
		found = append(found, id)
	}
	set.Servers = found
	own := b.servers[b.serverFiles(n.Dir)[0]]
	set.Serve = (&serving{home: home, told: map[string]bool{}, failed: map[string]bool{}, worked: map[string]bool{}, trust: func(s *mcp.Servers, tools []tool.Tool) {
		if s == own && own != nil {
			b.trust(tools, true)
		}
	}}).tools
	return nil
}

// open makes the servers of a file known, once.
func (b *toolbox) open(path, dir string, set *flow.Toolset) (*mcp.Servers, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.servers[path]; s != nil {
		return s, nil
	}
	file, err := mcp.Load(path)
	if err != nil {
		return nil, err
	}
	for _, p := range file.Problems {
		set.Problems = append(set.Problems, p.Error())
	}
	if filepath.Dir(path) != dir {
		dir = b.workspace
	}
	s := mcp.Open(file, mcp.Options{Env: b.process.scriptEnv(), Lookup: b.process.env.lookup, Dir: dir,
		Log: b.log, CallTimeout: b.callTimeout(), Secrets: secretValues(&b.process.Config, b.process.env)})
	b.servers[path] = s
	return s, nil
}

// Close ends all servers.
func (b *toolbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var first error
	for _, s := range b.servers {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// serving lists the functions of an agent's servers.
type serving struct {
	home  map[string]*mcp.Servers
	trust func(*mcp.Servers, []tool.Tool) // told of the tools of each file

	mu     sync.Mutex
	told   map[string]bool // failures
	failed map[string]bool // servers by id that have never worked: they are not tried again
	worked map[string]bool // servers by id that have
}

func (s *serving) tools(ctx context.Context, ids []string) (tools []tool.Tool, failed []error) {
	ids = s.usable(ids)
	var files []*mcp.Servers
	for _, id := range ids {
		if f := s.home[id]; !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	type answer struct {
		tools  []tool.Tool
		failed []error
	}
	answers := make([]answer, len(files))
	var all sync.WaitGroup
	for i, f := range files {
		var own []string
		for _, id := range ids {
			if s.home[id] == f {
				own = append(own, id)
			}
		}
		all.Go(func() { answers[i].tools, answers[i].failed = f.Tools(ctx, own) })
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]bool{}
	for _, id := range ids {
		left[id] = true
	}
	for i, a := range answers {
		s.trust(files[i], a.tools)
		tools = append(tools, a.tools...)
		for _, err := range a.failed {
			if e, ok := errors.AsType[*mcp.ServerError](err); ok && ctx.Err() == nil {
				s.failed[e.Server] = !s.worked[e.Server]
				delete(left, e.Server)
			}
			if !s.told[err.Error()] {
				s.told[err.Error()] = true
				failed = append(failed, err)
			}
		}
	}
	for id := range left {
		s.worked[id] = true
	}
	return tools, failed
}

// usable leaves out what could not be started: a conversation asks for its tools
// in every step, and should not wait for the same failure again.
func (s *serving) usable(ids []string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if !s.failed[id] {
			list = append(list, id)
		}
	}
	return list
}
