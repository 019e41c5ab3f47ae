package declare

import "strings"

// A tsScanner splits TypeScript into words, signs, texts and comments. It does
// not know every rule of the language: enough to find functions and their
// parameters at the top of a file.
type tsScanner struct {
	src  string
	at   int
	last byte // the last byte of the token before, of those that are code
}

// nextToken returns the next token with comments; empty: there is none.
func (ts *tsScanner) nextToken() string {
	for ts.at < len(ts.src) && strings.IndexByte(" \t\r\n", ts.src[ts.at]) >= 0 {
		ts.at++
	}
	start := ts.at
	if start == len(ts.src) {
		return ""
	}
	rest := ts.src[start:]
	comment := false
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "//"):
		ts.at = lineEnd(ts.src, start)
		comment = true
	case strings.HasPrefix(rest, "/*"):
		ts.at = len(ts.src)
		comment = true
		if end := strings.Index(rest[2:], "*/"); end >= 0 {
			ts.at = start + end + 4
		}
	case c == '\'' || c == '"':
		ts.at = textEnd(ts.src, start)
	case c == '`':
		ts.at = templateEnd(ts.src, start)
	case c == '/' && ts.beginsValue():
		ts.at = regexpEnd(ts.src, start)
	case isWordByte(c):
		for ts.at < len(ts.src) && isWordByte(ts.src[ts.at]) {
			ts.at++
		}
	default:
		ts.at++
	}
	tok := ts.src[start:ts.at]
	if !comment {
		ts.last = tok[len(tok)-1]
	}
	return tok
}

// nextCode returns the next token that is not a comment.
func (ts *tsScanner) nextCode() string {
	for {
		tok := ts.nextToken()
		if !strings.HasPrefix(tok, "//") && !strings.HasPrefix(tok, "/*") {
			return tok
		}
	}
}

// beginsValue reports whether a slash here begins a regular expression: after an
// operator or at the beginning, not after a value.
func (ts *tsScanner) beginsValue() bool {
	return ts.last == 0 || !isWordByte(ts.last) && strings.IndexByte(")]}'\"`", ts.last) < 0
}

// nextLine returns the line of the next token, from 1.
func (ts *tsScanner) nextLine() int {
	ahead := *ts
	tok := ahead.nextCode()
	return ts.lineAt(ahead.at - len(tok))
}

func (ts *tsScanner) lineAt(at int) int { return strings.Count(ts.src[:at], "\n") + 1 }

// skipBrackets reads behind the bracket that closes the one just read.
func (ts *tsScanner) skipBrackets() bool {
	for depth := 1; depth > 0; {
		switch tok := ts.nextCode(); {
		case tok == "":
			return false
		case isOpening(tok):
			depth++
		case isClosing(tok):
			depth--
		}
	}
	return true
}

func (ts *tsScanner) skipAngles() {
	for depth := 1; depth > 0; {
		switch ts.nextCode() {
		case "":
			return
		case "<":
			depth++
		case ">":
			depth--
		case "=":
			if strings.HasPrefix(ts.src[ts.at:], ">") {
				ts.at++
			}
		}
	}
}

// hasBody reads the type of the result and reports whether a body follows; the
// scanner stands before it then. A declaration without a body is an overload.
func (ts *tsScanner) hasBody() bool {
	typed := false
	fresh := true // a type may begin here, so that a brace belongs to it
	for {
		before := *ts
		switch tok := ts.nextCode(); {
		case tok == "" || tok == ";" || tok == "export":
			*ts = before
			return false
		case tok == ":" && !typed:
			typed = true
			fresh = true
			continue
		case tok == "{" && (!typed || !fresh):
			*ts = before
			return true
		case isOpening(tok):
			ts.skipBrackets()
			fresh = false
		default:
			fresh = strings.HasSuffix("|&<=>,", tok) && tok != ">" || tok == "is"
		}
	}
}

func isOpening(tok string) bool { return tok == "(" || tok == "[" || tok == "{" }
func isClosing(tok string) bool { return tok == ")" || tok == "]" || tok == "}" }

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// textEnd returns the index after the text in quotes at i. One without an end ends with its line.
func textEnd(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '\n':
			return j
		case s[i]:
			return j + 1
		}
	}
	return len(s)
}

// templateEnd returns the index after the template at i, whose expressions may hold
// further templates.
func templateEnd(s string, i int) int {
	var open []int // braces that are open in each open expression
	for j := i + 1; j < len(s); j++ {
		inText := len(open) == 0 || open[len(open)-1] < 0
		switch c := s[j]; {
		case c == '\\':
			j++
		case inText && c == '`':
			if len(open) == 0 {
				return j + 1
			}
			open = open[:len(open)-1]
		case inText && strings.HasPrefix(s[j:], "${"):
			open = append(open, 0)
			j++
		case inText:
		case c == '`':
			open = append(open, -1)
		case c == '\'' || c == '"':
			j = textEnd(s, j) - 1
		case c == '{':
			open[len(open)-1]++
		case c == '}':
			if open[len(open)-1]--; open[len(open)-1] < 0 {
				open = open[:len(open)-1]
			}
		}
	}
	return len(s)
}

// regexpEnd returns the index after the regular expression at i.
func regexpEnd(s string, i int) int {
	class := false
	for j := i + 1; j < len(s) && s[j] != '\n'; j++ {
		switch c := s[j]; {
		case c == '\\':
			j++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return j + 1
		}
	}
	return i + 1 // it was a division
}

// bracketsTS returns the index of the bracket that closes the one at open, or -1.
func bracketsTS(s string, open int) int {
	ts := tsScanner{src: s, at: open}
	if tok := ts.nextToken(); !isOpening(tok) || !ts.skipBrackets() {
		return -1
	}
	return ts.at - 1
}

// topTS returns the index of a sign outside brackets, angles, texts and comments at
// or after from, or -1. The arrow => is no sign and closes no angle.
func topTS(s string, from int, sign byte) int {
	ts := tsScanner{src: s, at: from}
	angles := 0
	for {
		tok := ts.nextCode()
		at := ts.at - len(tok)
		switch {
		case tok == "":
			return -1
		case tok == "=" && strings.HasPrefix(s[ts.at:], ">"):
			ts.at++
		case len(tok) == 1 && tok[0] == sign && angles == 0:
			return at
		case isOpening(tok):
			if !ts.skipBrackets() {
				return -1
			}
		case tok == "<":
			angles++
		case tok == ">" && angles > 0:
			angles--
		}
	}
}

// splitTS splits at a sign that topTS finds.
func splitTS(s string, sign byte) []string { return splitAt(s, sign, topTS) }

// dropTSComments is source without its comments.
func dropTSComments(s string) string {
	if !strings.Contains(s, "/") {
		return s
	}
	var b strings.Builder
	ts := tsScanner{src: s}
	last := 0
	for {
		tok := ts.nextToken()
		if tok == "" {
			break
		}
		if strings.HasPrefix(tok, "//") || strings.HasPrefix(tok, "/*") {
			b.WriteString(s[last : ts.at-len(tok)])
			last = ts.at
		}
	}
	b.WriteString(s[last:])
	return b.String()
}
