// Package script runs tools that are written as scripts: functions of bash,
// Python or TypeScript files that package declare has read. A call is a child
// process of its own; nothing is built beforehand, and no file of the user is
// changed.
//
//	h := &script.Host{Functions: dir, Workspace: cwd, Env: os.Environ(), Agent: &script.Agent{Name: "sql", Dir: agentDir}}
//	own, problems := h.Own()
//	global, more := h.Global([]string{"fs_cat", "execute_command.sh"}, nil)
//
// Arguments reach a tool as they are: as shell variables, as keyword arguments,
// as parameters. What the tool writes to the file named by LLM_OUTPUT, or
// returns, is its result.
//
// A call ends with its process: whatever it has started in its group is killed,
// its files are removed, and what it has written is kept up to a limit.
package script

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
	"raddle.dev/tool/declare"
)

const (
	// DefaultTimeout is how long a call may take where [Host.Timeout] is zero.
	DefaultTimeout = 1800 * time.Second
	// DefaultLimit is the number of bytes kept of each output where [Host.Limit] is zero.
	DefaultLimit = 64 << 10
)

// A Host is the surroundings of tools. It must not be changed while tools of it
// run; they may run concurrently. What tools write is not searched for secrets:
// who knows them takes them out of results and printed lines.
type Host struct {
	Config    string // the configuration directory; empty: none
	Functions string // the directory whose subdirectory "tools" holds the global tools; empty: none
	Workspace string // where tools run; empty: the directory of this process
	// Env is the environment that tools get, as "NAME=value". Nothing else is
	// inherited, so a secret reaches a tool only if it is put here or in a .env
	// file.
	Env []string
	// Secret reports whether a variable of Env holds a secret. A script that has the name of a tool that runs commands
	// does not get such variables for a command that no one allowed. nil: no variable is one.
	Secret func(name, value string) bool
	Agent  *Agent // whose tools these are; nil: no agent's
	// Packages are directories whose interpreters and packages tools may use, best
	// first: virtual environments of Python and node_modules, or directories that hold
	// them as .venv and node_modules. What else lies in Workspace is not used, also
	// where Env names it.
	Packages []string

	Timeout time.Duration // of one call; zero: DefaultTimeout; negative: none
	Limit   int           // bytes kept of each output, its beginning and its end; zero: DefaultLimit

	// Started, if set, is called when a call's process runs, with what
	// identifies it to a later process of this machine. An error ends the call.
	Started func(ctx context.Context, child json.RawMessage) error
	// Boxed returns what runs the process of a call that must run in a box: see [tool.Permit]. nil: such a call fails.
	Boxed func(p *tool.Permit) BoxedCall
	// Printed, if set, is given each line that a tool prints to its standard
	// output, without escapes, as it comes. It must not block.
	Printed func(ctx context.Context, line string)
}

// A BoxedCall runs the process of one call in a box.
type BoxedCall interface {
	// TempDir returns a directory that exists inside of the box and outside of it.
	TempDir() (string, error)
	// RunCommand runs the process to its end. What it has started ends with it.
	RunCommand(ctx context.Context, c proc.Command) (proc.Result, error)
	// AddReport adds to the result of the tool with a name what the box did.
	AddReport(name string, r tool.Result) tool.Result
}

// An Agent is a directory with tools of its own.
type Agent struct {
	Name      string            // of the directory
	Dir       string            // absolute
	Home      string            // has the .env file; "": Dir
	Variables map[string]string // each reaches tools as LLM_AGENT_VAR_<NAME>
}

// languages are the extensions of tools in the order in which they are looked for.
var languages = []string{".sh", ".py", ".ts"}

// OwnTools returns the tools of the agent's own file: tools.sh, else tools.py, else
// tools.ts. An agent without one has none.
func (h *Host) OwnTools() ([]tool.Tool, []declare.Problem) {
	path := h.ownFile()
	if path == "" {
		return nil, nil
	}
	f := declare.Load(path)
	return h.buildTools(f, true), f.Problems
}

// ownFile returns the agent's file of tools; empty: there is none.
func (h *Host) ownFile() string {
	if h.Agent == nil {
		return ""
	}
	for _, ext := range languages {
		path := filepath.Join(h.Agent.Dir, "tools"+ext)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// GlobalTools returns the global tools of these names. A name is a file of the
// directory of tools, with or without its extension, or an alias: a list of such
// names with commas between them. A tool that two files declare is taken from
// the first. What is broken is reported and left out.
func (h *Host) GlobalTools(names []string, aliases map[string]string) (tools []tool.Tool, problems []declare.Problem) {
	files := map[string]bool{}
	from := map[string]string{} // file by tool
	if h.Functions == "" && len(names) > 0 {
		return nil, []declare.Problem{{File: "tools", Text: "there is no directory of functions, so no global tool can be found: " + strings.Join(names, ", ")}}
	}
	for _, name := range h.expandAliases(names, aliases) {
		path := h.toolPath(name)
		if files[path] {
			continue
		}
		files[path] = true
		f := declare.Load(path)
		problems = append(problems, f.Problems...)
		for _, t := range h.buildTools(f, false) {
			if first, taken := from[t.Name]; taken {
				problems = append(problems, declare.Problem{File: path, Lost: t.Name,
					Text: "the tool '" + t.Name + "' is left out: " + first + " declares it already; name one of the files only"})
				continue
			}
			from[t.Name] = path
			tools = append(tools, t)
		}
	}
	return tools, problems
}

// expandAliases replaces aliases that are no files by what they mean.
func (h *Host) expandAliases(names []string, aliases map[string]string) (all []string) {
	for _, name := range names {
		list, ok := aliases[name]
		if _, err := os.Stat(h.toolPath(name)); err == nil || !ok {
			all = append(all, name)
			continue
		}
		for part := range strings.SplitSeq(list, ",") {
			if part = strings.TrimSpace(part); part != "" && !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

// toolPath returns the file of a global tool, whether it exists or not. A name never
// leads out of the directory.
func (h *Host) toolPath(name string) string {
	dir := filepath.Join(h.Functions, "tools")
	path := filepath.Join(dir, filepath.Base(filepath.Clean("/"+name)))
	for _, ext := range append([]string{""}, languages...) {
		if info, err := os.Stat(path + ext); err == nil && info.Mode().IsRegular() {
			return path + ext
		}
	}
	if filepath.Ext(path) == "" {
		return path + languages[0] // what the message names
	}
	return path
}

// buildTools returns the declared functions of a file.
func (h *Host) buildTools(f declare.File, own bool) []tool.Tool {
	tools := make([]tool.Tool, 0, len(f.Declarations))
	guards := guardLines(f)
	for i, d := range f.Declarations {
		s := &script{host: h, file: absolutePath(f.Path), language: f.Language, own: own, Declaration: d}
		tools = append(tools, tool.Tool{
			Name: d.Name, Description: d.Description, Schema: d.Schema,
			Effect: d.Effect, InDoubt: d.InDoubt, Parallel: d.Effect == tool.ReadOnly, Check: s.checkArguments, Run: s.runTool,
		})
		if d.Effect == tool.Undeclared && isGuarded(f, i, guards) {
			tools[len(tools)-1].Touches = func(json.RawMessage) (tool.Touch, error) {
				return tool.Touch{Unknown: "asks before it acts, as its script says with guard_operation or guard_path"}, nil
			}
		}
	}
	return tools
}

// guard matches a call of one of the functions by which a script says that a person
// should be asked.
var guard = pattern.CompileLater(`^[^#]*\bguard_(operation|path)\b`)

// largestScript is the size in bytes of the largest script whose text is searched.
const largestScript = 4 << 20

// guardLines lists the lines of a bash file that call them, from 1.
func guardLines(f declare.File) (lines []int) {
	if f.Language != declare.LanguageBash || len(f.Declarations) == 0 {
		return nil
	}
	text, err := plainfile.Read(f.Path, largestScript)
	if err != nil {
		return nil
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; guard().MatchString(line) {
			lines = append(lines, n)
		}
	}
	return lines
}

// isGuarded reports whether a function of the file, by its index, has such a line. One
// before the first function belongs to all.
func isGuarded(f declare.File, i int, lines []int) bool {
	from := f.Declarations[i].Line
	to := math.MaxInt
	first := from
	for _, d := range f.Declarations {
		first = min(first, d.Line)
		if d.Line > from {
			to = min(to, d.Line)
		}
	}
	return slices.ContainsFunc(lines, func(n int) bool { return n < first || n >= from && n < to })
}

func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (h *Host) callTimeout() time.Duration {
	if h.Timeout == 0 {
		return DefaultTimeout
	}
	return max(h.Timeout, 0)
}

func (h *Host) outputLimit() int {
	if h.Limit > 0 {
		return h.Limit
	}
	return DefaultLimit
}

func (h *Host) workspaceDir() string {
	if h.Workspace != "" {
		return absolutePath(h.Workspace)
	}
	return absolutePath(".")
}
