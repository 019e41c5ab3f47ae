package termtest

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// A Recording is an animated picture of a terminal, made of some of its screens.
type Recording struct {
	Cols, Rows int
	Title      string
	frames     []shownScreen
}

// A shownScreen is a screen that is shown for a while.
type shownScreen struct {
	lines   []string // SVG elements
	seconds float64
}

// The measures of a character, in pixels.
const (
	charWidth, lineHeight = 8.4, 18
	margin                = 14
)

// AddFrame adds what a terminal shows after everything that was written to it, for some seconds.
func (r *Recording) AddFrame(written string, seconds float64) {
	v := NewTerminal(r.Cols, r.Rows)
	v.WriteText(strings.ReplaceAll(written, "\r\n", "\n"))
	f := shownScreen{seconds: seconds}
	last := len(v.lines)
	for last > 0 && strings.TrimSpace(textOf(v.lines[last-1])) == "" {
		last--
	}
	first := max(0, last-r.Rows)
	for i, line := range v.lines[first:last] {
		f.lines = append(f.lines, svgLine(line, margin+(i+1)*lineHeight)...)
	}
	r.frames = append(r.frames, f)
}

// svgLine returns the texts of a line, one for each style.
func svgLine(line []cell, y int) (texts []string) {
	for from := 0; from < len(line); {
		to := from + 1
		for to < len(line) && line[to].style == line[from].style {
			to++
		}
		if text := strings.TrimRight(textOf(line[from:to]), " "); text != "" {
			trimmed := strings.TrimLeft(text, " ")
			x := margin + float64(from+len(text)-len(trimmed))*charWidth
			texts = append(texts, fmt.Sprintf(`<text x="%.1f" y="%d"%s>%s</text>`, x, y, svgClass(line[from].style), html.EscapeString(trimmed)))
		}
		from = to
	}
	return texts
}

// svgColors are the classes of colours.
var svgColors = map[string]string{"31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan", "91": "red", "92": "green", "95": "magenta", "96": "cyan"}

// svgClass returns the attribute for a style.
func svgClass(style string) string {
	var classes []string
	for n := range strings.SplitSeq(style, ";") {
		name := map[string]string{"1": "bold", "2": "dim", "3": "italic"}[n]
		if name == "" {
			name = svgColors[n]
		}
		if name != "" && !slices.Contains(classes, name) {
			classes = append(classes, name)
		}
	}
	if classes == nil {
		return ""
	}
	return ` class="` + strings.Join(classes, " ") + `"`
}

// SVG returns the recording, which plays again and again. It needs no script, and shows the last screen to readers who
// want no motion.
func (r *Recording) SVG() string {
	total := 0.0
	for _, f := range r.frames {
		total += f.seconds
	}
	width := float64(r.Cols)*charWidth + 2*margin
	height := r.Rows*lineHeight + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(r.Title))
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", html.EscapeString(r.Title))
	b.WriteString("text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}.bold{font-weight:bold}.italic{font-style:italic}.dim{fill:#7b8596}" +
		".red{fill:#f47067}.green{fill:#8ddb8c}.yellow{fill:#e0b84f}.blue{fill:#6cb6ff}.magenta{fill:#dcbdfb}.cyan{fill:#76d9e6}\n")
	at := 0.0
	for i, f := range r.frames {
		from := 100 * at / total
		to := 100 * (at + f.seconds) / total
		fmt.Fprintf(&b, "@keyframes f%d{0%%{opacity:0}%.2f%%{opacity:0}%.2f%%{opacity:1}%.2f%%{opacity:1}%.2f%%{opacity:0}100%%{opacity:0}}\n", i, max(0, from-0.01), from, to-0.01, min(100, to))
		fmt.Fprintf(&b, ".f%d{opacity:0;animation:f%d %.1fs step-end infinite}\n", i, i, total)
		at += f.seconds
	}
	fmt.Fprintf(&b, "@media (prefers-reduced-motion:reduce){g{animation:none!important}.f%d{opacity:1}}\n</style>\n", len(r.frames)-1)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#1f2430"/>`+"\n")
	for i, f := range r.frames {
		fmt.Fprintf(&b, "<g class=\"f%d\">%s</g>\n", i, strings.Join(f.lines, ""))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
