package agent

import (
	"unicode"
	"unicode/utf8"

	"raddle.dev/llm"
)

// These constants estimate tokens. The estimate is corrected by what the
// provider reports for earlier requests.
const (
	perMessage = 5
	perCall    = 12
	perTool    = 10
	perImage   = 1200
	bytesPer   = 3 // bytes of a file per token
	letters    = 4 // letters of a Latin word per token
	scale      = 12
)

// textTokens estimates the tokens of a text: Latin words and numbers by their
// length; each other character counts by itself.
func textTokens(text string) int {
	twelfths := 0
	word := 0
	end := func() {
		if word > 0 {
			twelfths += max(scale, word*scale/letters) // a word is at least one token
		}
		word = 0
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			switch {
			case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
				word++
			case '0' <= c && c <= '9':
				twelfths += scale / 2
			case c == ' ':
				end()
			case c == '\n' || c == '\t':
				end()
				twelfths += scale / 3
			default:
				end()
				twelfths += scale * 3 / 4
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if unicode.Is(unicode.Latin, r) || unicode.Is(unicode.Cyrillic, r) || unicode.Is(unicode.Greek, r) {
			word += 2
			continue
		}
		twelfths += scale
	}
	end()
	return (twelfths + scale - 1) / scale
}

// messageTokens estimates the tokens of a message.
func messageTokens(m *llm.Message) int {
	n := perMessage
	for _, p := range m.Parts {
		n += partTokens(p)
	}
	return n
}

func partTokens(p llm.Part) int {
	switch p := p.(type) {
	case llm.Text:
		return textTokens(p.Text)
	case llm.Reasoning:
		return textTokens(p.Text) + (len(p.Signature)+len(p.Extra))/bytesPer
	case llm.Item:
		return textTokens(string(p.Raw))
	case llm.ToolCall:
		return perCall + textTokens(p.Name) + textTokens(string(p.Args))
	case llm.ToolResult:
		n := perCall
		for _, c := range p.Content {
			n += partTokens(c)
		}
		return n
	case llm.Image:
		return perImage
	case llm.File:
		return perImage + len(p.Data)/bytesPer
	}
	return 0
}

// headTokens estimates the tokens of a request without its messages.
func headTokens(r *llm.Request) int {
	n := perMessage + textTokens(r.System) + textTokens(string(r.Schema))
	for _, t := range r.Tools {
		n += perTool + textTokens(t.Name) + textTokens(t.Description) + textTokens(string(t.Schema))
	}
	return n
}
