package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// An entry is one reply of a transcript.
type entry struct {
	line, col int
	match     []string
	turn      int    // 0: any
	digest    string // "": any
	after     []string

	text      string
	reasoning string
	calls     []llm.ToolCall // an empty ID is replaced
	err       error          // instead of a reply
	delay     time.Duration
	repeat    bool
	usage     llm.Usage
	stop      llm.StopReason // "": "tools" if there are calls, else "end"
	fills     bool           // text or arguments contain placeholders for values of outcomes
}

// isUnconditional reports whether the entry names no condition.
func (e *entry) isUnconditional() bool {
	return len(e.match) == 0 && e.turn == 0 && e.digest == "" && len(e.after) == 0
}

// matchesRequest reports whether all conditions of the entry are true.
func (e *entry) matchesRequest(r llm.Request, text string) bool {
	if e.turn != 0 && e.turn != turnNumber(r) {
		return false
	}
	if !containsAll(text, e.match) || len(e.after) > 0 && !containsAll(lastOutcomeText(r), e.after) {
		return false
	}
	return e.digest == "" || e.digest == requestDigest(r)
}

// containsAll reports whether a text contains each of the parts.
func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// describe returns the position and the conditions of the entry.
func (e *entry) describe() string {
	var conditions []string
	for _, m := range e.match {
		conditions = append(conditions, fmt.Sprintf("match %q", truncateLine(m, 40)))
	}
	if e.turn != 0 {
		conditions = append(conditions, fmt.Sprintf("turn %d", e.turn))
	}
	if e.digest != "" {
		conditions = append(conditions, "request "+e.digest)
	}
	for _, a := range e.after {
		conditions = append(conditions, fmt.Sprintf("after %q", truncateLine(a, 40)))
	}
	if len(conditions) == 0 {
		conditions = []string{"in order"}
	}
	return fmt.Sprintf("line %d (%s)", e.line, strings.Join(conditions, ", "))
}

// buildMessage returns the reply's message. Calls without an ID get one that differs
// between the turns of a conversation and is the same in every process.
func (e *entry) buildMessage(r llm.Request) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	if e.reasoning != "" {
		m.Parts = append(m.Parts, llm.Reasoning{Text: e.reasoning, Origin: "script"})
	}
	if e.text != "" {
		m.Parts = append(m.Parts, llm.Text{Text: e.text})
	}
	for i, c := range e.calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", len(r.Messages), i)
		}
		m.Parts = append(m.Parts, c)
	}
	return m
}

func (e *entry) stopReason() llm.StopReason {
	switch {
	case e.stop != "":
		return e.stop
	case len(e.calls) > 0:
		return llm.StopTools
	}
	return llm.StopEnd
}

// matchText returns the text in which match searches.
func matchText(r llm.Request) string { return r.System + "\n" + userText(r) }

// userText joins the text of the user's messages.
func userText(r llm.Request) string {
	var texts []string
	for _, m := range r.Messages {
		if m.Role == llm.RoleUser {
			texts = append(texts, m.Text())
		}
	}
	return strings.Join(texts, "\n")
}

// turnNumber returns the number of the request in its conversation, starting with 1.
func turnNumber(r llm.Request) int {
	n := 1
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// requestDigest identifies a request by the content of its conversation. It leaves out
// what a transcript does not store (reasoning, signatures) and what does not
// determine the reply (tools, sampling).
func requestDigest(r llm.Request) string {
	h := sha256.New()
	hashFields(h, r.System)
	for _, m := range r.Messages {
		hashFields(h, "message "+string(m.Role))
		digestParts(h, m.Parts)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func digestParts(h hash.Hash, parts []llm.Part) {
	if text := (llm.Message{Parts: parts}).Text(); text != "" {
		hashFields(h, "text", text)
	}
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Image:
			hashFields(h, "image", p.MIME, string(p.Data), p.URL)
		case llm.File:
			hashFields(h, "file", p.Name, p.MIME, string(p.Data), p.URL)
		case llm.ToolCall:
			hashFields(h, "call", p.ID, p.Name, compactJSON(p.Args))
		case llm.ToolResult:
			hashFields(h, "result", p.CallID, fmt.Sprint(p.Error))
			digestParts(h, p.Content)
			hashFields(h, "end of result")
		}
	}
}

// hashFields writes strings so that two different lists are never written in the
// same way.
func hashFields(h hash.Hash, list ...string) {
	for _, s := range list {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
}

func compactJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// truncateLine returns the beginning of s in one line of at most n characters.
func truncateLine(s string, n int) string {
	return wording.CutText(strings.Join(strings.Fields(s), " "), n, "...")
}
