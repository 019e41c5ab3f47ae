// Package builtin has raddle's own tools, with the names and parameters that
// agents written for similar programs expect: files, search, patches, shell,
// fetching, time, and services that take a key from the environment.
//
//	host := builtin.Host{Workspace: dir, Env: os.Environ()}
//	t, ok := builtin.Lookup("fs_read.sh", host)
//
// A tool makes every call: it does not check permissions. Its Touches lists everything that
// a call reaches, so that the caller can decide before the call.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/environ"
	"raddle.dev/tool"
)

// Defaults of a Host.
const (
	DefaultTimeout = 30 * time.Minute // of a program that a tool runs
	DefaultLimit   = 256 << 10        // bytes of a result
	// DefaultCommandTimeout is the time after which a shell command ends whose call says nothing else, if Timeout is
	// zero.
	DefaultCommandTimeout = 10 * time.Minute
	// DefaultMaxOutput is how many bytes a program may print before it is ended.
	DefaultMaxOutput = 64 << 20
)

// fetchTimeout bounds one exchange over the network.
const fetchTimeout = 2 * time.Minute

// A Host is the environment of tools. Tools only read it, so several may share it.
type Host struct {
	// Workspace is the absolute path of the directory that relative paths start from and in
	// which programs run.
	Workspace string
	// Env holds keys and settings of tools, and the complete environment of programs, as
	// "NAME=value". If a name occurs twice, the last value counts.
	Env []string
	// Secret reports whether a variable of Env holds a secret. Commands that no one allowed, and that run only because
	// they are known to be harmless, do not get such variables. nil: no variable is one.
	Secret func(name, value string) bool
	// Client sends requests; nil: a client with a timeout of two minutes. Its CheckRedirect is not used. Tools look at
	// each address before they connect to it, and so keep away from private networks; a Transport that is not an
	// *http.Transport, or has a dial function of its own, must do that itself.
	Client *http.Client
	// Resolver finds the addresses of hosts; nil: that of the system.
	Resolver *net.Resolver
	// Base replaces the beginning of the URLs of a service, by the name of the tool: for a
	// mirror or a proxy.
	Base map[string]string
	// Timeout limits the time of each program; zero: DefaultTimeout.
	Timeout time.Duration
	// Limit is how many bytes of an output are kept, from its beginning and its end; zero:
	// DefaultLimit.
	Limit int
	// Now is the clock; nil: that of the system.
	Now func() time.Time
	// Hidden returns, for the name of a tool that searches directories, a function that reports
	// whether the tool leaves out a file or directory. Its argument is an absolute path without
	// links. nil: nothing is left out, and a call needs permission for everything below the
	// directory.
	Hidden func(tool string) func(path string) bool

	// Box returns the box in which commands run that nothing else lets run: see [tool.Permit]. nil: there is none.
	Box func() (*box.Box, error)
	// RefusedHosts returns the hosts that programs in the box wanted to reach since the last call and did not; nil:
	// that is not known.
	RefusedHosts func() []string

	// Memory is the store of the tools memory__save, memory__search and memory__forget; nil:
	// they fail.
	Memory *Memory

	// Jobs are the background commands of the process; nil: there are none, and the tools that start and use them fail.
	Jobs *Jobs

	key     string                           // of the current call, as in tool.Call
	permit  *tool.Permit                     // of the current call; nil: no one judges it
	printed func(text string)                // shows what the current call prints; nil: nothing is shown
	seen    func(path string) *tool.SeenFile // of the current call: see [tool.Call]
	repeat  bool                             // the current call may have been made before
}

// endings are the extensions of files of tools.
var endings = []string{".sh", ".py", ".ts", ".js"}

// ToolNames returns the names of all tools, sorted.
func ToolNames() []string {
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = d.name
	}
	slices.Sort(names)
	return names
}

// Lookup returns the tool with a name, which may be that of a file (fs_read.sh). ok is
// false if there is no such tool.
func Lookup(name string, h Host) (t tool.Tool, ok bool) {
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
	sees     bool
	params   []param
	touches  func(h Host, a arguments) (tool.Touch, error) // nil: it touches nothing
	// what a call would change, without doing it; nil: no content of a file
	plan func(h Host, a arguments) ([]*fileEdit, error)
	run  func(ctx context.Context, h Host, a arguments) (tool.Result, error)
}

// definitions are all tools.
var definitions = slices.Concat(fileTools, []definition{*writeTool}, editTools, findTools, commandTools, jobTools, webTools, searchTools, messageTools, localTools, memoryTools)

// buildTool returns the tool of a definition for a host.
func (d definition) buildTool(h Host) tool.Tool {
	offered := d.params
	if h.Box == nil {
		offered = slices.DeleteFunc(slices.Clone(offered), func(p param) bool { return p.name == outsideParam.name || p.name == hostsParam.name })
	}
	t := tool.Tool{
		Name:        d.name,
		Description: d.about,
		Schema:      argumentSchema(offered),
		Effect:      d.effect,
		Parallel:    d.parallel,
		Polls:       d.polls,
		Sees:        d.sees,
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
			h.permit = c.Permit
			h.key = c.Key
			h.seen = c.Seen
			h.repeat = c.Repeat
			return d.run(ctx, h, a)
		},
	}
	if d.plan != nil {
		t.Refuse = func(c tool.Call) *tool.Result { return d.refuseUnseen(h, c) }
	}
	return t
}

// refuseUnseen returns the result of a call that changes nothing because the conversation does not know a file; nil for
// every other one.
func (d definition) refuseUnseen(h Host, c tool.Call) *tool.Result {
	a, err := parseArguments(d.params, c.Args)
	if err != nil {
		return nil
	}
	h.seen = c.Seen
	_, err = d.plan(h, a)
	if _, unseen := errors.AsType[*unseenError](err); !unseen {
		return nil
	}
	r, _ := failWith("", err) // it has no error
	return &r
}

// envValue returns the value of an environment variable, or "" if it is not set.
func (h Host) envValue(name string) string {
	return environ.Environ(h.Env).Get(name)
}

// resolvePath returns a path as an absolute one. ~ means the home directory.
func (h Host) resolvePath(p string) string {
	if home := environ.Environ(h.Env).FindHome(); home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
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
