package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/llm"
)

// An Assembly combines fragments into a reply and emits each fragment as a
// delta. Fragments belong to slots, which the provider numbers; the parts of
// the reply are in the order in which their slots first appeared. No slot is
// closed before the stream ends, so fragments of different slots may
// interleave.
type Assembly struct {
	client *Client
	origin string
	emit   func(llm.Delta) error
	blocks []*block
	slots  map[int]*block
	calls  int
	size   int // of all fragments so far, in bytes
}

// blockSize is added to the size of a part's text, so that a reply with very
// many empty parts has a limit too.
const blockSize = 128

type blockKind int

const (
	textBlock blockKind = iota
	reasoningBlock
	callBlock
	partBlock
)

type block struct {
	kind       blockKind
	text, seal strings.Builder
	id, name   string
	index      int      // of a call, among the calls
	part       llm.Part // of a partBlock
	extra      json.RawMessage
	sources    []llm.Source
}

// A PartKind is the kind of the part that a provider sends next.
type PartKind int

// These are the kinds of parts. The zero value is none.
const (
	TextPart PartKind = iota + 1
	ThoughtPart
	OtherPart // complete when it arrives, such as a call
)

// Slots numbers the parts of a reply for an [Assembly] if its provider does not: what follows a part of the same kind
// belongs to it, unless that part was complete.
type Slots struct {
	slot int
	last PartKind // the kind of part in slot
}

// Next returns the slot for a part.
func (s *Slots) Next(kind PartKind) int {
	if kind != s.last || kind == OtherPart {
		s.slot++
		s.last = kind
	}
	return s.slot
}

// NewAssembly returns an empty assembly that passes its deltas to emit. origin
// becomes the Origin of signed parts.
func (c *Client) NewAssembly(origin string, emit func(llm.Delta) error) *Assembly {
	return &Assembly{client: c, origin: origin, emit: emit, slots: map[int]*block{}}
}

// addSize adds n to the size of the reply and fails if the limit is exceeded.
func (a *Assembly) addSize(n int) error {
	if a.size += n; a.client.largest > 0 && a.size > a.client.largest {
		return a.client.limitError(fmt.Sprintf("the reply is larger than %s", formatBytes(a.client.largest)), "max_reply")
	}
	return nil
}

func formatBytes(n int) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// openBlock makes b the block of slot n.
func (a *Assembly) openBlock(n int, b *block) (*block, error) {
	a.slots[n] = b
	a.blocks = append(a.blocks, b)
	return b, a.addSize(blockSize)
}

// writeText appends text to the block of slot n. If that is not of kind k, it opens
// a new one.
func (a *Assembly) writeText(n int, k blockKind, text string) (err error) {
	b := a.slots[n]
	if b == nil || b.kind != k {
		if b, err = a.openBlock(n, &block{kind: k}); err != nil {
			return err
		}
	}
	b.text.WriteString(text)
	return a.addSize(len(text))
}

// AddText appends to the text of slot n.
func (a *Assembly) AddText(n int, text string) error {
	if text == "" {
		return nil
	}
	if err := a.writeText(n, textBlock, text); err != nil {
		return err
	}
	return a.emit(llm.Delta{Text: text})
}

// AddReasoning appends to the reasoning of slot n.
func (a *Assembly) AddReasoning(n int, text string) error {
	if text == "" {
		return nil
	}
	if err := a.writeText(n, reasoningBlock, text); err != nil {
		return err
	}
	return a.emit(llm.Delta{Reasoning: text})
}

// OpenReasoning makes slot n that of reasoning, which may stay without a text.
func (a *Assembly) OpenReasoning(n int) error {
	return a.writeText(n, reasoningBlock, "")
}

// Seal appends to the signature of the reasoning or the call of slot n. If
// there is neither, it creates a reasoning part without text.
func (a *Assembly) Seal(n int, seal string) (err error) {
	if seal == "" {
		return nil
	}
	b := a.slots[n]
	if b == nil || b.kind == textBlock {
		if b, err = a.openBlock(n, &block{kind: reasoningBlock}); err != nil {
			return err
		}
	}
	b.seal.WriteString(seal)
	return a.addSize(len(seal))
}

// SetExtra stores what only the provider understands about the part of slot n, if there is such a part.
func (a *Assembly) SetExtra(n int, extra json.RawMessage) error {
	b := a.slots[n]
	if b == nil || len(extra) == 0 {
		return nil
	}
	b.extra = extra
	return a.addSize(len(extra))
}

// ReadExtra returns what SetExtra has stored for slot n, nil if nothing.
func (a *Assembly) ReadExtra(n int) json.RawMessage {
	if b := a.slots[n]; b != nil {
		return b.extra
	}
	return nil
}

// ReadText returns what has been added to the text, the reasoning or the arguments of slot n.
func (a *Assembly) ReadText(n int) string {
	if b := a.slots[n]; b != nil {
		return b.text.String()
	}
	return ""
}

// AddCall appends a fragment to the tool call of slot n. A fragment with a name
// and a different id than the slot opens a new call there: servers without
// indexes send every call under the same one.
func (a *Assembly) AddCall(n int, id, name, args string) (err error) {
	b := a.slots[n]
	opens := b == nil || b.kind != callBlock || (id != "" && name != "" && b.id != "" && id != b.id)
	if opens {
		if b, err = a.openBlock(n, &block{kind: callBlock, index: a.calls}); err != nil {
			return err
		}
		a.calls++
	}
	d := llm.ToolCallDelta{Index: b.index, Args: args}
	if b.id == "" {
		b.id = id
		d.ID = id
	}
	if b.name == "" {
		b.name = name
		d.Name = name
	}
	b.text.WriteString(args)
	if d == (llm.ToolCallDelta{Index: b.index}) && !opens {
		return nil
	}
	if err := a.addSize(len(d.ID) + len(d.Name) + len(args)); err != nil {
		return err
	}
	return a.emit(llm.Delta{ToolCall: &d})
}

// AddPart adds a complete part of size bytes.
func (a *Assembly) AddPart(p llm.Part, size int) error {
	a.blocks = append(a.blocks, &block{kind: partBlock, part: p})
	return a.addSize(blockSize + size)
}

// SetPart makes a complete part of size bytes the one of slot n. It takes the place that the slot got when it first
// appeared.
func (a *Assembly) SetPart(n int, p llm.Part, size int) (err error) {
	b := a.slots[n]
	if b == nil {
		if b, err = a.openBlock(n, &block{kind: partBlock}); err != nil {
			return err
		}
	}
	b.part = p
	return a.addSize(size)
}

// AddSource adds a page to those of the text of slot n, if there is such a text and it does not have the page.
func (a *Assembly) AddSource(n int, s llm.Source) error {
	b := a.slots[n]
	if b == nil || b.kind != textBlock || s.URL == "" || slices.ContainsFunc(b.sources, func(o llm.Source) bool { return o.URL == s.URL }) {
		return nil
	}
	b.sources = append(b.sources, s)
	return a.addSize(len(s.URL) + len(s.Title))
}

// unnamedCall is the name of a call without a name. No tool has this name, so
// the model is informed that the tool is unknown, and can call again.
const unnamedCall = "unnamed"

// Message returns the assembled message. A call without an id, or with the id
// of another call, gets an id made from turn, which must differ between the
// replies of a conversation.
func (a *Assembly) Message(turn int, stop llm.StopReason) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	ids := map[string]bool{}
	for _, b := range a.blocks {
		switch b.kind {
		case textBlock:
			part := llm.Text{Text: b.text.String(), Sources: b.sources, Extra: b.extra}
			if len(part.Extra) > 0 {
				part.Origin = a.origin
			}
			m.Parts = append(m.Parts, part)
		case reasoningBlock:
			m.Parts = append(m.Parts, llm.Reasoning{
				Text:      b.text.String(),
				Signature: b.seal.String(),
				Origin:    a.origin,
				Extra:     b.extra,
			})
		case partBlock:
			m.Parts = append(m.Parts, b.part)
		case callBlock:
			b.name = cmp.Or(b.name, unnamedCall)
			cut := stop == llm.StopLength && b.index == a.calls-1
			call := llm.ToolCall{
				ID:        b.id,
				Name:      b.name,
				Args:      parseArgs(b.text.String(), cut),
				Signature: b.seal.String(),
				Extra:     b.extra,
			}
			if call.ID == "" || ids[call.ID] {
				call.ID = fmt.Sprintf("call_%d_%d", turn, b.index)
			}
			ids[call.ID] = true
			if call.Signature != "" || len(call.Extra) > 0 {
				call.Origin = a.origin
			}
			m.Parts = append(m.Parts, call)
		}
	}
	return m
}
