package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/box"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Defaults of Options.
const (
	DefaultStartTimeout = 60 * time.Second // the first start of a package that is fetched takes its time
	DefaultCallTimeout  = 5 * time.Minute
	DefaultRestarts     = 5
	DefaultDirect       = 10
)

// Options say how servers are run. The zero value is a good choice.
type Options struct {
	// Env is what child processes get, before their own variables; nil: the
	// environment of this process.
	Env []string
	// Lookup returns the value of a reference ${NAME} or {{NAME}}, and whether there is one;
	// nil: the environment of this process.
	Lookup func(name string) (string, bool)
	// Dir is where child processes run, and what a relative cwd is relative
	// to; empty: the working directory of this process.
	Dir string
	// Box makes the box in which a server with Server.Sandbox runs until remove is called, without the variables of Env
	// that are Secret; nil: there is none. Where there is none, such a server does not start.
	Box    func() (b *box.Box, remove func(), err error)
	Secret func(name, value string) bool // nil: no variable is one
	// Workspace is the directory that servers get as their root; empty: none.
	Workspace string

	StartTimeout time.Duration // until a server has answered and listed its tools; 0: DefaultStartTimeout
	// CallTimeout is the time of one call, which begins again when the server reports
	// progress, at most 24 times; 0: DefaultCallTimeout.
	CallTimeout time.Duration
	// Restarts is how often a server is started again without a call that
	// worked in between; 0: DefaultRestarts; negative: never.
	Restarts int
	// Direct is the largest number of tools of a server whose tools are also offered under
	// their own names; 0: DefaultDirect; negative: never.
	Direct int

	// Waiting is called when something waits for the start of a server; ended is called when the wait is over; nil:
	// nothing is called.
	Waiting func(ctx context.Context, server string) (ended func())

	// Token returns the token of a login to the server at an address, "" if there is none. rejected is the token that
	// the server has refused; "" for a first request. nil: there are no logins. The credential in an entry counts
	// before it.
	Token func(ctx context.Context, address, rejected string) (string, error)

	// Seen remembers what servers have said about their tools. Servers of one process share it; nil: these servers have
	// one of their own.
	Seen *Seen
	// Redact removes further secrets from what servers say. Those that their
	// entries hold and refer to are always removed; nil: there are no others.
	Redact func(text string) string
	// Log gets what servers write to stderr, at level debug, and whether they
	// could be started; nil: nothing is logged.
	Log *slog.Logger
}

// Servers are the servers of one file. They are safe for concurrent use.
type Servers struct {
	list []*server // sorted by id
	web  *http.Transport
	end  context.CancelFunc
}

// Open returns the servers of a file. It starts none. The caller must Close them.
func Open(f File, o Options) *Servers {
	o = o.withDefaults()
	life, end := context.WithCancel(context.Background())
	s := &Servers{end: end}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		s.web = t.Clone() // connections of its own, which Close can close
	} else {
		s.web = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	for _, c := range f.Servers {
		s.list = append(s.list, &server{config: c, options: &o, web: s.web, life: life})
	}
	return s
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.Restarts == 0 {
		o.Restarts = DefaultRestarts
	}
	if o.Direct == 0 {
		o.Direct = DefaultDirect
	}
	if o.Seen == nil {
		o.Seen = &Seen{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	return o
}

// A ServerError is a server that could not be used.
type ServerError struct {
	Server string // its id
	Err    error  // free of secrets
}

func (e *ServerError) Error() string { return fmt.Sprintf("MCP server '%s': %v", e.Server, e.Err) }

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// IDs lists the servers of the file, sorted.
func (s *Servers) IDs() []string {
	if s == nil {
		return nil
	}
	ids := make([]string, len(s.list))
	for i, v := range s.list {
		ids[i] = v.config.ID
	}
	return ids
}

// ProgramPaths lists the commands and arguments of the servers over stdio as paths, each
// relative one as seen from where its server runs. Most of them name no file.
func (s *Servers) ProgramPaths() (paths []string) {
	if s == nil {
		return nil
	}
	for _, v := range s.list {
		if v.config.Command == "" {
			continue
		}
		dir := v.config.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(v.options.Dir, dir)
		}
		for _, path := range append([]string{v.config.Command}, v.config.Args...) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// Tools returns the tools of the named servers, in the order of the names. It starts those that do not run, all at the
// same time, and waits for them. For each server that cannot be used it returns a *ServerError, and for each tool that
// is left out a *ToolError, together with the tools of the others. When ctx ends, the servers that are still starting
// count as failed, and their start continues.
//
// The list of a server that says it has changed is read again by the next call.
func (s *Servers) Tools(ctx context.Context, ids []string) ([]tool.Tool, []error) {
	results := make([][]tool.Tool, len(ids))
	errs := make([][]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		if slices.Index(ids, id) < i {
			continue
		}
		v := s.findServer(id)
		if v == nil {
			errs[i] = []error{&ServerError{Server: id, Err: s.unknownServer(id)}}
			continue
		}
		all.Go(func() {
			c, err := v.connectWithTools(ctx)
			if err != nil {
				errs[i] = []error{&ServerError{Server: id, Err: err}}
				return
			}
			results[i], errs[i] = v.buildTools(c)
		})
	}
	all.Wait()
	return slices.Concat(results...), slices.Concat(errs...)
}

func (s *Servers) unknownServer(id string) error {
	if s == nil || len(s.list) == 0 {
		return fmt.Errorf("%s MCP server not found in config: no server is configured", id)
	}
	return fmt.Errorf("%s MCP server not found in config, which has %s", id, strings.Join(s.IDs(), ", "))
}

func (s *Servers) findServer(id string) *server {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.list, func(v *server) bool { return v.config.ID == id })
	if i < 0 {
		return nil
	}
	return s.list[i]
}

// ParseEntry returns the server of which an entry of a list of tools means all tools, as in
// "mcp:github". ok is false for any other entry.
func ParseEntry(entry string) (id string, ok bool) {
	id, ok = strings.CutPrefix(entry, "mcp:")
	return id, ok && id != ""
}

// AnswerAbsent returns the result of a call to a function of a server that the request did not
// offer. ok is false if the name is not that of such a function. Servers may be nil.
func (s *Servers) AnswerAbsent(call llm.ToolCall) (r tool.Result, ok bool) {
	for _, f := range []string{"invoke", "search", "describe", "resources", "prompts"} {
		id, ok := strings.CutPrefix(call.Name, "mcp_"+f+"_")
		switch {
		case !ok:
			continue
		case s == nil || len(s.list) == 0:
			return tool.FailedResult("MCP is not configured"), true
		case s.findServer(id) != nil:
			return tool.FailedResult("MCP server '%s' is not among the tools of this request", id), true
		case f == "search":
			return tool.JSONResult([]hit{}), true
		case f == "invoke":
			return tool.FailedResult("Invoked MCP server does not exist: %s", id), true
		}
		return tool.FailedResult("%s MCP server not found in config", id), true
	}
	return tool.Result{}, false
}

// Close ends all calls and servers, and returns when all their processes and connections have
// ended. Its error is always nil. Servers may be nil.
func (s *Servers) Close() error {
	if s == nil {
		return nil
	}
	s.end()
	var all sync.WaitGroup
	for _, v := range s.list {
		all.Go(v.close)
	}
	all.Wait()
	s.web.CloseIdleConnections()
	return nil
}
