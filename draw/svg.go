package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
)

// fontFamily begins with the font with which texts are measured; the others are not wider.
// A viewer that lacks the first font uses one of the others, and the text still fits its box.
// An SVG has no fonts inside, which would make it large; text stays text, which a page can search.
const fontFamily = "Go, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, sans-serif"

// WriteSVG writes s as a picture. Nodes carry data-node (the names from the outermost graph on, with slashes) and
// data-kind, edges data-from and data-to, for pages that refer to them, and data-members as in [Options].
// With the theme [Auto] the picture holds the light colours and a style that replaces them where
// the page is dark.
func WriteSVG(w io.Writer, s graph.Structure, o Options) error {
	sc, err := buildScene(s, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	v := svg{w: b, theme: o.Theme}
	v.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" font-family="%s">`+"\n",
		formatNumber(sc.w), formatNumber(sc.h), fontFamily)
	if sc.title != "" {
		v.printf("<title>%s</title>\n", escapeXML(sc.title))
	}
	if o.Theme == Auto {
		// Each colour of the light theme has one rule, for fills and for lines.
		v.printf("<style>@media (prefers-color-scheme: dark) {\n")
		for _, light := range slices.Sorted(maps.Keys(darkColors)) {
			v.printf("[fill=\"%s\"]{fill:%s}[stroke=\"%[1]s\"]{stroke:%[2]s}\n", light, darkColors[light])
		}
		v.printf("}</style>\n")
	}
	v.printf(`<rect width="100%%" height="100%%" fill="%s"/>`+"\n", v.color(paperColor))
	for _, g := range sc.groups {
		v.writeGroup(g)
	}
	v.printf("</svg>\n")
	return b.Flush()
}

// svg writes the elements. The buffered writer keeps an error of w until Flush.
type svg struct {
	w     *bufio.Writer
	theme Theme
}

// color returns a colour of the light theme in the theme of the picture. With Auto the page chooses.
func (v svg) color(light string) string {
	if v.theme == Auto {
		return light
	}
	return v.theme.colorIn(light)
}

// printf writes formatted text. An error of the writer is reported by Flush.
func (v svg) printf(format string, args ...any) { fmt.Fprintf(v.w, format, args...) }

// writeGroup writes one node, edge or frame as an element g, with the attributes for pages that
// refer to it. Its tip is a title, which browsers show when the pointer rests on it.
func (v svg) writeGroup(g group) {
	v.printf(`<g class="%s"`, g.class)
	for _, a := range g.data {
		v.printf(` %s="%s"`, a.key, escapeXML(a.value))
	}
	v.printf(">\n")
	if g.tip != "" {
		v.printf("<title>%s</title>\n", escapeXML(g.tip))
	}
	for _, f := range g.figs {
		v.writeFigure(f)
	}
	for _, t := range g.texts {
		v.writeText(t)
	}
	v.printf("</g>\n")
}

// writeFigure writes a filled or stroked path.
func (v svg) writeFigure(f figure) {
	fill := "none"
	if f.fill != "" {
		fill = v.color(f.fill)
	}
	v.printf(`<path d="%s" fill="%s"`, pathData(f.path), fill)
	if f.stroke != "" {
		v.printf(` stroke="%s" stroke-width="%s"`, v.color(f.stroke), formatNumber(f.width))
	}
	if f.dash != nil {
		v.printf(` stroke-dasharray="%s"`, dashText(edgeStyle{dash: f.dash}))
	}
	if f.round {
		v.printf(` stroke-linecap="round"`)
	}
	v.printf("/>\n")
}

// writeText writes one line of text. Spaces are kept: a label may have several in a row.
func (v svg) writeText(t caption) {
	anchor := ` text-anchor="middle"`
	if t.left {
		anchor = ""
	}
	v.printf(`<text x="%s" y="%s"%s font-size="%d" font-weight="%s" fill="%s" xml:space="preserve">%s</text>`+"\n",
		formatNumber(t.at.x), formatNumber(t.at.y), anchor, t.style.size, t.style.face.weight, v.color(t.color), escapeXML(t.text))
}

// pathData writes a path in the notation of SVG.
// A number is written with at most one decimal, so that the same structure gives the same bytes on
// every machine.
func pathData(p path) string {
	var b strings.Builder
	for _, o := range p {
		b.WriteByte(o.cmd)
		// This is how many points each command has in SVG.
		n := map[byte]int{'M': 1, 'L': 1, 'C': 3}[o.cmd]
		for i, q := range o.p[:n] {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(formatNumber(q.x) + "," + formatNumber(q.y))
		}
	}
	return b.String()
}

// dashText writes the lengths of strokes and gaps.
func dashText(s edgeStyle) string {
	var parts []string
	for _, d := range s.dash {
		parts = append(parts, formatNumber(d))
	}
	return strings.Join(parts, " ")
}

// formatNumber writes a coordinate with at most one decimal.
func formatNumber(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10+0, 'f', -1, 64)
}

// escapeXML makes text safe between tags and in quotes.
func escapeXML(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a strings.Builder does not fail
	}
	return b.String()
}
