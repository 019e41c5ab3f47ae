package load

import (
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of one part of a page.
const (
	partBytes  = 512 << 10 // bytes after which a part ends before the next block
	partTokens = 10_000    // tags and texts after which it ends likewise
	partSlack  = 2         // times these limits after which it ends before any tag
	maxOpen    = 200       // deeper elements are left out, but not their contents
)

// eachPagePart calls do for each part of a page in order. A part begins with the start tags of all elements that are
// open at this point. It keeps only the attributes that matter: an element that is not shown has the attribute hidden.
func eachPagePart(page string, do func(part string) error) error {
	z := newTokenizer(page)
	var p pagePart
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			if err := z.Err(); errors.Is(err, html.ErrBufferExceeded) {
				return errLargeToken
			} else if !errors.Is(err, io.EOF) {
				return err
			}
			return do(p.out.String())
		case html.TextToken:
			p.out.Write(z.Raw())
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := atom.Lookup(name)
			if tag == atom.Script || tag == atom.Style {
				for kind == html.StartTagToken && z.Next() == html.TextToken {
				}
				continue
			}
			open := tagText(z, tag, string(name), more)
			if p.isFull(tag) {
				if err := do(p.out.String()); err != nil {
					return err
				}
				p.startNext()
			}
			p.startElement(tag, open)
		case html.EndTagToken:
			name, _ := z.TagName()
			p.endElement(atom.Lookup(name))
		}
		p.tokens++
	}
}

// tagText writes a start tag with the attributes that matter.
func tagText(z *html.Tokenizer, tag atom.Atom, name string, more bool) string {
	var attributes string
	hidden := false
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		text := string(value[:min(len(value), 4096)])
		switch string(key) {
		case "hidden":
			hidden = hidden || text != "until-found"
		case "aria-hidden":
			hidden = hidden || text == "true"
		case "style":
			style := strings.ToLower(strings.ReplaceAll(text, " ", ""))
			hidden = hidden || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
		case "class":
			hidden = hidden || tag == atom.A && slices.Contains(strings.Fields(text), "headerlink")
		case "alt":
			if tag == atom.Img {
				attributes = ` alt="` + html.EscapeString(text) + `"`
			}
		}
	}
	if hidden {
		attributes = " hidden"
	}
	if tag != 0 {
		name = tag.String()
	}
	return "<" + name + attributes + ">"
}

// A pagePart is a part of a page that is growing.
type pagePart struct {
	out    strings.Builder
	tokens int
	open   []openElement
}

// An openElement is an element whose end tag was not read yet.
type openElement struct {
	tag  atom.Atom
	text string // its start tag
}

var (
	blockTags = []atom.Atom{atom.P, atom.Div, atom.Section, atom.Article, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table,
		atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.Blockquote}
	wholeTags = []atom.Atom{atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}
	voidTags  = []atom.Atom{atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param,
		atom.Source, atom.Track, atom.Wbr}
	// Each of these elements ends where the next one of its kind begins.
	selfEnding = []atom.Atom{atom.P, atom.Li, atom.Td, atom.Th, atom.Tr, atom.Dt, atom.Dd, atom.Option, atom.Tbody}
)

// isFull reports whether the part ends before an element.
func (p *pagePart) isFull(next atom.Atom) bool {
	size := max(p.out.Len()/(partBytes/100), p.tokens/(partTokens/100)) // in hundredths
	if size < 100 || size >= 100*partSlack {
		return size >= 100
	}
	return slices.Contains(blockTags, next) &&
		!slices.ContainsFunc(p.open, func(o openElement) bool { return o.tag != atom.P && slices.Contains(wholeTags, o.tag) })
}

// startNext begins the next part.
func (p *pagePart) startNext() {
	p.out = strings.Builder{}
	p.tokens = 0
	for _, o := range p.open {
		p.out.WriteString(o.text)
	}
}

func (p *pagePart) startElement(tag atom.Atom, text string) {
	if slices.Contains(voidTags, tag) {
		p.out.WriteString(text)
		return
	}
	if slices.Contains(selfEnding, tag) {
		for i := len(p.open) - 1; i >= 0; i-- {
			if p.open[i].tag == tag {
				p.open = p.open[:i]
				break
			}
			if o := p.open[i].tag; o == atom.Table || o == atom.Ul || o == atom.Ol || o == atom.Dl || o == atom.Div {
				break
			}
		}
	}
	if tag == 0 || len(p.open) >= maxOpen {
		p.out.WriteByte(' ') // keeps the words on both sides separate
		return
	}
	p.open = append(p.open, openElement{tag, text})
	p.out.WriteString(text)
}

func (p *pagePart) endElement(tag atom.Atom) {
	for i := len(p.open) - 1; i >= 0; i-- {
		if p.open[i].tag == tag {
			p.open = p.open[:i]
			p.out.WriteString("</" + tag.String() + ">")
			return
		}
	}
}
