package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"raddle.dev/internal/storage/attach"
)

// A request is the body of a request for a completion, as far as raddle reads it. What only tunes a model, such as
// temperature or max_tokens, is the agent's matter and is ignored.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Raddle struct {
		Variables map[string]string `json:"variables"` // of the agent
	} `json:"raddle"`

	N              *int            `json:"n"`
	Tools          json.RawMessage `json:"tools"`
	Functions      json.RawMessage `json:"functions"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Stop       json.RawMessage `json:"stop"`
	Logprobs   bool            `json:"logprobs"`
	Modalities []string        `json:"modalities"`
	WebSearch  json.RawMessage `json:"web_search_options"`
}

// A message is one message of a conversation.
type message struct {
	Role      string          `json:"role"`
	Content   content         `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// A content is the text of a message and what is attached to it. Other parts are counted by their types.
type content struct {
	text  string
	parts []contentPart
	files []attach.File
}

// A contentPart is a part of a message, as far as raddle reads it.
type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// These are the types of parts that are taken.
const (
	partText  = "text"
	partImage = "image_url"
	partFile  = "file"
)

// UnmarshalJSON reads a text or a list of parts.
func (c *content) UnmarshalJSON(data []byte) error {
	if string(data) == "null" || json.Unmarshal(data, &c.text) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &c.parts); err != nil {
		return errors.New("the content of a message must be a text or a list of parts")
	}
	for _, p := range c.parts {
		if p.Type == partText {
			c.text += p.Text
		}
	}
	return nil
}

// readFiles reads the pictures and documents of a message, whose place in the request is param. before is how many the
// messages before it have.
func (c *content) readFiles(param string, before int) error {
	for i := range c.parts {
		p := &c.parts[i]
		var f attach.File
		var err error
		switch p.Type {
		case partText:
			continue
		case partImage:
			f, err = attach.NewDataURL(fmt.Sprintf("picture %d", before+len(c.files)+1), p.ImageURL.URL)
		case partFile:
			f, err = attach.NewDataURL(cmp.Or(p.File.Name, fmt.Sprintf("document %d", before+len(c.files)+1)), p.File.Data)
		default:
			return newBadRequest("unsupported_content", fmt.Sprintf("%s.content[%d]", param, i), fmt.Sprintf("content of the type %q is not supported: send text, image_url or file", p.Type))
		}
		if err != nil {
			return newBadRequest("invalid_content", fmt.Sprintf("%s.content[%d].%s", param, i, p.Type), attach.Explain(err))
		}
		c.files = append(c.files, f)
		p.ImageURL.URL = ""
		p.File.Data = ""
	}
	return nil
}

// readRequest reads the body of a request and refuses what an agent cannot do.
func readRequest(r *http.Request) (*request, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var req request
	if err := json.Unmarshal(data, &req); err != nil {
		e := newBadRequest("invalid_json", "", "the body is not a valid request: "+strings.TrimPrefix(err.Error(), "json: "))
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			e.Code = "invalid_type"
			e.Param = wrong.Field
		}
		return nil, e
	}
	if err := req.checkOptions(); err != nil {
		return nil, err
	}
	return &req, req.checkMessages()
}

// checkOptions returns an error for an option that would change what the caller gets, and that raddle does not have.
func (r *request) checkOptions() error {
	refuse := func(param, why string) error { return newBadRequest("unsupported_parameter", param, why) }
	switch {
	case r.N != nil && *r.N != 1:
		return refuse("n", "one run gives one answer: n must be 1")
	case isSet(r.Tools):
		return refuse("tools", "an agent has its own tools: tools of the request are not supported")
	case isSet(r.Functions):
		return refuse("functions", "an agent has its own tools: functions of the request are not supported")
	case r.ResponseFormat != nil && r.ResponseFormat.Type != "text" && r.ResponseFormat.Type != "":
		return refuse("response_format", "the form of the answer is the agent's matter: response_format must be text")
	case isSet(r.Stop):
		return refuse("stop", "stop sequences are not supported")
	case r.Logprobs:
		return refuse("logprobs", "logprobs are not supported")
	case slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" }):
		return refuse("modalities", "an agent answers with text: modalities must be [\"text\"]")
	case isSet(r.WebSearch):
		return refuse("web_search_options", "an agent has its own tools: web_search_options are not supported")
	}
	return nil
}

// isSet reports whether a value is there and is neither null nor empty.
func isSet(v json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "[]", "{}", `""`}, string(v))
}

// checkMessages returns an error unless the messages are texts and the user's is the last one.
func (r *request) checkMessages() error {
	if len(r.Messages) == 0 {
		return newBadRequest("missing_messages", "messages", "there are no messages")
	}
	files := 0
	for i := range r.Messages {
		m := &r.Messages[i]
		param := fmt.Sprintf("messages[%d]", i)
		if err := m.Content.readFiles(param, files); err != nil {
			return err
		}
		files += len(m.Content.files)
		switch {
		case m.Role == "tool" || m.Role == "function" || isSet(m.ToolCalls):
			return newBadRequest("unsupported_message", param, "an agent has its own tools: messages about calls of tools are not supported")
		case titles[m.Role] == "":
			return newBadRequest("unknown_role", param+".role", fmt.Sprintf("the role %q is not known: it must be system, developer, user or assistant", m.Role))
		}
	}
	if last := len(r.Messages) - 1; r.Messages[last].Role != "user" {
		return newBadRequest("no_user_message", fmt.Sprintf("messages[%d]", last), "the last message must be of the user: it is the prompt, or the answer to a question")
	} else if strings.TrimSpace(r.Messages[last].Content.text) == "" && len(r.Messages[last].Content.files) == 0 {
		return newBadRequest("empty_message", fmt.Sprintf("messages[%d].content", last), "the last message is empty")
	}
	return nil
}

// titles are the roles of messages, as a transcript names them.
var titles = map[string]string{"system": "System", "developer": "System", "user": "User", "assistant": "Assistant"}

// lastText returns the text of the last message.
func (r *request) lastText() string { return r.Messages[len(r.Messages)-1].Content.text }

// lastFiles returns what is attached to the last message.
func (r *request) lastFiles() []attach.File { return r.Messages[len(r.Messages)-1].Content.files }

// allFiles returns what is attached to the messages, in their order.
func (r *request) allFiles() (files []attach.File) {
	for _, m := range r.Messages {
		files = append(files, m.Content.files...)
	}
	return files
}

// formatPrompt returns the prompt of a run that has no earlier turns: the last message, after the instructions of the
// client and a transcript of what was said before.
func (r *request) formatPrompt() string {
	var instructions, earlier []string
	for _, m := range r.Messages[:len(r.Messages)-1] {
		text := strings.TrimSpace(m.Content.text)
		switch {
		case text == "":
		case titles[m.Role] == titles["system"]:
			instructions = append(instructions, text)
		default:
			earlier = append(earlier, titles[m.Role]+": "+text)
		}
	}
	if len(instructions)+len(earlier) == 0 {
		return r.lastText()
	}
	blocks := instructions
	if len(earlier) > 0 {
		blocks = append(append(blocks, "The conversation so far:"), earlier...)
		blocks = append(blocks, "The user's next message:")
	}
	return strings.Join(append(blocks, r.lastText()), "\n\n")
}
