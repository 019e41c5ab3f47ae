// Package serving puts a server together: its gateway, the service that drives its runs, the API, the protocols and the Studio.
package serving

import (
	"errors"
	"net/url"
	"os"
	"slices"
	"syscall"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/server"
	"raddle.dev/server/a2a"
	"raddle.dev/server/agui"
	"raddle.dev/server/api"
	"raddle.dev/server/gateway"
	"raddle.dev/server/mcp"
	"raddle.dev/server/openai"
	"raddle.dev/server/studio"
	"raddle.dev/server/webhook"
)

// Options say what a server offers.
type Options struct {
	gateway.Settings
	MaxRuns    int
	AllowPaths bool     // requests may name an agent by its path
	Disable    []string // protocols that it does not offer
	NoWorker   bool     // answer requests, and drive nothing
	Recover    bool     // continue the runs of a server that was killed
	WaitsPort  bool     // wait a little for a port that is in use
}

// ServiceOptions returns how the service of the server works.
func (opts *Options) ServiceOptions(p *app.Process) server.Options {
	return server.Options{
		MaxRuns:    opts.MaxRuns,
		AllowPaths: opts.AllowPaths,
		Recover:    opts.Recover,
		NoWorker:   opts.NoWorker,
		Network:    true,
		RemoveOld:  true,
		Log:        p.Log,
	}
}

// Open opens a server with all its addresses. file has its first token.
func Open(p *app.Process, opts Options) (g *gateway.Gateway, file string, err error) {
	wait := time.Duration(0)
	if opts.WaitsPort {
		wait = portWait
	}
	opts.State, opts.Token = p.Dirs.State, os.Getenv(gateway.TokenVariable)
	if opts.Shared, err = p.Runs.OpenShared(); err != nil {
		return nil, "", err
	}
	if g, err = openGateway(opts.Settings, wait); err != nil {
		return nil, "", err
	}
	token, file := g.FirstToken()
	p.Tools.SecretSet().Add(token)
	s, err := server.New(p, opts.ServiceOptions(p))
	if err != nil {
		_ = g.Close()
		return nil, "", err
	}
	g.UseService(s)
	g.Handle("/api/", api.NewHandler(s))
	g.AllowBody(api.StartPath, api.MaxStartBody)
	for _, path := range []string{"/v1/chat/completions", "/agui/", "/a2a/"} { // messages with pictures
		g.AllowBody(path, attach.MaxBody)
	}
	mountStudio(g)
	for _, p := range protocols {
		if !slices.Contains(opts.Disable, p.name) {
			p.mount(g, s)
		}
	}
	return g, file, nil
}

// portWait is how long a server waits for its port: a server that has just ended, or a child of it, may still hold it.
const portWait = 2 * time.Second

// openGateway opens the gateway of a server. It waits so long for a port that is in use.
func openGateway(settings gateway.Settings, wait time.Duration) (g *gateway.Gateway, err error) {
	for end := time.Now().Add(wait); ; time.Sleep(portWait / 20) {
		if g, err = gateway.Open(settings); !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return g, err
		}
	}
}

// A protocol is something that a server offers in addition to its health and its metrics.
type protocol struct {
	name  string
	mount func(g *gateway.Gateway, s *server.Service)
}

// protocols are what a server offers.
var protocols = []protocol{
	{"a2a", mountA2A},
	{"agui", func(g *gateway.Gateway, s *server.Service) { g.Handle("/agui/", agui.NewHandler(s)) }},
	{"mcp", func(g *gateway.Gateway, s *server.Service) { g.Handle("/mcp", mcp.NewHandler(s, nil)) }},
	{"openai", mountOpenAI},
	{"webhooks", func(g *gateway.Gateway, s *server.Service) {
		g.HandleUnread(webhook.Prefix, webhook.NewHandler(s, s.Process().Log))
	}},
}

func mountOpenAI(g *gateway.Gateway, s *server.Service) {
	g.Handle("/v1/", openai.NewHandler(s))
	g.WriteRefusals("/v1/", openai.WriteRefusal)
}

// mountA2A offers agents to other agents. Their cards need no token.
func mountA2A(g *gateway.Gateway, s *server.Service) {
	g.Handle("/a2a/", a2a.NewHandler(s))
	for _, pattern := range a2a.CardPatterns {
		g.HandleOpen(pattern, a2a.NewCards(s, g.Address()))
	}
}

// mountStudio offers the page for people. It needs no token: what it shows comes from the API.
func mountStudio(g *gateway.Gateway) {
	root := "/"
	if at, err := url.Parse(g.Address()); err == nil {
		root = at.EscapedPath() + "/"
	}
	page := studio.NewHandler(root)
	for _, pattern := range studio.Pages {
		g.HandleOpen(pattern, page)
	}
	g.HandleOpen(studio.Files, page)
}

// ProtocolNames returns the names of all protocols, which Options.Disable lists.
func ProtocolNames() (names []string) {
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}
