package bedrock

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// A turnBuilder makes the turns of a conversation. Users and assistants alternate, and the results of a reply's calls
// are in the next turn.
type turnBuilder struct {
	model *Model
	turns []message
	names map[string]bool // of documents, which must differ
}

// addMessage adds a message to the turn of its role. A reply that only thinks is no turn: Bedrock takes it for the
// beginning of the next reply.
func (b *turnBuilder) addMessage(msg llm.Message) error {
	role := "user"
	switch msg.Role {
	case llm.RoleUser, llm.RoleTool:
	case llm.RoleAssistant:
		role = "assistant"
	default:
		return b.model.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
	}
	var blocks []block
	says := false
	for _, p := range msg.Parts {
		next, ok, err := b.partBlock(msg.Role, p)
		if err != nil {
			return err
		}
		if ok {
			blocks = append(blocks, next)
			says = says || next.Reasoning == nil
		}
	}
	if !says {
		return nil
	}
	if n := len(b.turns); n > 0 && b.turns[n-1].Role == role {
		b.turns[n-1].Content = append(b.turns[n-1].Content, blocks...)
	} else {
		b.turns = append(b.turns, message{Role: role, Content: blocks})
	}
	addTextToDocuments(&b.turns[len(b.turns)-1])
	return nil
}

// addTextToDocuments adds a text to a turn that has documents and no text, which Bedrock refuses.
func addTextToDocuments(m *message) {
	first := slices.IndexFunc(m.Content, func(b block) bool { return b.Document != nil })
	if first >= 0 && !slices.ContainsFunc(m.Content, func(b block) bool { return b.Text != "" }) {
		m.Content = slices.Insert(m.Content, first, block{Text: "See the attached documents."})
	}
}

// partBlock converts a part. ok is false for a part that must not be sent.
func (b *turnBuilder) partBlock(role llm.Role, p llm.Part) (next block, ok bool, err error) {
	switch p := p.(type) {
	case llm.Text:
		if role != llm.RoleTool {
			return block{Text: p.Text}, strings.TrimSpace(p.Text) != "", nil // Bedrock refuses empty text
		}
	case llm.Image, llm.File:
		if role == llm.RoleUser {
			next, err = b.mediaBlock(p)
			return next, true, err
		}
	case llm.Reasoning:
		if role == llm.RoleAssistant {
			return b.reasoningBlock(p)
		}
	case llm.ToolCall:
		if role == llm.RoleAssistant {
			return block{ToolUse: &toolUse{ID: p.ID, Name: p.Name, Input: wire.ObjectArgs(p.Args)}}, true, nil
		}
	case llm.ToolResult:
		if role == llm.RoleTool {
			next, err = b.resultBlock(p)
			return next, true, err
		}
	}
	return block{}, false, b.model.client.UnsupportedError("a message of the role " + string(role) + " contains a part that is not allowed there")
}

// reasoningBlock converts reasoning that a model of the same maker has signed in this place. ok is false for other
// reasoning.
func (b *turnBuilder) reasoningBlock(p llm.Reasoning) (next block, ok bool, err error) {
	if p.Origin != b.model.origin || p.Signature == "" {
		return block{}, false, nil
	}
	if p.Redacted {
		data, err := base64.StdEncoding.DecodeString(p.Signature)
		if err != nil {
			return block{}, false, nil // changed on its way, so that it proves nothing
		}
		return block{Reasoning: object{"redactedContent": data}}, true, nil
	}
	return block{Reasoning: object{"reasoningText": object{"text": p.Text, "signature": p.Signature}}}, true, nil
}

// resultBlock converts the result of a call. Its content must not be empty, and only models of Anthropic and Amazon
// know its status.
func (b *turnBuilder) resultBlock(p llm.ToolResult) (block, error) {
	r := &toolResult{ID: p.CallID}
	if p.Error {
		if b.model.isAnthropic() || b.model.isNova() {
			r.Status = "error"
		} else {
			r.Content = append(r.Content, block{Text: "Error:"})
		}
	}
	for _, c := range p.Content {
		switch c := c.(type) {
		case llm.Text:
			if strings.TrimSpace(c.Text) != "" {
				r.Content = append(r.Content, block{Text: c.Text})
			}
		case llm.Image, llm.File:
			next, err := b.mediaBlock(c)
			if err != nil {
				return block{}, err
			}
			r.Content = append(r.Content, next)
		default:
			return block{}, b.model.client.UnsupportedError("a tool result may contain only text, images and files")
		}
	}
	if len(r.Content) == 0 {
		r.Content = []block{{Text: "There is no output."}}
	}
	return block{ToolResult: r}, nil
}

// mediaBlock converts a picture or a document. Bedrock accepts only their bytes.
func (b *turnBuilder) mediaBlock(p llm.Part) (block, error) {
	switch p := p.(type) {
	case llm.Image:
		format, is := strings.CutPrefix(p.MIME, "image/")
		switch {
		case len(p.Data) == 0:
			return block{}, b.model.client.UnsupportedError("a picture that is given by its address; Bedrock accepts only its bytes")
		case !is || format != "png" && format != "jpeg" && format != "gif" && format != "webp":
			return block{}, b.model.client.UnsupportedError("a picture of the type " + p.MIME + "; Bedrock accepts PNG, JPEG, GIF and WebP")
		}
		m := &media{Format: format}
		m.Source.Bytes = p.Data
		return block{Image: m}, nil
	case llm.File:
		m := &media{Format: documentFormat(p.MIME)}
		switch {
		case len(p.Data) == 0:
			return block{}, b.model.client.UnsupportedError("a file that is given by its address; Bedrock accepts only its bytes")
		case m.Format == "":
			return block{}, b.model.client.UnsupportedError("a file of the type " + p.MIME + "; Bedrock accepts PDF and text")
		}
		m.Name = b.documentName(p.Name)
		m.Source.Bytes = p.Data
		return block{Document: m}, nil
	}
	return block{}, b.model.client.UnsupportedError("a part that is no picture and no file")
}

// documentFormat returns Bedrock's name for a type of documents, "" if it has none.
func documentFormat(mime string) string {
	switch {
	case mime == "application/pdf":
		return "pdf"
	case mime == "text/csv":
		return "csv"
	case mime == "text/html":
		return "html"
	case mime == "text/markdown":
		return "md"
	case strings.HasPrefix(mime, "text/"), mime == "application/json":
		return "txt"
	}
	return ""
}

// documentName returns the name of a document in a request: letters, digits, single blanks, dashes, and brackets,
// different from all others.
func (b *turnBuilder) documentName(file string) string {
	const most = 180
	if i := strings.LastIndexByte(file, '.'); i > 0 {
		file = file[:i]
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-()[]", r) {
			return r
		}
		return ' '
	}, file)
	plain = strings.Join(strings.Fields(plain), " ")
	if plain = strings.TrimSpace(plain[:min(len(plain), most)]); plain == "" {
		plain = "document"
	}
	name := plain
	for n := 2; b.names[name]; n++ {
		name = plain + " " + strconv.Itoa(n)
	}
	b.names[name] = true
	return name
}

// splitTurns separates calls and their results from everything else: some models refuse both in one turn. What stands
// between has the other role.
func splitTurns(turns []message) []message {
	var list []message
	for _, turn := range turns {
		between := message{Role: "assistant", Content: []block{{Text: "I have the results."}}}
		if turn.Role == "assistant" {
			between = message{Role: "user", Content: []block{{Text: "Please continue."}}}
		}
		var run message
		for i, b := range turn.Content {
			if i > 0 && b.isTool() != turn.Content[i-1].isTool() {
				list = append(list, run, between)
				run = message{}
			}
			run.Role = turn.Role
			run.Content = append(run.Content, b)
		}
		list = append(list, run)
	}
	return list
}

// isTool reports whether a block is a call or a result.
func (b block) isTool() bool { return b.ToolUse != nil || b.ToolResult != nil }
