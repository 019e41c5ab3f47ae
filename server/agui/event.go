package agui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"raddle.dev/server"
)

// These are the types of events that the server sends.
const (
	runStarted         = "RUN_STARTED"
	runFinished        = "RUN_FINISHED"
	runError           = "RUN_ERROR"
	stepStarted        = "STEP_STARTED"
	stepFinished       = "STEP_FINISHED"
	textStart          = "TEXT_MESSAGE_START"
	textContent        = "TEXT_MESSAGE_CONTENT"
	textEnd            = "TEXT_MESSAGE_END"
	reasoningStart     = "REASONING_START"
	reasoningTextStart = "REASONING_MESSAGE_START"
	reasoningContent   = "REASONING_MESSAGE_CONTENT"
	reasoningTextEnd   = "REASONING_MESSAGE_END"
	reasoningEnd       = "REASONING_END"
	callStart          = "TOOL_CALL_START"
	callArgs           = "TOOL_CALL_ARGS"
	callEnd            = "TOOL_CALL_END"
	callResult         = "TOOL_CALL_RESULT"
	stateSnapshot      = "STATE_SNAPSHOT"
	stateDelta         = "STATE_DELTA"
	messagesSnapshot   = "MESSAGES_SNAPSHOT"
	custom             = "CUSTOM"
)

// protocolVersion is the version of AG-UI that the events follow.
const protocolVersion = "1.0"

// An event is one event on the wire. A type uses only its own fields.
type event struct {
	Type      string         `json:"type"`
	Timestamp int64          `json:"timestamp,omitempty"` // milliseconds since 1970
	Metadata  map[string]any `json:"metadata,omitempty"`

	ThreadID        string       `json:"threadId,omitempty"`
	RunID           string       `json:"runId,omitempty"`
	ParentRunID     string       `json:"parentRunId,omitempty"`
	ProtocolVersion string       `json:"protocolVersion,omitempty"`
	Result          any          `json:"result,omitempty"`
	Outcome         *runEnd      `json:"outcome,omitempty"`
	Usage           []tokenUsage `json:"usage,omitempty"`
	Message         string       `json:"message,omitempty"` // of an error
	Code            string       `json:"code,omitempty"`

	StepName        string  `json:"stepName,omitempty"`
	MessageID       string  `json:"messageId,omitempty"`
	Role            string  `json:"role,omitempty"`
	Name            string  `json:"name,omitempty"`
	Delta           any     `json:"delta,omitempty"` // a text or a list of operations
	ToolCallID      string  `json:"toolCallId,omitempty"`
	ToolCallName    string  `json:"toolCallName,omitempty"`
	ParentMessageID string  `json:"parentMessageId,omitempty"`
	Content         *string `json:"content,omitempty"` // of a result; it may be empty

	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Messages []message       `json:"messages,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
}

// A runEnd says how a run finished.
type runEnd struct {
	Type       string      `json:"type"` // success, interrupt or cancelled
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

// A tokenUsage counts the tokens of a run.
type tokenUsage struct {
	Input     int `json:"inputTokens"`
	Output    int `json:"outputTokens"`
	Total     int `json:"totalTokens"`
	Cached    int `json:"cachedInputTokens,omitempty"`
	Reasoning int `json:"reasoningTokens,omitempty"`
}

// A message is one message of the conversation as the client sees it.
type message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    string     `json:"content,omitempty"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []toolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
	Error      string     `json:"error,omitempty"`

	raw json.RawMessage // as the client sent it; nil: it is one of ours
}

// MarshalJSON returns a message of the client as it came.
func (m message) MarshalJSON() ([]byte, error) {
	if m.raw != nil {
		return m.raw, nil
	}
	type plain message
	if m.Role != "tool" {
		return json.Marshal(plain(m))
	}
	return json.Marshal(struct {
		plain
		Content string `json:"content"` // a tool's message always has one
	}{plain(m), m.Content})
}

// A toolCall is a call in a message.
type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

// A functionCall is the name and the arguments of a call.
type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

const (
	keepAlive  = 15 * time.Second // between comments, which keep proxies from closing the connection
	writeLimit = 30 * time.Second // for one event
)

// A stream writes server-sent events. It is safe for concurrent use.
type stream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	redact  func([]byte) []byte
	began   bool  // something was written
	err     error // of the first write that failed; later events are dropped
	stop    chan struct{}
	stopped sync.WaitGroup
}

// newStream begins the answer to a request. redact takes secrets out of events. The caller must call close.
func newStream(w http.ResponseWriter, redact func([]byte) []byte) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{w: w, control: http.NewResponseController(w), redact: redact, stop: make(chan struct{})}
	s.stopped.Go(s.keepAlive)
	return s
}

func (s *stream) keepAlive() {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.write([]byte(": keep-alive\n\n"))
		}
	}
}

// close ends the comments. The answer ends when the handler returns.
func (s *stream) close() {
	close(s.stop)
	s.stopped.Wait()
}

// refuse answers that the caller has no room for a run now, unless something else was answered, and reports whether it
// did.
func (s *stream) refuse(used *server.QuotaError) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began {
		return false
	}
	s.began = true
	s.w.Header().Set("Retry-After", used.FormatSeconds())
	writeProblem(s.w, http.StatusTooManyRequests, strings.ReplaceAll(used.Code, "-", "_"), used.Error())
	return true
}

// send writes an event.
func (s *stream) send(e *event) {
	var b bytes.Buffer
	b.WriteString("data: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil { // a value that a node emitted cannot be JSON
		return
	}
	b.WriteByte('\n')
	s.write(s.redact(b.Bytes()))
}

func (s *stream) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.began = true
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // a test's recorder has none
	if _, s.err = s.w.Write(b); s.err == nil {
		_ = s.control.Flush()
	}
}
