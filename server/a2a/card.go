package a2a

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

// NewCards returns the handler of agent cards: /.well-known/{agent}/agent-card.json and, for clients that know the
// address of an agent, /a2a/{agent}/.well-known/agent-card.json. A card needs no token. address is that of the server.
func NewCards(s *server.Service, address string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(noCard, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this server has several agents: the card of each is at /a2a/AGENT/.well-known/agent-card.json", http.StatusNotFound)
	})
	for _, pattern := range CardPatterns[1:] {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			info, err := s.ReadAgent(r.PathValue("agent"))
			if err != nil { // why it cannot be loaded is for callers with a token
				http.Error(w, "there is no card of an agent with this name", http.StatusNotFound)
				return
			}
			b, err := json.Marshal(makeCard(info, baseURL(address, r)))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = w.Write(b)
		})
	}
	return mux
}

// noCard is where the card of a server's only agent would be.
const noCard = "GET /.well-known/agent-card.json"

// CardPatterns are the places of agent cards.
var CardPatterns = []string{noCard, "GET /.well-known/{agent}/agent-card.json", "GET /a2a/{agent}/.well-known/agent-card.json"}

// baseURL returns the address for a card: that of the server, or of the request if the server listens at all addresses.
func baseURL(address string, r *http.Request) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = r.Host
	}
	return strings.TrimSuffix(u.String(), "/")
}

// makeCard describes an agent.
func makeCard(info *server.AgentInfo, base string) *a2a.AgentCard {
	text := []string{"text/plain"}
	description := cmp.Or(info.Description, "The agent "+info.Name+".")
	return &a2a.AgentCard{
		Name: info.Name, Description: description, Version: app.Version(),
		SupportedInterfaces: []*a2a.AgentInterface{{URL: base + "/a2a/" + info.Name, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2a.Version}},
		Capabilities:        a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:   append(text, "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"),
		DefaultOutputModes:  text,
		Skills:              []a2a.AgentSkill{{ID: info.Name, Name: info.Name, Description: description, Tags: []string{info.Kind}, Examples: info.Starters}},
		SecuritySchemes:     a2a.NamedSecuritySchemes{"token": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "a token of the raddle server"}},
		SecurityRequirements: a2a.SecurityRequirementsOptions{
			{"token": a2a.SecuritySchemeScopes{}},
		},
	}
}
