package load

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// pageText turns a page into Markdown, without what is not read on it.
func pageText(page string) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	for _, tag := range []string{"script", "style", "noscript", "template", "iframe", "nav", "svg"} {
		c.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	text, err := c.ConvertString(page)
	if err != nil {
		return "", err
	}
	if title := titleOf(page); title != "" && !strings.Contains(text, "# "+title) {
		text = "# " + title + "\n\n" + text
	}
	return text, nil
}

// titleOf is the text of the first title element.
func titleOf(page string) string {
	z := html.NewTokenizer(strings.NewReader(page))
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

// linksOf are the addresses that a page at base leads to, without their fragments.
func linksOf(page []byte, base *url.URL) (links []*url.URL) {
	z := html.NewTokenizer(bytes.NewReader(page))
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
					u.Fragment, u.RawFragment = "", ""
					links = append(links, u)
				}
			}
		}
	}
}
