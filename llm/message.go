package llm

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A Role says who speaks in a message.
type Role string

// The roles of a conversation.
const (
	RoleUser      Role = "user"      // the person, or the program in a person's place
	RoleAssistant Role = "assistant" // the model
	RoleTool      Role = "tool"      // outcomes of tool calls; holds ToolResult parts only
)

// A Message is one turn of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// User returns a message of RoleUser that holds text.
func User(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{Text{Text: text}}}
}

// Text returns the text parts of the message in order, with nothing between them.
func (m Message) Text() string { return joinText(m.Parts) }

// ToolCalls returns the tool calls of the message in order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// UnmarshalJSON decodes a message whose parts carry a "type" tag. A part of an
// unknown type is an error.
func (m *Message) UnmarshalJSON(data []byte) error {
	var raw struct {
		Role  Role              `json:"role"`
		Parts []json.RawMessage `json:"parts"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	parts, err := decodeParts(raw.Parts)
	if err != nil {
		return err
	}
	*m = Message{Role: raw.Role, Parts: parts}
	return nil
}

// A Part is one piece of a message: a Text, Image, File, Reasoning, ToolCall or
// ToolResult. The set is closed.
type Part interface {
	// tag is the part's "type" in JSON.
	tag() string
}

// Text is plain text.
type Text struct {
	Text string `json:"text"`
}

// An Image is a picture, given as its bytes or as an address that the provider
// can fetch.
type Image struct {
	MIME string `json:"mime,omitempty"` // such as "image/png"; required with Data
	Data []byte `json:"data,omitempty"` // base64 in JSON
	URL  string `json:"url,omitempty"`  // used when Data is empty
}

// A File is a document, such as a PDF, given as its bytes or as an address that
// the provider can fetch.
type File struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"` // such as "application/pdf"; required with Data
	Data []byte `json:"data,omitempty"` // base64 in JSON
	URL  string `json:"url,omitempty"`  // used when Data is empty
}

// Reasoning is what the model thought before it answered, as far as the
// provider shows it.
type Reasoning struct {
	Text string `json:"text,omitempty"`
	// Signature is the provider's seal on the thought. It is opaque and goes
	// back unchanged.
	Signature string `json:"signature,omitempty"`
	// Redacted says that the provider hides the thought: Text is empty, and
	// Signature is the thought itself, sealed.
	Redacted bool `json:"redacted,omitempty"`
	// Origin names the wire that the part came from. Another wire leaves the
	// part out of its requests, since it could not verify the seal.
	Origin string `json:"origin,omitempty"`
}

// A ToolCall is the model's wish to have a tool called.
type ToolCall struct {
	ID   string `json:"id"`   // never empty in a reply; unique within a conversation
	Name string `json:"name"` // of the tool
	// Args is an object, as the model wrote it. Where it wrote something else,
	// it is that, or a string with the text if that is no JSON: tell the model.
	Args json.RawMessage `json:"args"`
	// Signature and Origin are as in Reasoning, for providers that seal calls.
	Signature string `json:"signature,omitempty"`
	Origin    string `json:"origin,omitempty"`
}

// A ToolResult is the outcome of a tool call.
type ToolResult struct {
	CallID  string `json:"call_id"` // the ToolCall's ID
	Name    string `json:"name"`    // the ToolCall's Name; some providers need it
	Content []Part `json:"content"` // Text, Image and File parts
	Error   bool   `json:"error,omitempty"`
}

func (Text) tag() string       { return "text" }
func (Image) tag() string      { return "image" }
func (File) tag() string       { return "file" }
func (Reasoning) tag() string  { return "reasoning" }
func (ToolCall) tag() string   { return "tool_call" }
func (ToolResult) tag() string { return "tool_result" }

// MarshalJSON encodes the part with its type tag.
func (p Text) MarshalJSON() ([]byte, error) {
	type plain Text
	return tagged(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p Image) MarshalJSON() ([]byte, error) {
	type plain Image
	return tagged(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p File) MarshalJSON() ([]byte, error) {
	type plain File
	return tagged(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p Reasoning) MarshalJSON() ([]byte, error) {
	type plain Reasoning
	return tagged(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p ToolCall) MarshalJSON() ([]byte, error) {
	type plain ToolCall
	return tagged(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p ToolResult) MarshalJSON() ([]byte, error) {
	type plain ToolResult
	return tagged(p, plain(p))
}

// tagged encodes v, the plain twin of p, with the type tag of p in front.
func tagged(p Part, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	head := `{"type":"` + p.tag() + `"`
	if len(data) > len(`{}`) {
		head += ","
	}
	return append([]byte(head), data[1:]...), nil
}

// UnmarshalJSON decodes a result whose content parts carry a "type" tag.
func (p *ToolResult) UnmarshalJSON(data []byte) error {
	var raw struct {
		CallID  string            `json:"call_id"`
		Name    string            `json:"name"`
		Content []json.RawMessage `json:"content"`
		Error   bool              `json:"error"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	content, err := decodeParts(raw.Content)
	if err != nil {
		return err
	}
	*p = ToolResult{CallID: raw.CallID, Name: raw.Name, Content: content, Error: raw.Error}
	return nil
}

func decodeParts(raw []json.RawMessage) ([]Part, error) {
	if raw == nil {
		return nil, nil
	}
	parts := make([]Part, len(raw))
	for i, data := range raw {
		p, err := decodePart(data)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		parts[i] = p
	}
	return parts, nil
}

func decodePart(data []byte) (Part, error) {
	var t struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	switch t.Type {
	case "text":
		return decodeAs[Text](data)
	case "image":
		return decodeAs[Image](data)
	case "file":
		return decodeAs[File](data)
	case "reasoning":
		return decodeAs[Reasoning](data)
	case "tool_call":
		return decodeAs[ToolCall](data)
	case "tool_result":
		return decodeAs[ToolResult](data)
	case "":
		return nil, errors.New(`no "type"`)
	}
	return nil, fmt.Errorf("unknown type %q", t.Type)
}

func decodeAs[P Part](data []byte) (Part, error) {
	var p P
	err := json.Unmarshal(data, &p)
	return p, err
}
