// Package builtin has the program's own tools, under the names and with the
// parameters that agents of the field expect: files, search, patches, shell,
// fetching, time, and services that take a key from the environment.
//
//	host := builtin.Host{Workspace: dir, Env: os.Environ()}
//	t, ok := builtin.Lookup("fs_read.sh", host)
//
// A tool makes every call and checks no permission. Its Touches lists everything that
// a call reaches, so that the caller can decide before the call.
package builtin

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/tool"
)

// Defaults of a Host.
const (
	DefaultTimeout = 30 * time.Minute // of a program that a tool runs
	DefaultLimit   = 256 << 10        // bytes of a result
)

// fetchTimeout bounds one exchange over the network.
const fetchTimeout = 2 * time.Minute

// A Host is what tools work in. It is only read, and may be shared.
type Host struct {
	// Workspace is the directory that relative paths start from and programs run
	// in; it is absolute.
	Workspace string
	// Env are keys and settings of tools, and all that programs inherit, as
	// "NAME=value". Of a name that occurs twice the last counts.
	Env []string
	// Client is for the network; nil: one that keeps to HTTP and its proxies.
	// Its CheckRedirect is not used.
	Client *http.Client
	// Base replaces the beginning of the URLs that a tool asks, by the tool's name:
	// for a mirror or a proxy of the service.
	Base map[string]string
	// Timeout is for programs; zero: DefaultTimeout.
	Timeout time.Duration
	// Limit is how much of an output is kept, in bytes, its beginning and its end;
	// zero: DefaultLimit.
	Limit int
	// Now is the clock; nil: that of the system.
	Now func() time.Time
	// Hidden returns what a tool that looks through directories leaves out, by the
	// tool's name: it is given absolute paths without links of the files and
	// directories below. nil: nothing is left out, and permission is needed for all
	// that lies there.
	Hidden func(tool string) func(path string) bool

	// Memory is what the tools of memory use; nil: they fail.
	Memory *Memory

	printed func(text string) // of the call that runs: shows what it prints; may be nil
}

// endings are what files of tools end in.
var endings = []string{".sh", ".py", ".ts", ".js"}

// ToolNames are the names of all tools, sorted.
func ToolNames() []string {
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = d.name
	}
	slices.Sort(names)
	return names
}

// Lookup finds a tool by its name, which may be that of a file (fs_read.sh). It
// reports false if there is no such tool.
func Lookup(name string, h Host) (tool.Tool, bool) {
	name = trimEnding(name)
	if slices.Contains(webSearchNames, name) {
		return webSearch(name, h).buildTool(h), true
	}
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name })
	if i < 0 {
		return tool.Tool{}, false
	}
	return definitions[i].buildTool(h), true
}

// A definition is one tool.
type definition struct {
	name     string
	about    string
	effect   tool.Effect
	parallel bool
	polls    bool
	params   []param
	touches  func(h Host, a arguments) (tool.Touch, error) // nil: it touches nothing
	run      func(ctx context.Context, h Host, a arguments) (tool.Result, error)
}

// definitions are all tools.
var definitions = slices.Concat(fileTools, findTools, commandTools, webTools, searchTools, messageTools, localTools, memoryTools)

// buildTool puts a definition to work for a host.
func (d definition) buildTool(h Host) tool.Tool {
	return tool.Tool{
		Name: d.name, Description: d.about, Schema: argumentSchema(d.params),
		Effect: d.effect, Parallel: d.parallel, Polls: d.polls,
		Touches: func(raw json.RawMessage) (tool.Touch, error) {
			a, err := parseArguments(d.params, raw)
			if err != nil || d.touches == nil {
				return tool.Touch{}, err
			}
			return d.touches(h, a)
		},
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			a, err := parseArguments(d.params, c.Args)
			if err != nil {
				return tool.Result{}, err
			}
			h := h
			h.printed = c.Output
			return d.run(ctx, h, a)
		},
	}
}

// envValue returns the value of an environment variable, or "" if it is not set.
func (h Host) envValue(name string) string {
	for _, entry := range slices.Backward(h.Env) {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

// resolvePath is a path as the system takes it. ~ means the home directory.
func (h Host) resolvePath(p string) string {
	if home := h.envValue("HOME"); home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
		p = filepath.Join(home, p[1:])
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(h.Workspace, p)
}

func (h Host) outputLimit() int {
	if h.Limit > 0 {
		return h.Limit
	}
	return DefaultLimit
}

func (h Host) programTimeout() time.Duration {
	if h.Timeout > 0 {
		return h.Timeout
	}
	return DefaultTimeout
}

func (h Host) currentTime() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}
