package environ

import (
	"bytes"
	"fmt"
	"strings"
)

// A Dotenv is what a file of variables says.
type Dotenv struct {
	Vars   map[string]string
	Faults []DotenvFault // in the order of the file
}

// A DotenvFault is a line that sets no variable although it is neither blank nor a comment.
type DotenvFault struct {
	Line int
	Text string // what is wrong; it quotes no value
}

// ParseDotenv reads lines NAME=value. Nothing is evaluated: a dollar sign is one. Blank lines, comments and a leading
// "export" are skipped.
//
// A value in double quotes may go over several lines, and \n, \r, \t, \", \\ and \$ mean what they mean in other
// languages; one in single quotes goes over several lines too and has no escapes. After a value, and after a blank, #
// begins a comment. Of a name that occurs twice the first value counts.
func ParseDotenv(text []byte) Dotenv {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	p := dotenvReader{rest: strings.ReplaceAll(string(text), "\r\n", "\n"), result: Dotenv{Vars: map[string]string{}}}
	for p.rest != "" {
		p.readLine()
	}
	return p.result
}

// A dotenvReader reads a file from its beginning.
type dotenvReader struct {
	rest   string
	line   int // of what was read last
	result Dotenv
}

func (p *dotenvReader) addFault(line int, text string) {
	p.result.Faults = append(p.result.Faults, DotenvFault{Line: line, Text: text})
}

// cutLine takes the next line.
func (p *dotenvReader) cutLine() string {
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	p.line++
	return line
}

// readLine reads a line, and those that its value continues on.
func (p *dotenvReader) readLine() {
	line := strings.TrimSpace(p.cutLine())
	if line == "" || line[0] == '#' {
		return
	}
	if after, ok := strings.CutPrefix(line, "export"); ok && strings.TrimLeft(after, " \t") != after {
		line = strings.TrimSpace(after)
	}
	at := p.line
	name, value, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		p.addFault(at, "the line has no =, and sets nothing")
		return
	case name == "" || strings.ContainsAny(name, " \t\x00\"'"):
		p.addFault(at, "the text before = cannot be the name of a variable")
		return
	}
	value, fault := p.readValue(strings.TrimLeft(value, " \t"))
	if strings.Contains(value, "\x00") {
		fault = "the value has a character that no variable can have"
	}
	if fault != "" {
		p.addFault(at, name+": "+fault)
		return
	}
	if _, set := p.result.Vars[name]; set {
		p.addFault(at, fmt.Sprintf("%s is set above; that value counts", name))
		return
	}
	p.result.Vars[name] = value
}

// readValue returns the value that a text begins with. It takes further lines if the value is in quotes.
func (p *dotenvReader) readValue(text string) (value, fault string) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return cutComment(text), ""
	}
	quote := text[0]
	before := *p
	var b strings.Builder
	for text = text[1:]; ; text = p.cutLine() {
		end := copyQuoted(&b, text, quote)
		if end < 0 {
			if p.rest == "" {
				*p = before // only this line is lost
				return "", "the quote does not end"
			}
			b.WriteByte('\n')
			continue
		}
		if after := strings.TrimSpace(text[end+1:]); after != "" && after[0] != '#' {
			if before.line != p.line {
				return "", "text follows the quote"
			}
			return cutComment(string(quote) + text), "" // such as "a"b: no quotes of a value
		}
		return b.String(), ""
	}
}

// copyQuoted copies what stands before the closing quote of a line, and returns where that is; -1 if there is none.
func copyQuoted(b *strings.Builder, text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			b.WriteString(unescape(text[i]))
		default:
			b.WriteByte(c)
		}
	}
	return -1
}

// unescape returns the text for a backslash and a character.
func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\', '$':
		return string(c)
	}
	return `\` + string(c)
}

// cutComment returns a value without quotes, without the comment behind it.
func cutComment(text string) string {
	for i := range len(text) {
		if text[i] == '#' && i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
			text = text[:i]
			break
		}
	}
	if strings.HasPrefix(text, "#") {
		return ""
	}
	return strings.TrimSpace(text)
}
