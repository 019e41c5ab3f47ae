package markdown

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
)

const (
	maxColumns = 100       // a line of text is not longer, however wide the terminal is
	minColumns = 8         // narrower terminals get lines of this length
	maxDepth   = 16        // of nested quotes and lists; deeper ones are shown as they are written
	maxBlock   = 256 << 10 // bytes of a block; a larger one is shown as it is written
)

// A Renderer shows Markdown. It has no state: its methods may be called concurrently.
type Renderer struct {
	Width int // columns of the terminal; 0 is 80
	Theme Theme
	Links bool // the terminal shows links (OSC 8); otherwise an address follows its text
	// Fill makes a line break in a paragraph a blank, as in files whose lines have a fixed length; models write lines
	// as they want them.
	Fill bool
}

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify)).Parser()

// deepPattern matches a line that opens more quotes and lists than a person writes: the parser would take long for it.
var deepPattern = pattern.CompileLater(`(?m)^(?:[ \t]*(?:[>*+-]|[0-9]{1,9}[.)])){40}`)

// RenderText returns the lines of a text, each with a line break. There is an empty line between two blocks.
func (r *Renderer) RenderText(source string) string {
	s := NewStream(r)
	return s.AddText(source) + s.Close()
}

// renderBlocks returns the lines of blocks that are complete.
func (r *Renderer) renderBlocks(source string) []string {
	width := r.columns()
	source = term.CleanText(source)
	if len(source) > maxBlock || deepPattern().MatchString(source) {
		return wrapSpans(plainSpans(source), width)
	}
	p := &page{renderer: r, source: []byte(source)}
	return p.renderChildren(parser.Parse(text.NewReader(p.source)), width, 0, false)
}

// columns returns the width of a line.
func (r *Renderer) columns() int {
	return max(minColumns, min(cmp.Or(r.Width, 80), maxColumns))
}

// A page is one piece of Markdown on its way to lines.
type page struct {
	renderer *Renderer
	source   []byte
}

// renderChildren returns the lines of the blocks in a node. Between two blocks is an empty line, unless tight is true.
func (p *page) renderChildren(n ast.Node, width, depth int, tight bool) []string {
	var lines []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		block := p.renderBlock(c, width, depth)
		if len(block) == 0 {
			continue
		}
		if len(lines) > 0 && !tight {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

func (p *page) renderBlock(n ast.Node, width, depth int) []string {
	theme := p.renderer.Theme
	width = max(width, minColumns)
	if depth > maxDepth {
		return wrapSpans(plainSpans(strings.TrimRight(p.blockText(n), "\n")), width)
	}
	switch n := n.(type) {
	case *ast.Heading:
		style := theme.heading(n.Level)
		return wrapSpans(p.inlineSpans(n, span{style: style}), width)
	case *ast.ThematicBreak:
		return []string{paintText(theme.Rule, strings.Repeat("─", width))}
	case *ast.FencedCodeBlock:
		return p.renderCode(string(n.Language(p.source)), p.blockText(n), width)
	case *ast.CodeBlock:
		return p.renderCode("", p.blockText(n), width)
	case *ast.Blockquote:
		return prefixLines(p.renderChildren(n, width-2, depth+1, false), paintText(theme.Quote, "▌ "), paintText(theme.Quote, "▌ "))
	case *ast.List:
		return p.renderList(n, width, depth)
	case *extast.Table:
		return p.renderTable(n, width)
	case *ast.HTMLBlock:
		return wrapSpans(plainSpans(strings.TrimRight(p.blockText(n), "\n")), width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrapSpans(p.inlineSpans(n, span{}), width)
	}
	return p.renderChildren(n, width, depth, false)
}

// blockText returns the source of a block, and of those in it.
func (p *page) blockText(n ast.Node) string {
	var b strings.Builder
	if n.Type() == ast.TypeBlock {
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			b.Write(line.Value(p.source))
		}
		if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
			b.Write(h.ClosureLine.Value(p.source))
		}
	}
	if b.Len() == 0 {
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if c.Type() == ast.TypeBlock {
				b.WriteString(p.blockText(c) + "\n")
			}
		}
	}
	return b.String()
}

func (p *page) renderCode(language, code string, width int) []string {
	h := newHighlighter(p.renderer.Theme, language)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(code, "\n"), "\n") {
		lines = append(lines, h.renderLine(line, width)...)
	}
	return lines
}

func (p *page) renderList(list *ast.List, width, depth int) []string {
	var lines []string
	number := list.Start
	for c := list.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		item := p.renderChildren(c, width-len([]rune(mark)), depth+1, list.IsTight)
		if len(item) == 0 {
			item = []string{""}
		}
		if len(lines) > 0 && !list.IsTight {
			lines = append(lines, "")
		}
		theme := p.renderer.Theme
		lines = append(lines, prefixLines(item, paintText(theme.Marker, mark), strings.Repeat(" ", len([]rune(mark))))...)
	}
	return lines
}

// prefixLines puts first before the first line, and rest before all others.
func prefixLines(lines []string, first, rest string) []string {
	prefixed := make([]string, len(lines))
	for i, line := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		if line == "" {
			prefix = strings.TrimRight(prefix, " ")
		}
		prefixed[i] = prefix + line
	}
	return prefixed
}

// inlineSpans returns the text in a node, in the style of outer and what the text itself asks for.
func (p *page) inlineSpans(n ast.Node, outer span) []span {
	theme := p.renderer.Theme
	var spans []span
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			spans = append(spans, outer.withText(string(c.Value(p.source))))
			switch {
			case c.SoftLineBreak() && p.renderer.Fill:
				spans = append(spans, outer.withText(" "))
			case c.HardLineBreak() || c.SoftLineBreak():
				spans = append(spans, outer.withText("\n"))
			}
		case *ast.String:
			spans = append(spans, outer.withText(string(c.Value)))
		case *ast.CodeSpan:
			spans = append(spans, p.inlineSpans(c, outer.withStyle(theme.Code))...)
		case *ast.Emphasis:
			style := theme.Emphasis
			if c.Level > 1 {
				style = theme.Strong
			}
			spans = append(spans, p.inlineSpans(c, outer.withStyle(style))...)
		case *extast.Strikethrough:
			spans = append(spans, p.inlineSpans(c, outer.withStyle(theme.Deleted))...)
		case *extast.TaskCheckBox:
			box := "☐ "
			if c.IsChecked {
				box = "☑ "
			}
			spans = append(spans, outer.withText(box))
		case *ast.Link:
			spans = append(spans, p.linkSpans(p.inlineSpans(c, outer.withStyle(theme.Link)), string(c.Destination), outer)...)
		case *ast.AutoLink:
			label := string(c.Label(p.source))
			spans = append(spans, p.linkSpans([]span{outer.withStyle(theme.Link).withText(label)}, string(c.URL(p.source)), outer)...)
		case *ast.Image:
			alt := p.inlineSpans(c, outer)
			spans = append(append(append(spans, outer.withText("[image: ")), alt...), outer.withText("] ("+string(c.Destination)+")"))
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				segment := c.Segments.At(i)
				spans = append(spans, outer.withText(string(segment.Value(p.source))))
			}
		default:
			spans = append(spans, p.inlineSpans(c, outer)...)
		}
	}
	return spans
}

// linkSpans returns the text of a link with its address: as a link if the terminal shows links and the reader sees
// where it leads, otherwise behind the text.
func (p *page) linkSpans(label []span, address string, outer span) []span {
	shown := joinTexts(label)
	target, ok := linkTarget(address)
	if ok && p.renderer.Links {
		for i := range label {
			label[i].link = target
		}
	}
	if shown == address || "mailto:"+shown == address || ok && p.renderer.Links && !looksLikeAddress(shown) {
		return label
	}
	return append(label, outer.withText(" ("+address+")"))
}

// linkTarget returns the address of a link as a terminal may get it. ok is false if the link is of another kind than a
// web page or a mail address, or is too long.
func linkTarget(address string) (target string, ok bool) {
	const longest = 2000
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" || len(address) > longest {
		return "", false
	}
	return u.String(), true
}

// looksLikeAddress reports whether the text of a link may be taken for the address that it leads to.
func looksLikeAddress(shown string) bool {
	return strings.Contains(shown, "://") || !strings.Contains(shown, " ") && strings.Contains(shown, ".")
}
