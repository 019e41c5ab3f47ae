// Package agui serves agents over AG-UI 1.0, the protocol between agents and user interfaces: POST /agui/{agent} runs
// an agent and answers with server-sent events. A thread of the client is a session of an agent; for a graph it is a
// row of runs. A question of a run is an interrupt, which the next input on the thread answers.
package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/server"
)

// maxBody is the size of a request, in bytes.
const maxBody = attach.MaxBody

// handler answers requests.
type handler struct {
	service *server.Service
	threads threadNotes
}

// NewHandler returns the handler of POST /agui/{agent}. It checks no token.
func NewHandler(s *server.Service) http.Handler {
	h := &handler{service: s, threads: threadNotes{entries.NewTable[threadNote](s.SharedStore(), "agui")}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agui/{agent}", h.serveRun)
	return mux
}

// serveRun runs an agent, or continues a run that waits. What fails before there is a run that the client can follow is
// an HTTP error; everything else is an event.
func (h *handler) serveRun(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		writeProblem(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the input is larger than %d bytes", maxBody))
		return
	}
	if err != nil {
		return // the client has left
	}
	in, err := decodeInput(body)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "invalid_input", err.Error())
		return
	}
	info, err := h.service.ReadAgent(r.PathValue("agent"))
	if err != nil {
		writeProblem(w, http.StatusNotFound, "unknown_agent", server.HidePaths(err.Error(), h.service))
		return
	}
	out := newStream(w, h.service.Process().Tools.SecretSet().Bytes)
	defer out.close()
	c := &call{handler: h, in: in, agent: info, out: out, thread: hashThread(info.Name, in.ThreadID)}
	c.serve(r.Context())
}

// writeProblem answers with an error (RFC 9457).
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	b, err := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": detail})
	if err != nil {
		b = nil
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
