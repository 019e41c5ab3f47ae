package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/base/proc"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// pictures are the media types of images that every model with vision accepts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// rawResult returns the result as JSON, as the server gave it. Bytes that a model cannot
// read as text are attached or left out, and a note replaces them.
func rawResult(res *sdk.CallToolResult) tool.Result {
	type outcome struct {
		Content           []any `json:"content"`
		StructuredContent any   `json:"structuredContent,omitempty"`
		IsError           bool  `json:"isError,omitempty"`
	}
	o := outcome{Content: []any{}, StructuredContent: res.StructuredContent, IsError: res.IsError}
	var attached []llm.Part
	for _, c := range res.Content {
		part, note := mediaPart(c)
		if part == nil && note == "" {
			o.Content = append(o.Content, c)
			continue
		}
		if part != nil {
			attached = append(attached, part)
			note = "attached"
		}
		o.Content = append(o.Content, withNote(c, note))
	}
	result := tool.JSONResult(o)
	result.Content = append(result.Content, attached...)
	result.Error = res.IsError
	return result
}

// withNote returns a content with a note in place of its bytes.
func withNote(c sdk.Content, note string) any {
	switch c := c.(type) {
	case *sdk.ImageContent:
		return map[string]string{"type": "image", "mimeType": c.MIMEType, "data": note}
	case *sdk.AudioContent:
		return map[string]string{"type": "audio", "mimeType": c.MIMEType, "data": note}
	case *sdk.EmbeddedResource:
		return map[string]any{"type": "resource", "resource": map[string]string{
			"uri": c.Resource.URI, "mimeType": c.Resource.MIMEType, "blob": note,
		}}
	}
	return c
}

// messageResult returns the result as parts of a message: texts as they are, and structured
// content unless a text says the same.
func messageResult(res *sdk.CallToolResult) tool.Result {
	result := tool.Result{Error: res.IsError}
	sameText := res.StructuredContent == nil
	for _, c := range res.Content {
		part, note := mediaPart(c)
		text := note
		switch c := c.(type) {
		case *sdk.TextContent:
			text = c.Text
			sameText = sameText || sameJSON(text, res.StructuredContent)
		case *sdk.ResourceLink:
			text = strings.TrimSpace(fmt.Sprintf("Resource %s: %s %s", c.Name, c.URI, c.Description))
		case *sdk.EmbeddedResource:
			if part == nil && note == "" && c.Resource != nil {
				text = c.Resource.Text
			}
		}
		switch {
		case part != nil:
			result.Content = append(result.Content, part)
		case text != "":
			result.Content = append(result.Content, llm.Text{Text: withLineBreak(result.Content, text)})
		}
	}
	if !sameText {
		text := tool.JSONResult(res.StructuredContent).Text()
		result.Content = append(result.Content, llm.Text{Text: withLineBreak(result.Content, text)})
	}
	return result
}

// withLineBreak puts a line break before a text that follows another one.
func withLineBreak(before []llm.Part, text string) string {
	if len(before) == 0 {
		return text
	}
	if last, ok := before[len(before)-1].(llm.Text); ok && !strings.HasSuffix(last.Text, "\n") {
		return "\n" + text
	}
	return text
}

// mediaPart returns the part for a content other than text, or a note if models do not
// accept such a part. For text it returns neither.
func mediaPart(c sdk.Content) (llm.Part, string) {
	switch c := c.(type) {
	case *sdk.ImageContent:
		return bytesPart(c.MIMEType, "", c.Data)
	case *sdk.AudioContent:
		return bytesPart(c.MIMEType, "", c.Data)
	case *sdk.EmbeddedResource:
		if c.Resource != nil && len(c.Resource.Blob) > 0 {
			return bytesPart(c.Resource.MIMEType, c.Resource.URI, c.Resource.Blob)
		}
	}
	return nil, ""
}

func bytesPart(mime, name string, data []byte) (llm.Part, string) {
	switch {
	case len(data) == 0:
	case slices.Contains(pictures, mime):
		return llm.Image{MIME: mime, Data: data}, ""
	case mime == "application/pdf":
		return llm.File{Name: name, MIME: mime, Data: data}, ""
	}
	return nil, fmt.Sprintf("[%d bytes of %s left out]", len(data), mime)
}

// sameJSON reports whether a text is the JSON of a value that was decoded.
func sameJSON(text string, v any) bool {
	var w any
	if json.Unmarshal([]byte(text), &w) != nil {
		return false
	}
	return reflect.DeepEqual(v, w)
}

// plainText returns a text without terminal escapes and NUL characters.
func plainText(text string) string {
	return strings.ReplaceAll(string(proc.StripEscapes([]byte(text))), "\x00", "")
}

// plainResult removes terminal escapes and NUL characters from all texts of a result.
func plainResult(res *sdk.CallToolResult) {
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			c.Text = plainText(c.Text)
		case *sdk.ResourceLink:
			c.Name, c.Title, c.Description, c.URI = plainText(c.Name), plainText(c.Title), plainText(c.Description), plainText(c.URI)
		case *sdk.EmbeddedResource:
			if c.Resource != nil {
				c.Resource.Text, c.Resource.URI = plainText(c.Resource.Text), plainText(c.Resource.URI)
			}
		}
	}
	res.StructuredContent = plainValue(res.StructuredContent)
}

// plainValue returns a JSON value with plain texts, also in the names of its keys.
func plainValue(v any) any {
	switch v := v.(type) {
	case string:
		return plainText(v)
	case []any:
		for i := range v {
			v[i] = plainValue(v[i])
		}
	case map[string]any:
		plain := make(map[string]any, len(v))
		for name, value := range v {
			plain[plainText(name)] = plainValue(value)
		}
		return plain
	}
	return v
}

// redactResult removes the known secrets from the texts of a result.
func (s *server) redactResult(r tool.Result) tool.Result {
	for i, p := range r.Content {
		if t, ok := p.(llm.Text); ok {
			r.Content[i] = llm.Text{Text: s.redactText(t.Text)}
		}
	}
	return r
}
