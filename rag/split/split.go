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

// A Chunk is a part of a text.
type Chunk struct {
	Text string
	// Start and End are the bytes of the text between which the chunk stands. It may be shorter than what stands there:
	// separators that follow each other become one.
	Start, End int
}

// Text returns the texts of the chunks of text in order, without the white space around each. It returns none if text
// is blank. It is a pure function, safe for concurrent use.
func Text(text string, o Options) []string {
	var texts []string
	for _, c := range Chunks(text, o) {
		texts = append(texts, c.Text)
	}
	return texts
}

// Chunks is Text with the places of the chunks.
func Chunks(text string, o Options) []Chunk {
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
	s.splitText(piece{text, 0}, o.Separators)
	return s.chunks
}

type splitter struct {
	size, overlap int
	keep          bool // separators begin the piece that follows them
	chunks        []Chunk
}

// A piece is a part of the text that begins at a byte of it.
type piece struct {
	text string
	at   int
}

// splitText divides text at the first separator that occurs, and divides parts that are still too long at the
// separators after it.
func (s *splitter) splitText(whole piece, separators []string) {
	sep, rest := chooseSeparator(whole.text, separators)
	m := merger{splitter: s, glue: sep}
	if s.keep {
		m.glue = ""
	}
	for p := range s.splitPieces(whole, sep) {
		if len(p.text) < s.size {
			m.addPiece(p)
			continue
		}
		m.flushChunk()
		if len(rest) == 0 {
			s.addChunk(p.text, p, p)
		} else {
			s.splitText(p, rest)
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
func (s *splitter) splitPieces(whole piece, sep string) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		text := whole.text
		at := whole.at
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
			if end > 0 && !yield(piece{text[:end], at}) {
				return
			}
			at += next
			text = text[next:]
		}
	}
}

// A merger joins neighbouring pieces while they fit into a chunk, and begins each chunk with the end of the previous
// one, up to the length of the overlap.
type merger struct {
	*splitter
	glue   string
	pieces []piece // of the chunk that is growing
	total  int     // bytes of pieces
}

func (m *merger) addPiece(p piece) {
	tooLong := func() bool { return m.total+len(p.text)+len(m.pieces)*len(m.glue) > m.size }
	if tooLong() && len(m.pieces) > 0 {
		m.addPieces()
		for m.total > m.overlap || tooLong() && m.total > 0 {
			m.total -= len(m.pieces[0].text)
			m.pieces = m.pieces[1:]
		}
	}
	m.pieces = append(m.pieces, p)
	m.total += len(p.text)
}

// flushChunk ends the current chunk.
func (m *merger) flushChunk() {
	m.addPieces()
	m.pieces = m.pieces[:0]
	m.total = 0
}

// addPieces adds the pieces as a chunk.
func (m *merger) addPieces() {
	if len(m.pieces) == 0 {
		return
	}
	texts := make([]string, len(m.pieces))
	for i, p := range m.pieces {
		texts[i] = p.text
	}
	m.addChunk(strings.Join(texts, m.glue), m.pieces[0], m.pieces[len(m.pieces)-1])
}

// addChunk adds a chunk that reaches from one piece to another. It is a copy, so that a small one does not keep the
// whole text in memory.
func (s *splitter) addChunk(chunk string, first, last piece) {
	left := strings.TrimLeftFunc(chunk, unicode.IsSpace)
	text := strings.TrimSpace(left)
	if text == "" {
		return
	}
	s.chunks = append(s.chunks, Chunk{
		Text:  strings.Clone(text),
		Start: first.at + len(chunk) - len(left),
		End:   last.at + len(last.text) - (len(left) - len(text)),
	})
}
