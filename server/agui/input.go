package agui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/storage/attach"
)

// An input is what a client sends to run an agent.
type input struct {
	ThreadID    string          `json:"threadId"`
	RunID       string          `json:"runId"`
	ParentRunID string          `json:"parentRunId"`
	Messages    []inputMessage  `json:"messages"`
	Context     []contextItem   `json:"context"`
	Forwarded   json.RawMessage `json:"forwardedProps"`
	Resume      []resumeEntry   `json:"resume"`
}

// A contextItem is something that the client knows and the agent should.
type contextItem struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// A resumeEntry answers an interrupt.
type resumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved or cancelled
	Payload     json.RawMessage `json:"payload"`
}

// These are the values of resumeEntry.Status.
const (
	statusResolved  = "resolved"
	statusCancelled = "cancelled"
)

// onlyCancels reports whether the input gives no answer.
func (in *input) onlyCancels() bool {
	return !slices.ContainsFunc(in.Resume, func(r resumeEntry) bool { return r.Status != statusCancelled })
}

// An inputMessage is a message of the client with what was sent.
type inputMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	raw json.RawMessage
}

// UnmarshalJSON keeps the message as it was sent.
func (m *inputMessage) UnmarshalJSON(b []byte) error {
	type plain inputMessage
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*m = inputMessage(p)
	m.raw = append(json.RawMessage(nil), b...)
	return nil
}

// A part is a piece of the content of a message. Clients write pictures and documents as binary, and newer ones by
// their kind with a source.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIME     string `json:"mimeType"`
	Data     string `json:"data"`
	URL      string `json:"url"`
	Filename string `json:"filename"`
	Source   struct {
		Type  string `json:"type"` // data or url
		Value string `json:"value"`
		MIME  string `json:"mimeType"`
	} `json:"source"`
}

// These are the types of parts.
const (
	partText     = "text"
	partBinary   = "binary"
	partImage    = "image"
	partDocument = "document"
)

// content returns the text of a message, and what is attached to it; before is how many attachments the messages before
// it have.
func (m *inputMessage) content(before int) (text string, files []attach.File, err error) {
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil, nil
	}
	var parts []part
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", nil, fmt.Errorf("message %q: its content is neither a text nor a list of parts", m.ID)
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case partText:
			texts = append(texts, p.Text)
		case partBinary, partImage, partDocument:
			f, err := p.file(before + len(files) + 1)
			if err != nil {
				return "", nil, fmt.Errorf("message %q: %s", m.ID, attach.Explain(err))
			}
			files = append(files, f)
		default:
			return "", nil, fmt.Errorf("message %q has a part of type %q: text, binary, image and document are accepted", m.ID, p.Type)
		}
	}
	return strings.Join(texts, "\n"), files, nil
}

// file returns a picture or a document.
func (p *part) file(number int) (attach.File, error) {
	name := cmp.Or(p.Filename, fmt.Sprintf("attachment %d", number))
	data := p.Data
	address := p.URL
	mime := p.MIME
	switch p.Source.Type {
	case "data":
		data = p.Source.Value
		mime = p.Source.MIME
	case "url":
		address = p.Source.Value
	}
	if data == "" {
		return attach.NewDataURL(name, address)
	}
	return attach.NewBase64(name, mime, data, attach.MaxText)
}

// decodeInput reads and checks the body of a request.
func decodeInput(body []byte) (*input, error) {
	in := new(input)
	if err := json.Unmarshal(body, in); err != nil {
		return nil, fmt.Errorf("the input is not valid: %w", err)
	}
	if in.ThreadID == "" || in.RunID == "" {
		return nil, errors.New("the input needs a threadId and a runId")
	}
	for _, r := range in.Resume {
		if r.Status != statusResolved && r.Status != statusCancelled {
			return nil, fmt.Errorf("the answer to interrupt %q has the status %q: use resolved or cancelled", r.InterruptID, r.Status)
		}
	}
	return in, nil
}

// prompt returns what the user says, and what is attached to it: the messages of the user at the end of the
// conversation, from the one after a message with an id on, and the context. The earlier messages are in the agent's own
// session.
func (in *input) prompt(after string) (text string, files []attach.File, err error) {
	var texts []string
	for _, m := range in.Messages[in.newFrom(after):] {
		said, more, err := m.content(len(files))
		if err != nil {
			return "", nil, err
		}
		if files = append(files, more...); said != "" || len(more) == 0 {
			texts = append(texts, said)
		}
	}
	for _, c := range in.Context {
		texts = append(texts, c.Description+": "+c.Value)
	}
	return strings.Join(texts, "\n\n"), files, nil
}

// newFrom returns the index of the first of the user's messages at the end, from the one after a message with an id on.
func (in *input) newFrom(after string) int {
	first := len(in.Messages)
	for first > 0 && in.Messages[first-1].Role == "user" && (after == "" || in.Messages[first-1].ID != after) {
		first--
	}
	return first
}

// lastMessage returns the id of the message at the end of the conversation if the user has written it, otherwise "".
func (in *input) lastMessage() string {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == "user" {
		return in.Messages[n-1].ID
	}
	return ""
}

// variables returns forwardedProps.variables: values for the agent's variables.
func (in *input) variables() (map[string]string, error) {
	var props struct {
		Variables map[string]string `json:"variables"`
	}
	if len(in.Forwarded) == 0 {
		return nil, nil
	}
	if in.Forwarded[0] != '{' {
		return nil, nil
	}
	if err := json.Unmarshal(in.Forwarded, &props); err != nil {
		return nil, fmt.Errorf("forwardedProps.variables must be an object of texts: %w", err)
	}
	return props.Variables, nil
}

// shownMessages returns the messages of the client that a snapshot repeats. Messages of the roles activity and
// reasoning are left out: a snapshot has either all of such a role or none.
func (in *input) shownMessages() (list []message) {
	for _, m := range in.Messages {
		if m.Role != "activity" && m.Role != "reasoning" {
			list = append(list, message{ID: m.ID, Role: m.Role, raw: m.raw})
		}
	}
	return list
}
