package load

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"unicode"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// pageReader is part of the hash of pages: a change of it makes the next build read them again.
const pageReader = "\x00html 3"

// pageText converts a page to Markdown. It leaves out parts that people do not read: scripts, navigation, hidden
// elements, signs that link to a place of the same page, and the targets of links. It converts one part of the page
// after the other and refuses a text of more than most bytes.
func pageText(page string, most int64) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	c.Register.TextTransformer(func(_ converter.Context, text string) string { return holdAngles.Replace(text) }, converter.PriorityEarly)
	for _, tag := range []string{"noscript", "template", "iframe", "nav", "svg"} {
		c.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	var out strings.Builder
	err := eachPagePart(page, func(part string) error {
		doc, err := html.Parse(strings.NewReader(part))
		if err != nil {
			return err
		}
		cleanPage(doc)
		text, err := c.ConvertNode(doc)
		if err != nil {
			return err
		}
		if out.Len() > 0 && len(text) > 0 {
			out.WriteString("\n\n")
		}
		if out.Write(text); int64(out.Len()) > most {
			return tooLarge(int64(out.Len()), most)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	text := releaseAngles.Replace(out.String())
	if title := titleOf(page); title != "" && !strings.Contains(text, "# "+title) {
		text = "# " + title + "\n\n" + text
	}
	return text, nil
}

// The converter would write these signs of a page as entities, which are no words. It gets other characters in their
// stead, which no text may contain.
var (
	holdAngles    = strings.NewReplacer("<", "\ufdd0", ">", "\ufdd1")
	releaseAngles = strings.NewReplacer("\ufdd0", "<", "\ufdd1", ">")
)

// cleanPage removes hidden elements and signs that are links. It replaces links by their contents and pictures by their
// descriptions.
func cleanPage(n *html.Node) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		switch {
		case child.Type == html.CommentNode:
			n.RemoveChild(child)
		case child.Type != html.ElementNode:
		case isHidden(child):
			n.RemoveChild(child)
		case child.DataAtom == atom.Img:
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: attributeValue(child, "alt")}, child)
			n.RemoveChild(child)
		case child.DataAtom == atom.A:
			cleanPage(child)
			if isSign(child) {
				n.RemoveChild(child)
				break
			}
			for c := child.FirstChild; c != nil; c = child.FirstChild {
				child.RemoveChild(c)
				n.InsertBefore(c, child)
			}
			n.RemoveChild(child)
		default:
			cleanPage(child)
		}
		child = next
	}
}

func attributeValue(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// isHidden reports whether a browser does not show the element. The large parts of a page are often hidden until a
// script shows them.
func isHidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Html, atom.Head, atom.Body, atom.Main, atom.Article:
		return false
	}
	return len(n.Attr) > 0 && n.Attr[0].Key == "hidden"
}

// isSign reports whether the text of the element holds no letter and no digit.
func isSign(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && strings.IndexFunc(d.Data, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) >= 0 {
			return false
		}
	}
	return true
}

// maxToken is the most bytes of one tag, or of the text between two tags.
const maxToken = 4 << 20

var errLargeToken = errors.New("a tag, a script, or the text between two tags has more than 4.0 MB; divide it, or leave it out")

// newTokenizer returns a tokenizer that reads a page within limited memory.
func newTokenizer(page string) *html.Tokenizer {
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(maxToken)
	return z
}

// titleOf returns the text of the first title element.
func titleOf(page string) string {
	z := newTokenizer(page)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken:
			if name, _ := z.TagName(); atom.Lookup(name) == atom.Title && z.Next() == html.TextToken {
				return strings.Join(strings.Fields(string(z.Text())), " ")
			}
		}
	}
}

// linksOf returns the addresses to which a page at base links, without their fragments.
func linksOf(page []byte, base *url.URL) (links []*url.URL) {
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(maxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return links
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom != atom.A {
				continue
			}
			for _, a := range t.Attr {
				if a.Key != "href" {
					continue
				}
				if u, err := base.Parse(strings.TrimSpace(a.Val)); err == nil {
					u.Fragment = ""
					u.RawFragment = ""
					links = append(links, u)
				}
			}
		}
	}
}
