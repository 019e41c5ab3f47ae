package markdown

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"raddle.dev/internal/base/term"
)

// A language says how code is divided into comments, texts and words. It needs no more: a reader of a reply wants to
// find the structure, not to check the code.
type language struct {
	comments []string    // what begins a comment up to the end of the line
	blocks   [][2]string // what begins and ends a comment of several lines
	quotes   string      // characters around a text that ends in its line
	long     []string    // what begins and ends a text of several lines
	keywords string
	keys     bool // a word before a colon is a name
}

var (
	cComments = []string{"//"}
	cBlocks   = [][2]string{{"/*", "*/"}}
	hash      = []string{"#"}
)

var languages = map[string]language{
	"go": {comments: cComments, blocks: cBlocks, quotes: `"'`, long: []string{"`"},
		keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map nil package range return select struct switch true false type var"},
	"python": {comments: hash, quotes: `"'`, long: []string{`"""`, "'''"},
		keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield"},
	"javascript": {comments: cComments, blocks: cBlocks, quotes: `"'`, long: []string{"`"},
		keywords: "abstract any as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null number of private public readonly return static string super switch this throw true try type typeof undefined var void while yield"},
	"c": {comments: cComments, blocks: cBlocks, quotes: `"'`,
		keywords: "auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend goto if import inline int interface long namespace new null nullptr operator override package private protected public register return short signed sizeof static struct super switch template this throw throws true try typedef typename union unsigned using var virtual void volatile while"},
	"rust": {comments: cComments, blocks: cBlocks, quotes: `"`,
		keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while"},
	"bash": {comments: hash, quotes: `"'`,
		keywords: "case do done elif else esac exit export fi for function if in local readonly return set shift source then unset until while"},
	"ruby": {comments: hash, quotes: `"'`,
		keywords: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield"},
	"sql": {comments: []string{"--"}, blocks: cBlocks, quotes: `"'`,
		keywords: "add all alter and as asc between by case create database default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit not null on or order outer primary references right select set table then union unique update values view when where with"},
	"yaml": {comments: hash, quotes: `"'`, keywords: "true false null yes no", keys: true},
	"json": {comments: cComments, blocks: cBlocks, quotes: `"`, keywords: "true false null", keys: true},
	"html": {blocks: [][2]string{{"<!--", "-->"}}, quotes: `"'`},
	"css":  {blocks: cBlocks, quotes: `"'`, keys: true},
	"diff": {},
	"":     {},
}

var languageNames = map[string]string{
	"golang": "go", "py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "ts": "javascript", "tsx": "javascript", "typescript": "javascript",
	"cpp": "c", "c++": "c", "h": "c", "java": "c", "kotlin": "c", "csharp": "c", "cs": "c", "swift": "c", "php": "c", "scala": "c", "rs": "rust", "sh": "bash", "shell": "bash",
	"zsh": "bash", "console": "bash", "make": "bash", "makefile": "bash", "dockerfile": "bash", "rb": "ruby", "yml": "yaml", "toml": "yaml", "ini": "yaml", "jsonc": "json",
	"xml": "html", "svg": "html", "scss": "css", "patch": "diff",
}

// A highlighter gives code its styles, line by line. It is not safe for concurrent use.
type highlighter struct {
	theme    Theme
	language language
	diff     bool
	keywords []string
	until    string     // what ends the comment or text of several lines in which the last line ended; empty: none
	style    term.Style // of that comment or text
}

func newHighlighter(theme Theme, name string) *highlighter {
	name = strings.ToLower(name)
	name = cmp.Or(languageNames[name], name)
	l := languages[name]
	return &highlighter{theme: theme, language: l, diff: name == "diff", keywords: strings.Fields(l.keywords)}
}

// codeIndent is before each line of code.
const codeIndent = "  "

// renderLine returns a line of code as lines of the terminal. Code is not wrapped between words: a long line continues
// in the next one.
func (h *highlighter) renderLine(code string, width int) []string {
	code = strings.ReplaceAll(strings.TrimRight(code, "\r\n"), "\t", "    ")
	var lines []string
	for _, line := range cutSpans(h.splitLine(code), width-len(codeIndent)) {
		var b strings.Builder
		for _, s := range line {
			b.WriteString(s.paint())
		}
		if b.Len() > 0 {
			lines = append(lines, codeIndent+b.String())
		} else {
			lines = append(lines, "")
		}
	}
	return lines
}

// cutSpans divides a line at a width.
func cutSpans(spans []span, width int) [][]span {
	lines := [][]span{nil}
	columns := 0
	for _, s := range spans {
		for s.text != "" {
			head := term.CutEnd(s.text, width-columns)
			if head == "" {
				if columns == 0 {
					return lines // a character that is wider than the line
				}
				lines = append(lines, nil)
				columns = 0
				continue
			}
			last := len(lines) - 1
			lines[last] = append(lines[last], s.withText(head))
			columns += term.TextWidth(head)
			s.text = s.text[len(head):]
		}
	}
	return lines
}

var wordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[\pL_$@][\pL\pN_$-]*|[0-9][0-9A-Za-z_.]*|\s+)`)
})

// splitLine divides a line of code into spans.
func (h *highlighter) splitLine(line string) []span {
	if h.diff {
		return []span{{text: line, style: h.diffStyle(line)}}
	}
	var spans []span
	add := func(n int, style term.Style) {
		if last := len(spans) - 1; last >= 0 && spans[last].style == style {
			spans[last].text += line[:n]
		} else {
			spans = append(spans, span{text: line[:n], style: style})
		}
		line = line[n:]
	}
	for line != "" {
		if h.until != "" {
			end := strings.Index(line, h.until)
			if end < 0 {
				add(len(line), h.style)
				break
			}
			n := end + len(h.until)
			style := h.style
			h.until = ""
			add(n, style)
			continue
		}
		if hasAnyPrefix(line, h.language.comments) {
			add(len(line), h.theme.Comment)
			break
		}
		if n := h.beginLong(line); n > 0 {
			add(n, h.style)
			continue
		}
		if strings.IndexByte(h.language.quotes, line[0]) >= 0 {
			n := quotedLength(line)
			style := h.theme.Text
			if h.language.keys && strings.HasPrefix(strings.TrimLeft(line[n:], " "), ":") {
				style = h.theme.Name
			}
			add(n, style)
			continue
		}
		word := wordPattern().FindString(line)
		if word == "" {
			_, n := utf8.DecodeRuneInString(line)
			add(n, "")
			continue
		}
		add(len(word), h.wordStyle(word, line[len(word):]))
	}
	return spans
}

func hasAnyPrefix(line string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}

// beginLong returns the length of what begins a comment or a text of several lines, or 0.
func (h *highlighter) beginLong(line string) int {
	for _, b := range h.language.blocks {
		if strings.HasPrefix(line, b[0]) {
			h.until = b[1]
			h.style = h.theme.Comment
			return len(b[0])
		}
	}
	for _, quote := range h.language.long {
		if strings.HasPrefix(line, quote) {
			h.until = quote
			h.style = h.theme.Text
			return len(quote)
		}
	}
	return 0
}

// quotedLength returns the length of the text at the beginning of a line, with its quotes.
func quotedLength(line string) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[0]:
			return i + 1
		}
	}
	return len(line)
}

func (h *highlighter) wordStyle(word, after string) term.Style {
	switch {
	case h.language.quotes == "" && len(h.keywords) == 0:
		return ""
	case word[0] >= '0' && word[0] <= '9':
		return h.theme.Text
	case h.language.keys && strings.HasPrefix(after, ":"):
		return h.theme.Name
	case slices.Contains(h.keywords, word), slices.Contains(h.keywords, strings.ToLower(word)) && strings.ToUpper(word) == word:
		return h.theme.Keyword
	}
	return ""
}

func (h *highlighter) diffStyle(line string) term.Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return h.theme.Added
	case strings.HasPrefix(line, "-"):
		return h.theme.Removed
	case strings.HasPrefix(line, "@@"):
		return h.theme.Hunk
	}
	return ""
}
