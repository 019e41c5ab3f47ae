package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// keepAlive is the time after which a stream without text sends a comment, so that proxies do not close it.
const keepAlive = 15 * time.Second

// A chunk is one event of a stream.
type chunk struct {
	head
	Choices []chunkChoice `json:"choices"`
	Usage   *usage        `json:"usage,omitempty"`
	Raddle  *runInfo      `json:"raddle,omitempty"`
}

type chunkChoice struct {
	Index  int     `json:"index"`
	Delta  delta   `json:"delta"`
	Finish *string `json:"finish_reason"`
}

// stream answers with the text while the agent writes it. If the client closes the stream, the turn of the agent ends:
// that is how the protocol cancels.
func (c *completion) stream(w http.ResponseWriter, r *http.Request) {
	out := newEventWriter(w)
	defer out.stop()
	write := func(d delta, finish *string, info *runInfo) {
		out.writeEvent(chunk{head: c.head("chat.completion.chunk"), Choices: []chunkChoice{{Delta: d, Finish: finish}}, Raddle: info})
	}
	write(delta{Role: "assistant"}, nil, nil)
	end, reply, err := c.follow(r.Context(), func(d delta) { write(d, nil, nil) })
	switch {
	case r.Context().Err() != nil:
		c.interruptRun(context.WithoutCancel(r.Context()))
		return
	case err != nil:
		out.writeEvent(errorBody{c.handler.explainError(err)})
		return
	}
	write(delta{}, &end.finish, &end.run)
	if o := c.request.StreamOptions; o != nil && o.IncludeUsage {
		out.writeEvent(chunk{head: c.head("chat.completion.chunk"), Choices: []chunkChoice{}, Usage: newUsage(reply.usage)})
	}
	out.write([]byte("data: [DONE]\n\n"))
}

// interruptRun ends the turn of the agent, or stops the graph. When the server ends, its runs continue later.
func (c *completion) interruptRun(ctx context.Context) {
	if !c.handler.service.IsDraining() {
		_ = c.handler.service.InterruptRun(ctx, c.run) // it fails if the run does not work any more
	}
}

// An eventWriter writes server-sent events, and comments in silent times.
type eventWriter struct {
	mu      sync.Mutex // guards w
	w       http.ResponseWriter
	control *http.ResponseController
	silence *time.Timer
}

// newEventWriter begins a stream. The caller must call stop.
func newEventWriter(w http.ResponseWriter) *eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	e := &eventWriter{w: w, control: http.NewResponseController(w)}
	e.silence = time.AfterFunc(keepAlive, func() { e.write([]byte(": the run works\n\n")) })
	return e
}

// writeEvent writes a value as an event.
func (e *eventWriter) writeEvent(v any) {
	var b bytes.Buffer
	b.WriteString("data: ")
	if err := json.NewEncoder(&b).Encode(v); err != nil { // none of the values can fail
		return
	}
	b.WriteString("\n")
	e.write(b.Bytes())
}

// write writes and flushes. If the connection is lost, the context of the request ends.
func (e *eventWriter) write(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.w == nil {
		return
	}
	_, _ = e.w.Write(data)
	_ = e.control.Flush()
	e.silence.Reset(keepAlive)
}

// stop ends the stream: nothing is written any more.
func (e *eventWriter) stop() {
	e.silence.Stop()
	e.mu.Lock()
	e.w = nil
	e.mu.Unlock()
}
