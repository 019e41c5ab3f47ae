package cli

import (
	"raddle.dev/server"
	"raddle.dev/server/gateway"
)

// A protocol is something that a server offers besides its health and its metrics.
type protocol struct {
	name  string
	mount func(g *gateway.Gateway, s *server.Service)
}

// protocols are what a server offers.
var protocols = []protocol{}

func protocolNames() (names []string) {
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}
