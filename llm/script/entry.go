package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"strings"
	"time"

	"raddle.dev/internal/wording"
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

// ordered reports whether the entry names no condition.
func (e *entry) ordered() bool {
	return len(e.match) == 0 && e.turn == 0 && e.digest == "" && len(e.after) == 0
}

// answers reports whether all conditions of the entry are true.
func (e *entry) answers(r llm.Request, text string) bool {
	if e.turn != 0 && e.turn != turn(r) {
		return false
	}
	for _, m := range e.match {
		if !strings.Contains(text, m) {
			return false
		}
	}
	if len(e.after) > 0 {
		last := ending(r)
		for _, a := range e.after {
			if !strings.Contains(last, a) {
				return false
			}
		}
	}
	return e.digest == "" || e.digest == digest(r)
}

// describe returns the position and the conditions of the entry.
func (e *entry) describe() string {
	var conditions []string
	for _, m := range e.match {
		conditions = append(conditions, fmt.Sprintf("match %q", shorten(m, 40)))
	}
	if e.turn != 0 {
		conditions = append(conditions, fmt.Sprintf("turn %d", e.turn))
	}
	if e.digest != "" {
		conditions = append(conditions, "request "+e.digest)
	}
	for _, a := range e.after {
		conditions = append(conditions, fmt.Sprintf("after %q", shorten(a, 40)))
	}
	if len(conditions) == 0 {
		conditions = []string{"in order"}
	}
	return fmt.Sprintf("line %d (%s)", e.line, strings.Join(conditions, ", "))
}

// message returns the reply's message. Calls without an ID get one that differs
// between the turns of a conversation and is the same in every process.
func (e *entry) message(r llm.Request) llm.Message {
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

func (e *entry) reason() llm.StopReason {
	switch {
	case e.stop != "":
		return e.stop
	case len(e.calls) > 0:
		return llm.StopTools
	}
	return llm.StopEnd
}

// subject returns the text in which match searches.
func subject(r llm.Request) string { return r.System + "\n" + prompt(r) }

// prompt joins the text of the user's messages.
func prompt(r llm.Request) string {
	var texts []string
	for _, m := range r.Messages {
		if m.Role == llm.RoleUser {
			texts = append(texts, m.Text())
		}
	}
	return strings.Join(texts, "\n")
}

// turn returns the number of the request in its conversation, starting with 1.
func turn(r llm.Request) int {
	n := 1
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// digest identifies a request by the content of its conversation. It leaves out
// what a transcript does not store (reasoning, signatures) and what does not
// determine the reply (tools, sampling).
func digest(r llm.Request) string {
	h := sha256.New()
	field(h, r.System)
	for _, m := range r.Messages {
		field(h, "message "+string(m.Role))
		digestParts(h, m.Parts)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func digestParts(h hash.Hash, parts []llm.Part) {
	if text := (llm.Message{Parts: parts}).Text(); text != "" {
		field(h, "text", text)
	}
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Image:
			field(h, "image", p.MIME, string(p.Data), p.URL)
		case llm.File:
			field(h, "file", p.Name, p.MIME, string(p.Data), p.URL)
		case llm.ToolCall:
			field(h, "call", p.ID, p.Name, compact(p.Args))
		case llm.ToolResult:
			field(h, "result", p.CallID, fmt.Sprint(p.Error))
			digestParts(h, p.Content)
			field(h, "end of result")
		}
	}
}

// field writes strings so that two different lists are never written in the
// same way.
func field(h hash.Hash, list ...string) {
	for _, s := range list {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// shorten returns the beginning of s in one line of at most n characters.
func shorten(s string, n int) string {
	return wording.CutText(strings.Join(strings.Fields(s), " "), n, "...")
}
