// Package split cuts text into chunks of a limited size at the best possible places: between paragraphs, otherwise
// between lines, words and characters, and in source code and markup before the constructs of the language.
//
//	chunks := split.Text(text, split.Options{Size: 1000, Overlap: 50, Separators: split.Separators("md")})
package split

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options say where and how often to cut.
type Options struct {
	// Size is the most bytes of a chunk; zero or less: 1000. Text that no separator divides stays whole, so a chunk may
	// be longer only where Separators does not end with the empty one.
	Size int
	// Overlap is how many bytes of a chunk the next one may repeat, at most Size; zero: none.
	Overlap int
	// Separators are tried in order; nil: those of plain text.
	Separators []string
}

// DefaultSize is the size of chunks where [Options.Size] is not set.
const DefaultSize = 1000

// Text returns the chunks of text in order, without the white space around each. It returns none if text is blank. It
// is a pure function, safe for concurrent use.
func Text(text string, o Options) []string {
	if o.Size <= 0 {
		o.Size = DefaultSize
	}
	if o.Separators == nil {
		o.Separators = plain
	}
	s := splitter{size: o.Size, overlap: max(0, o.Overlap)}
	s.keep = slices.ContainsFunc(o.Separators, func(sep string) bool {
		return strings.ContainsFunc(sep, func(r rune) bool { return !unicode.IsSpace(r) })
	})
	s.splitText(text, o.Separators)
	return s.chunks
}

type splitter struct {
	size, overlap int
	keep          bool // separators begin the piece that follows them
	chunks        []string
}

// splitText divides text at the first separator that occurs, and divides parts that are still too long at the
// separators after it.
func (s *splitter) splitText(text string, separators []string) {
	sep, rest := chooseSeparator(text, separators)
	m := merger{splitter: s, glue: sep}
	if s.keep {
		m.glue = ""
	}
	for piece := range s.splitPieces(text, sep) {
		if len(piece) < s.size {
			m.addPiece(piece)
			continue
		}
		m.flushChunk()
		if len(rest) == 0 {
			s.addChunk(piece)
		} else {
			s.splitText(piece, rest)
		}
	}
	m.flushChunk()
}

// chooseSeparator returns the first separator that text contains and the separators after it. If text contains none, it
// returns the last one.
func chooseSeparator(text string, separators []string) (sep string, rest []string) {
	for i, sep := range separators {
		if sep == "" {
			return "", nil
		}
		if strings.Contains(text, sep) {
			return sep, separators[i+1:]
		}
	}
	if n := len(separators); n > 0 {
		return separators[n-1], nil
	}
	return "", nil
}

// splitPieces yields the non-empty parts of text between every sep. It does not collect them: a text may have as many
// parts as letters.
func (s *splitter) splitPieces(text, sep string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := len(text)
			next := end
			switch {
			case sep == "":
				_, end = utf8.DecodeRuneInString(text)
				next = end
			case s.keep:
				from := 0
				if strings.HasPrefix(text, sep) {
					from = len(sep)
				}
				if i := strings.Index(text[from:], sep); i >= 0 {
					end = from + i
					next = end
				}
			default:
				if i := strings.Index(text, sep); i >= 0 {
					end = i
					next = i + len(sep)
				}
			}
			if end > 0 && !yield(text[:end]) {
				return
			}
			text = text[next:]
		}
	}
}

// A merger joins neighbouring pieces while they fit into a chunk, and begins each chunk with the end of the previous
// one, up to the length of the overlap.
type merger struct {
	*splitter
	glue   string
	pieces []string // of the chunk that is growing
	total  int      // bytes of pieces
}

func (m *merger) addPiece(piece string) {
	tooLong := func() bool { return m.total+len(piece)+len(m.pieces)*len(m.glue) > m.size }
	if tooLong() && len(m.pieces) > 0 {
		m.addChunk(strings.Join(m.pieces, m.glue))
		for m.total > m.overlap || tooLong() && m.total > 0 {
			m.total -= len(m.pieces[0])
			m.pieces = m.pieces[1:]
		}
	}
	m.pieces = append(m.pieces, piece)
	m.total += len(piece)
}

// flushChunk ends the current chunk.
func (m *merger) flushChunk() {
	m.addChunk(strings.Join(m.pieces, m.glue))
	m.pieces = m.pieces[:0]
	m.total = 0
}

// addChunk adds a chunk. It is a copy, so that a small one does not keep the whole text in memory.
func (s *splitter) addChunk(chunk string) {
	if chunk = strings.TrimSpace(chunk); chunk != "" {
		s.chunks = append(s.chunks, strings.Clone(chunk))
	}
}
