package draw

import (
	"strconv"
	"strings"
)

// dotQuote writes s as a quoted string of DOT. In labels DOT knows escapes that begin with a backslash and also
// the character entities of HTML; both are switched off.
func dotQuote(s string) string {
	return `"` + dotEscaper.Replace(s) + `"`
}

var dotEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "&", "&amp;")

// mermaidQuote writes s as a quoted label of Mermaid. Mermaid reads a label as Markdown and HTML, looks for icons
// and formulas in it and strips some lines of the whole text by patterns, so every character but letters, digits and
// harmless signs becomes a numeric entity in Mermaid's notation.
func mermaidQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteString("<br/>")
		}
		mermaidLine(&b, []rune(line))
	}
	b.WriteByte('"')
	if b.Len() == 2 {
		return `" "`
	}
	return b.String()
}

func mermaidLine(b *strings.Builder, line []rune) {
	listMark := true // only digits so far: a sign now would make a list
	for i, r := range line {
		safe := strings.ContainsRune(" ,?!'", r) || isWord(r) || r >= 0x80 && !strings.ContainsRune("ﬂ°¶ß", r)
		switch r {
		case '-', '.':
			safe = !listMark
		case '_':
			safe = i > 0 && i < len(line)-1 && isWord(line[i-1]) && isWord(line[i+1])
		}
		listMark = listMark && (r >= '0' && r <= '9' || r == ' ')
		if safe {
			b.WriteRune(r)
			continue
		}
		b.WriteString("#" + strconv.Itoa(int(r)) + ";")
	}
}

// isWord reports whether r is an ASCII letter or digit.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
