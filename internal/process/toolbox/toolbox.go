package toolbox

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

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/mcplogin"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/memory"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/permission"
	"raddle.dev/tool/script"
)

// Shared is what the toolboxes of a process share: directories, settings, the environment, secrets, and what the user
// has agreed to. It is safe for concurrent use.
type Shared struct {
	Dirs   config.Dirs
	Config *config.Config

	OpenMemory func() (memory.Store, error) // opens the store of the tools of memory; nil: there is none
	// Embedder returns the model that finds what is remembered by meaning; nil, or a nil model: by words only.
	Embedder func() memory.Embedder
	// StoredKeys returns keys of providers in files, which are secrets; nil: none. It must not change after the first
	// use.
	StoredKeys func() []string

	Logins *mcplogin.Tokens // to MCP servers; nil: none

	// NoBox lets commands that nothing else lets run ask, also where a box holds; it must not change after the first
	// use.
	NoBox bool

	env     environ.Environ
	log     *slog.Logger // nil: no log
	known   sync.Once    // sets secrets
	secrets *redact.Set

	// Jobs are the background commands that runs of this process have started, by [runs.FamilyOf] of their threads.
	Jobs *builtin.Jobs

	servers mcp.Seen // what servers have said about their tools

	mu    sync.Mutex
	boxes []*Toolbox
	// digests of directories with packages, "" for a missing one, from the first time they were needed
	trees map[string]string
}

// NewShared returns what the toolboxes of a process share. log may be nil.
func NewShared(d config.Dirs, c *config.Config, env environ.Environ, log *slog.Logger) *Shared {
	s := &Shared{Dirs: d, Config: c, env: env, log: log, trees: map[string]string{}}
	s.Jobs = &builtin.Jobs{
		Thread: func(ctx context.Context) string { return runs.FamilyOf(graph.ThreadOf(ctx)) },
		Redact: func(text string) string { return s.SecretSet().Text(text) },
	}
	if d.State != "" {
		s.Jobs.Dir = filepath.Join(d.State, "jobs")
	}
	return s
}

// Close ends all background commands, and the servers of all toolboxes.
func (s *Shared) Close() error {
	s.Jobs.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for _, tb := range s.boxes {
		failed = append(failed, tb.Close())
	}
	s.boxes = nil
	return errors.Join(failed...)
}

// A Toolbox opens the tools of the agents of a run: files of the agent and of the
// user, tools that come with the program, and MCP servers.
type Toolbox struct {
	// Log is the log of servers, and Terminal lends the terminal to the script that makes the instructions of the agent
	// that was started; the error says why there is none. Both may be nil, and change only before tools are opened.
	Log      *slog.Logger
	Terminal func() (*Terminal, error)

	// Person reports that a person is at a terminal: see [permission.Policy]. It changes only before NewGate.
	Person bool

	// Approved are directories of agents whose scripts the user approved when the run started, with the files that they
	// have now. Homes are the directories in which agents had their .env files then, by their directories now. Both
	// change only before tools are opened.
	Approved []string
	Homes    map[string]string

	shared    *Shared
	workspace string
	named     string            // the directory of the agent that the user named
	policy    permission.Policy // policy of the run; NewGate sets it before tools are opened

	leftOnce, envOnce sync.Once
	left              []interpreter.RemovedEntry // removed from the environment, because it leads into the workspace
	env               []string                   // of child processes

	boxed      runBox
	network    boxNetwork
	searchOnce sync.Once
	searched   []string // what the box hides of the workspace, and of what rules name
	searchErr  error    // not everything was found

	mu      sync.Mutex
	servers map[string]*mcp.Servers // by the path of their file
	// directories of agents, each with the paths that codePaths has found for it; nil until then
	agents map[string][]string
	// tools by name: true if the user named their agent or installed their file; false if the user approved none of
	// that name
	trusted map[string]bool
}

var _ flow.Toolbox = (*Toolbox)(nil)

// NewToolbox returns the toolbox of a run in a workspace. named is the directory of the agent that the user named.
// Close of the Shared closes it.
func (s *Shared) NewToolbox(workspace, named string) *Toolbox {
	tb := &Toolbox{
		shared:    s,
		workspace: workspace,
		named:     named,
		Log:       s.log,
		servers:   map[string]*mcp.Servers{},
		agents:    map[string][]string{},
		trusted:   map[string]bool{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boxes = append(s.boxes, tb)
	return tb
}

// Open implements [flow.Toolbox].
func (tb *Toolbox) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	tb.mu.Lock()
	tb.agents[n.Dir] = nil
	tb.mu.Unlock()
	h := tb.scriptHost(n)
	set := &flow.Toolset{}
	for _, name := range n.Global {
		tb.addGlobalTool(h, n, name, set)
	}
	tb.addSkillTools(h, n, set)
	own, problems := h.OwnTools()
	for _, p := range problems {
		set.Problems = append(set.Problems, newScriptProblem(p))
	}
	tb.addTools(set, own, tb.TrustsDir(n.Dir))
	for _, text := range tb.shared.findUnresolvedVariables(n.Agent, n.Variables) {
		set.Problems = append(set.Problems, flow.ToolProblem{Text: text})
	}
	tb.reportDotenvs(h, set)
	if file := ownFile(n.Dir); file == "" {
		tb.otherLanguage(set, filepath.Join(n.Dir, "tools"))
	} else {
		set.Scripts = append(set.Scripts, file)
		set.Instructions = tb.buildInstructions(h, n)
	}
	set.RunWords = runWords(h, n.Dir)
	all := set.Tools
	for _, name := range n.SkillTools {
		all = slices.Concat(all, set.SkillTools[name])
	}
	if err := permission.CheckTools(tb.policy.Rules, all); err != nil {
		return nil, rulesError(err)
	}
	return set, tb.findServers(n, set)
}

// TrustsDir reports whether the user has approved the scripts of an agent: by naming
// it or an agent that it belongs to, by installing it, or by consent.
func (tb *Toolbox) TrustsDir(dir string) bool {
	return tb.isApproved(dir) || tb.shared.hasConsent(dir)
}

// isApproved reports whether an agent's directory needs no consent.
func (tb *Toolbox) isApproved(dir string) bool {
	return tb.shared.isNamedOrInstalled(dir, tb.named) || slices.Contains(tb.Approved, dir)
}

// addTools adds tools of files. A tool with the name of a built-in tool is judged like the
// built-in one, whatever its file does: the rules and defaults for the name apply to it.
func (tb *Toolbox) addTools(set *flow.Toolset, tools []tool.Tool, trusted bool) {
	tb.recordTrust(tools, trusted)
	for i, t := range tools {
		if touches, ok := builtin.TouchesNamed(t.Name, tb.builtinHost()); ok {
			tools[i].Touches = touches
		}
	}
	set.Tools = append(set.Tools, tools...)
}

// recordTrust records whether tools are trusted, by their names. If two have the same name and
// the user has not approved one of them, the name is not trusted.
func (tb *Toolbox) recordTrust(tools []tool.Tool, trusted bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, t := range tools {
		before, known := tb.trusted[t.Name]
		tb.trusted[t.Name] = trusted && (before || !known)
	}
}

// IsTrusted reports whether a tool comes from a file that the user has approved.
func (tb *Toolbox) IsTrusted(name string) bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.trusted[name]
}

// IsUntrusted reports whether a tool comes from a file that the user has not approved.
func (tb *Toolbox) IsUntrusted(name string) bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	trusted, known := tb.trusted[name]
	return known && !trusted
}

// scriptHost returns the surroundings of an agent's scripts.
func (tb *Toolbox) scriptHost(n flow.ToolNeed) *script.Host {
	return &script.Host{
		Config:    tb.shared.Dirs.Config,
		Functions: tb.shared.Dirs.Functions,
		Workspace: tb.workspace,
		Env:       tb.shared.ScriptEnv(),
		Secret:    tb.shared.isSecretVariable,
		Agent: &script.Agent{
			Name:      n.Agent,
			Dir:       n.Dir,
			Home:      tb.Homes[n.Dir],
			Variables: tb.shared.resolveVariables(n.Variables),
		},
		Packages: tb.PackageDirs(n.Dir),
		Timeout:  tb.shared.Config.ToolTimeout,
		Boxed:    func(p *tool.Permit) script.BoxedCall { return builtin.NewBoxedCall(tb.builtinHost(), p) },
		Started:  func(ctx context.Context, child json.RawMessage) error { return graph.Note(ctx, child) },
	}
}

// reportDotenvs adds what is wrong in the files of variables that tools get.
func (tb *Toolbox) reportDotenvs(h *script.Host, set *flow.Toolset) {
	for _, f := range h.CheckDotenvs() {
		set.Problems = append(set.Problems, flow.ToolProblem{
			Text: f.Text,
			Pos:  strictyaml.Pos{File: f.Path, Line: f.Line, Col: 1},
		})
	}
}

// toolEndings are the endings of files of tools, in the order in which raddle looks
// for them.
var toolEndings = []string{"", ".sh", ".py", ".ts"}

// addGlobalTool finds a tool that an agent's file names: next to the agent, among the
// user's functions, then in the program.
func (tb *Toolbox) addGlobalTool(h *script.Host, n flow.ToolNeed, name string, set *flow.Toolset) {
	for _, dir := range []string{n.Dir, tb.shared.Dirs.Functions} {
		file := toolFile(filepath.Join(dir, "tools"), name)
		if file == "" {
			continue
		}
		in := *h
		in.Functions = dir
		tools, problems := in.GlobalTools([]string{name}, nil)
		for _, p := range problems {
			set.Problems = append(set.Problems, newScriptProblem(p))
		}
		tb.addTools(set, tools, dir != n.Dir || tb.TrustsDir(dir))
		set.Scripts = append(set.Scripts, file)
		return
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	other := tb.otherLanguage(set, filepath.Join(n.Dir, "tools", stem)) || tb.otherLanguage(set, filepath.Join(tb.shared.Dirs.Functions, "tools", stem))
	found := builtin.LookupGroup(name, tb.builtinHost())
	for _, t := range found {
		if t.Touches != nil && !t.Effect.MayRepeat() {
			t.Repeats = func(args json.RawMessage) bool { return tb.policy.OnlyReads(t, args) }
		}
		switch at := slices.IndexFunc(set.Tools, func(have tool.Tool) bool { return have.Name == t.Name }); {
		case at < 0:
			set.Tools = append(set.Tools, t)
		case t.Form == "": // the agent also names it alone, and every model is offered it
			set.Tools[at].Form = ""
		}
	}
	if len(found) > 0 || other {
		return // everything else has been reported already
	}
	next := wording.SuggestNearest(strings.TrimSuffix(name, filepath.Ext(name)), builtin.ToolNames(), "")
	if next == "" {
		next = "put its file into " + tb.shared.Dirs.ShortPath(filepath.Join(tb.shared.Dirs.Functions, "tools")) + " (raddle tools ls lists what there is)"
	}
	set.Problems = append(set.Problems, flow.ToolProblem{
		Tool: name,
		Text: fmt.Sprintf("there is no tool %q: %s", name, next),
	})
}

func (tb *Toolbox) builtinHost() builtin.Host {
	return builtin.Host{
		Workspace:    tb.workspace,
		Env:          tb.ChildEnv(),
		Timeout:      tb.callTimeout(),
		Hidden:       tb.policy.HiddenFilter,
		Box:          tb.builtinBox(),
		RefusedHosts: tb.network.TakeRefused,
		Memory:       tb.shared.toolMemory(),
		Secret:       tb.shared.isSecretVariable,
		Jobs:         tb.shared.Jobs,
	}
}

// builtinBox returns what opens the box of the run; nil: the user wants none.
func (tb *Toolbox) builtinBox() func() (*box.Box, error) {
	if !tb.shared.UsesBox() {
		return nil
	}
	return tb.OpenBox
}

// toolMemory returns what the tools of memory use.
func (s *Shared) toolMemory() *builtin.Memory {
	return &builtin.Memory{
		Open:      s.OpenMemory,
		Embedder:  s.Embedder,
		User:      graph.UserOf,
		HasSecret: func(text string) bool { return s.SecretSet().Text(text) != text },
	}
}

// toolFile returns the file of a tool in a directory, or "" if there is none.
func toolFile(dir, name string) string {
	for _, ending := range toolEndings {
		path := filepath.Join(dir, name+ending)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.Ext(path) != "" {
			return path
		}
	}
	return ""
}

// ownFile returns the file of an agent's own tools, or "" if it has none.
func ownFile(dir string) string {
	for _, ending := range toolEndings[1:] {
		if path := filepath.Join(dir, "tools"+ending); config.IsFile(path) {
			return path
		}
	}
	return ""
}

// otherEndings are the endings of files of tools that other programs run.
var otherEndings = []string{".js", ".mjs", ".cjs"}

// otherLanguage reports a file of tools, given without its ending, that raddle does
// not run.
func (tb *Toolbox) otherLanguage(set *flow.Toolset, path string) (found bool) {
	for _, ending := range otherEndings {
		if config.IsFile(path + ending) {
			set.Unused = append(set.Unused, path+ending)
			set.Problems = append(set.Problems, flow.ToolProblem{
				Tool: filepath.Base(path),
				Text: fmt.Sprintf("%s is not used: raddle does not run tools in JavaScript. Write it in TypeScript, as %s.ts",
					tb.shared.Dirs.ShortPath(path+ending), filepath.Base(path)),
			})
			return true
		}
	}
	return false
}

// serversFile is the name of the files that list MCP servers.
const serversFile = "mcp.json"

// workspaceVariable is the variable that passes the workspace to servers.
const workspaceVariable = "RADDLE_WORKSPACE"

// serverFiles returns the files that list MCP servers; the first one that has an id counts.
func (tb *Toolbox) serverFiles(agentDir string) []string {
	d := tb.shared.Dirs
	files := []string{filepath.Join(agentDir, serversFile), filepath.Join(d.Functions, "mcp.json"), filepath.Join(d.Config, "mcp.json")}
	if own := tb.shared.Config.MCPFile; own != "" {
		if !filepath.IsAbs(own) {
			own = filepath.Join(d.Config, own)
		}
		files = append(files, own)
	}
	return files
}

// callTimeout returns the time limit of one call where it cannot be "none".
func (tb *Toolbox) callTimeout() time.Duration {
	if t := tb.shared.Config.ToolTimeout; t >= 0 {
		return t
	}
	const ages = 10_000 * time.Hour
	return ages
}

// findServers finds the servers that an agent uses. It starts none.
func (tb *Toolbox) findServers(n flow.ToolNeed, set *flow.Toolset) error {
	all := slices.Equal(n.Servers, []string{"all"})
	wanted := n.Servers
	if !all {
		wanted = slices.Concat(n.Servers, n.SkillServers)
	}
	if len(wanted) == 0 {
		return nil
	}
	if on := tb.shared.Config.MCP; on != nil && !*on {
		set.Problems = append(set.Problems, flow.ToolProblem{
			Server: wanted[0],
			Text:   "mcp_server_support is off: the agent's MCP servers are not used",
		})
		return nil
	}
	home := map[string]*mcp.Servers{}
	var known []string
	for i, path := range tb.serverFiles(n.Dir) {
		if i == 0 && config.IsFile(path) && !tb.TrustsDir(n.Dir) {
			set.Problems = append(set.Problems, flow.ToolProblem{
				Server: wanted[0],
				Text:   fmt.Sprintf("the servers of %s are not used: they need consent before they run", tb.shared.Dirs.ShortPath(path)),
			})
			continue
		}
		servers, err := tb.openServers(path, set)
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
	if servers := tb.openProject(wanted, known, set); servers != nil {
		for _, id := range servers.IDs() {
			if home[id] == nil {
				home[id] = servers
				known = append(known, id)
			}
		}
	}
	slices.Sort(known)
	set.Servers = n.Servers
	if all {
		set.Servers = known
	}
	find := func(ids []string, problems *[]flow.ToolProblem) (found []string) {
		for _, id := range ids {
			if home[id] != nil {
				found = append(found, id)
				continue
			}
			next := wording.SuggestNearest(id, known, "")
			if next == "" {
				next = "name it in " + tb.shared.Dirs.ShortPath(tb.serverFiles(n.Dir)[1])
			}
			*problems = append(*problems, flow.ToolProblem{
				Server: id,
				Text:   fmt.Sprintf("there is no MCP server %q: %s", id, next),
			})
		}
		return found
	}
	set.Servers, set.SkillServers = find(set.Servers, &set.Problems), find(n.SkillServers, &set.SkillProblems)
	tools := &serverTools{home: home, reported: map[string]bool{}, failed: map[string]bool{}, worked: map[string]bool{}}
	set.Serve = tools.listTools
	set.Start = tools.startServers
	set.Starting = tools.startingTools
	return nil
}

// openServers reads the servers of a file, once.
func (tb *Toolbox) openServers(path string, set *flow.Toolset) (*mcp.Servers, error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if s := tb.servers[path]; s != nil {
		return s, nil
	}
	file, err := mcp.Load(path)
	if err != nil {
		return nil, err
	}
	return tb.openFile(file, set), nil
}

// openFile opens the servers of a file that was read. The caller must hold mu.
func (tb *Toolbox) openFile(file mcp.File, set *flow.Toolset) *mcp.Servers {
	path := file.Path
	for _, p := range file.Problems {
		set.Problems = append(set.Problems, flow.ToolProblem{Text: p.Message, Hint: p.Hint, Pos: p.Pos})
	}
	lookup := func(name string) (string, bool) {
		if name == workspaceVariable {
			return tb.workspace, true
		}
		return tb.shared.env.Lookup(name)
	}
	secrets := tb.shared.SecretSet()
	secrets.Add(file.Secrets(lookup)...)
	// The box of a server shares no files with commands and other servers.
	openBox := func() (*box.Box, func(), error) {
		return tb.makeBox(&boxNetwork{policy: tb.policy, tool: serverName}, true)
	}
	// A server runs in the directory of the file that names it, not in the workspace: npx,
	// python -m and similar commands would run files of the workspace as the server.
	s := mcp.Open(file, mcp.Options{
		Env:         append(slices.Clone(tb.ChildEnv()), workspaceVariable+"="+tb.workspace),
		Lookup:      lookup,
		Dir:         filepath.Dir(path),
		Workspace:   tb.workspace,
		Box:         openBox,
		Secret:      tb.shared.isSecretVariable,
		Log:         tb.Log,
		CallTimeout: tb.callTimeout(),
		Redact:      secrets.Text,
		Waiting:     emitServerStart,
		Token:       tb.shared.Logins.Token,
		Seen:        &tb.shared.servers,
	})
	tb.servers[path] = s
	return s
}

// emitServerStart reports that a node waits for the start of a server, and when the wait is over.
func emitServerStart(ctx context.Context, server string) (ended func()) {
	if !graph.IsEmitEnabled(ctx) {
		return func() {}
	}
	graph.Emit(ctx, agent.ServerStarting{Server: server})
	return func() { graph.Emit(ctx, agent.ServerStarting{Server: server, Over: true}) }
}

// Close ends all servers.
func (tb *Toolbox) Close() error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var first error
	for _, s := range tb.servers {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	tb.boxed.once.Do(func() { tb.boxed.err = errBoxClosed })
	if tb.boxed.remove != nil {
		tb.boxed.remove()
	}
	return first
}
