package llm

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A Role is the author of a message.
type Role string

// These are the roles of a conversation.
const (
	RoleUser      Role = "user"      // the person, or a program that acts for a person
	RoleAssistant Role = "assistant" // the model
	RoleTool      Role = "tool"      // outcomes of tool calls; contains only ToolResult parts
)

// A Message is one turn of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// User returns a message of RoleUser that contains text.
func User(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{Text{Text: text}}}
}

// Text returns the text parts of the message in order, without separators.
func (m Message) Text() string { return joinText(m.Parts) }

// Media returns the images and files among parts, in order.
func Media(parts []Part) (media []Part) {
	for _, p := range parts {
		switch p.(type) {
		case Image, File:
			media = append(media, p)
		}
	}
	return media
}

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

// A Part is one piece of a message: a Text, Image, File, Reasoning, ToolCall,
// ToolResult or Item. The set is closed.
//
// Some parts have an Origin and Extra. Origin names the wire and, if it is not
// the provider's own service, the host that the part came from. Extra is a JSON
// object with those members of the provider's object that raddle does not
// understand, as they came. Both stay in a conversation, and only a model of the
// same origin sends Extra back. Both are empty in parts that a program makes.
type Part interface {
	// typeTag is the part's "type" in JSON.
	typeTag() string
}

// Text is plain text.
type Text struct {
	Text    string          `json:"text"`
	Sources []Source        `json:"sources,omitempty"` // that the provider names for the text, in its order
	Extra   json.RawMessage `json:"extra,omitempty"`   // see Part
	Origin  string          `json:"origin,omitempty"`  // of Extra
}

// A Source is a page on which a text is based, as the provider of the model says.
type Source struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
}

// An Image is a picture, given as bytes or as an address from which the
// provider can fetch it.
type Image struct {
	MIME string `json:"mime,omitempty"` // such as "image/png"; required with Data
	Data []byte `json:"data,omitempty"` // base64 in JSON
	URL  string `json:"url,omitempty"`  // used when Data is empty
}

// A File is a document, such as a PDF, given as bytes or as an address from
// which the provider can fetch it.
type File struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"` // such as "application/pdf"; required with Data
	Data []byte `json:"data,omitempty"` // base64 in JSON
	URL  string `json:"url,omitempty"`  // used when Data is empty
}

// Reasoning is the model's reasoning before its answer, as far as the provider
// shows it.
type Reasoning struct {
	Text string `json:"text,omitempty"`
	// Signature is the provider's signature of the reasoning. It is opaque and
	// is sent back unchanged.
	Signature string `json:"signature,omitempty"`
	// Redacted says that the provider hides the reasoning: Text is empty, and
	// Signature contains the encrypted reasoning.
	Redacted bool `json:"redacted,omitempty"`
	// Origin is where the part came from. Models of another origin leave the part
	// out of their requests, because their provider could not verify the signature.
	// An origin without a host, of an older conversation, is that of every host.
	Origin string `json:"origin,omitempty"`
	// Extra is as in Part.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// A ToolCall is a request of the model to call a tool.
type ToolCall struct {
	ID   string `json:"id"`   // never empty in a reply; unique within a conversation
	Name string `json:"name"` // of the tool
	// Args is a JSON object, as the model wrote it. If the model wrote
	// something else, Args is that value, or a JSON string with the text if it
	// is not valid JSON: report this to the model. In the last call of a reply
	// that a token limit cut off (Reply.Stop is StopLength), such a string is the
	// part of the arguments that arrived, and may be empty.
	Args json.RawMessage `json:"args"`
	// Signature and Origin are as in Reasoning, for providers that sign calls.
	Signature string `json:"signature,omitempty"`
	Origin    string `json:"origin,omitempty"`
	// Extra is as in Part.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// A ToolResult is the outcome of a tool call.
type ToolResult struct {
	CallID  string `json:"call_id"` // the ToolCall's ID
	Name    string `json:"name"`    // the ToolCall's Name; some providers need it
	Content []Part `json:"content"` // Text, Image and File parts
	Error   bool   `json:"error,omitempty"`
}

// An Item is a part of a reply that only its provider understands, such as a
// search that the provider itself has made. Models of another origin send Text
// in its place, or nothing if Text is empty.
type Item struct {
	Kind   string          `json:"kind"`           // the provider's name for it, such as "web_search_call"
	Text   string          `json:"text,omitempty"` // what a person should know about it, such as the words of a search
	Raw    json.RawMessage `json:"raw"`            // the provider's object, as it came
	Origin string          `json:"origin"`
}

func (Text) typeTag() string       { return "text" }
func (Image) typeTag() string      { return "image" }
func (File) typeTag() string       { return "file" }
func (Reasoning) typeTag() string  { return "reasoning" }
func (ToolCall) typeTag() string   { return "tool_call" }
func (ToolResult) typeTag() string { return "tool_result" }
func (Item) typeTag() string       { return "item" }

// MarshalJSON encodes the part with its type tag.
func (p Text) MarshalJSON() ([]byte, error) {
	type plain Text
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p Image) MarshalJSON() ([]byte, error) {
	type plain Image
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p File) MarshalJSON() ([]byte, error) {
	type plain File
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p Reasoning) MarshalJSON() ([]byte, error) {
	type plain Reasoning
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p ToolCall) MarshalJSON() ([]byte, error) {
	type plain ToolCall
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p ToolResult) MarshalJSON() ([]byte, error) {
	type plain ToolResult
	return marshalTyped(p, plain(p))
}

// MarshalJSON encodes the part with its type tag.
func (p Item) MarshalJSON() ([]byte, error) {
	type plain Item
	return marshalTyped(p, plain(p))
}

// marshalTyped encodes v, which has the fields of p without its methods, with the
// type tag of p first.
func marshalTyped(p Part, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	head := `{"type":"` + p.typeTag() + `"`
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
	case "item":
		return decodeAs[Item](data)
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
