// Package a2a serves agents to other agents over A2A 1.0. A task is a run: its id is that of the run, and reading a
// task reads the run's journal. A question of the run is the state input-required, which the next message on the task
// answers. The context of tasks is a session of an agent.
package a2a

import (
	"net/http"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"raddle.dev/server"
)

// keepAlive is the time between comments in streams, which keep proxies from closing the connection.
const keepAlive = 15 * time.Second

// NewHandler returns the handler of /a2a/{agent}, in the protocol's JSON-RPC binding. It checks no token.
func NewHandler(s *server.Service) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /a2a/{agent}", func(w http.ResponseWriter, r *http.Request) {
		info, err := s.ReadAgent(r.PathValue("agent"))
		if err != nil {
			http.Error(w, server.HidePaths(err.Error(), s), http.StatusNotFound)
			return
		}
		tasks := &tasks{service: s, agent: info, contexts: openContexts(s)}
		a2asrv.NewJSONRPCHandler(tasks, a2asrv.WithTransportKeepAlive(keepAlive)).ServeHTTP(w, r)
	})
	return mux
}
