package markdown

import (
	"strings"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
)

// A Stream shows Markdown that arrives in pieces. A block is returned once, when it is complete; code is returned line
// by line. A Stream is not safe for concurrent use.
type Stream struct {
	renderer *Renderer
	line     strings.Builder // the last line, which may not be complete
	block    strings.Builder // complete lines of the block that is not complete
	blank    bool            // the last of these lines is empty
	loose    bool            // the block may continue after an empty line: it is a list, or code by indentation
	fence    string          // what begins and ends the code that is open; empty: none is open
	indent   int             // of that code
	code     *highlighter
	started  bool // something was returned: an empty line separates the next block
}

// NewStream returns a stream without text.
func NewStream(r *Renderer) *Stream { return &Stream{renderer: r} }

// AddText adds a piece of the text. It returns the lines that are now final, each with a line break.
func (s *Stream) AddText(text string) string {
	var out strings.Builder
	for {
		line, rest, complete := strings.Cut(text, "\n")
		s.line.WriteString(line)
		if !complete {
			return out.String()
		}
		full := s.line.String()
		s.line.Reset()
		s.addLine(strings.TrimSuffix(full, "\r"), &out)
		text = rest
	}
}

// Close returns the lines of what is not complete yet. The stream can be used for the next text then.
func (s *Stream) Close() string {
	var out strings.Builder
	if last := s.line.String(); last != "" {
		s.addLine(last, &out)
	}
	s.flushBlock(&out)
	*s = Stream{renderer: s.renderer}
	return out.String()
}

// Pending returns the end of the text that is not final yet, as it would look now, in at most rows lines.
func (s *Stream) Pending(rows int) []string {
	source := lastPart(s.block.String(), s.line.String())
	var lines []string
	switch {
	case strings.TrimSpace(source) == "":
		return nil
	case s.fence != "":
		h := *s.code
		lines = h.renderLine(term.CleanText(source), s.renderer.columns())
	default:
		lines = s.renderer.renderBlocks(source)
	}
	return lines[max(0, len(lines)-rows):]
}

// lastPart returns the end of a text that is in two pieces: what does not fit on a screen is not formatted. The same
// beginning is removed while the text grows by some kilobytes, so that the lines which are shown stay the same.
func lastPart(block, line string) string {
	const most, step = 4 << 10, 2 << 10 // bytes
	cut := (len(block) + len(line) - most + step - 1) / step * step
	if cut <= 0 {
		return block + line
	}
	if cut >= len(block) {
		return strings.ToValidUTF8(line[cut-len(block):], "")
	}
	block = block[cut:]
	if at := strings.IndexByte(block, '\n'); at >= 0 {
		block = block[at+1:]
	}
	return strings.ToValidUTF8(block+line, "")
}

var (
	fencePattern = pattern.CompileLater("^ {0,3}(`{3,}|~{3,})[ \t]*([^`\\s]*)[^`]*$")
	listPattern  = pattern.CompileLater(`^ {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
	headPattern  = pattern.CompileLater(`^ {0,3}#{1,6}(?:[ \t]|$)`)
)

// addLine adds a complete line.
func (s *Stream) addLine(line string, out *strings.Builder) {
	if s.fence != "" {
		s.addCode(line, out)
		return
	}
	blank := strings.TrimSpace(line) == ""
	continues := s.block.Len() > 0 && (!s.blank || s.loose && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") || listPattern().MatchString(line)))
	switch {
	case blank && s.block.Len() == 0:
		return
	case blank:
		if !s.loose {
			s.flushBlock(out)
			return
		}
	case !continues:
		s.flushBlock(out)
	}
	if m := fencePattern().FindStringSubmatch(line); m != nil && !s.loose {
		s.flushBlock(out)
		s.openFence(line, m, out)
		return
	}
	if !blank && headPattern().MatchString(line) && !s.loose {
		s.flushBlock(out)
		s.block.WriteString(line + "\n")
		s.flushBlock(out)
		return
	}
	if s.block.Len() == 0 {
		s.loose = listPattern().MatchString(line)
	}
	s.block.WriteString(line + "\n")
	s.blank = blank
}

func (s *Stream) openFence(line string, match []string, out *strings.Builder) {
	s.separate(out)
	s.fence = match[1]
	s.indent = len(line) - len(strings.TrimLeft(line, " "))
	s.code = newHighlighter(s.renderer.Theme, match[2])
}

// addCode adds a line of the code that is open.
func (s *Stream) addCode(line string, out *strings.Builder) {
	end := strings.TrimSpace(line)
	if len(end) >= len(s.fence) && strings.Trim(end, s.fence[:1]) == "" {
		s.fence = ""
		s.code = nil
		return
	}
	cut := min(s.indent, len(line)-len(strings.TrimLeft(line, " ")))
	for _, l := range s.code.renderLine(term.CleanText(line[cut:]), s.renderer.columns()) {
		out.WriteString(l + "\n")
	}
	s.started = true
}

// flushBlock returns the block, which is complete.
func (s *Stream) flushBlock(out *strings.Builder) {
	source := s.block.String()
	s.block.Reset()
	s.blank = false
	s.loose = false
	if strings.TrimSpace(source) == "" {
		return
	}
	lines := s.renderer.renderBlocks(source)
	if len(lines) == 0 {
		return
	}
	s.separate(out)
	out.WriteString(strings.Join(lines, "\n") + "\n")
	s.started = true
}

// separate writes the empty line between two blocks.
func (s *Stream) separate(out *strings.Builder) {
	if s.started {
		out.WriteString("\n")
	}
}
