package cli

import (
	"net/url"

	"raddle.dev/server"
	"raddle.dev/server/a2a"
	"raddle.dev/server/agui"
	"raddle.dev/server/gateway"
	"raddle.dev/server/mcp"
	"raddle.dev/server/openai"
	"raddle.dev/server/studio"
)

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

func protocolNames() (names []string) {
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}
