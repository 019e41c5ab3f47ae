// Package split cuts text into chunks of a bounded size at the best places there are: between paragraphs, else between lines, words and
// characters, and in source code and markup before the constructs of the language.
//
//	chunks := split.Text(text, split.Options{Size: 1000, Overlap: 50, Separators: split.Separators("md")})
package split

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options say where and how often to cut.
type Options struct {
	// Size is the most bytes of a chunk; zero or less: 1000. Text that no separator divides stays whole, so a chunk may be longer only
	// where Separators does not end with the empty one.
	Size int
	// Overlap is how many bytes of a chunk the next one may repeat, at most Size; zero: none.
	Overlap int
	// Separators are tried in order; nil: those of plain text.
	Separators []string
}

// DefaultSize is the size of chunks where [Options.Size] is not set.
const DefaultSize = 1000

// Text returns the chunks of text in order, without the white space around each. There are none where text is blank. It is a pure
// function, safe for concurrent use.
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
	s.cut(text, o.Separators)
	return s.chunks
}

type splitter struct {
	size, overlap int
	keep          bool // separators begin the piece that follows them
	chunks        []string
}

// cut divides text at the first separator that occurs, and what is still too long at those after it.
func (s *splitter) cut(text string, separators []string) {
	sep, rest := choose(text, separators)
	glue := sep
	if s.keep {
		glue = ""
	}
	var small []string
	for _, piece := range s.pieces(text, sep) {
		if len(piece) < s.size {
			small = append(small, piece)
			continue
		}
		s.merge(small, glue)
		small = small[:0]
		if len(rest) == 0 {
			s.emit(piece)
		} else {
			s.cut(piece, rest)
		}
	}
	s.merge(small, glue)
}

// choose returns the first separator in text and those that come after it. Without any, the last one stands for all.
func choose(text string, separators []string) (sep string, rest []string) {
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

// pieces divides text at every sep, without empty pieces.
func (s *splitter) pieces(text, sep string) (all []string) {
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
				end, next = i, i+len(sep)
			}
		}
		if end > 0 {
			all = append(all, text[:end])
		}
		text = text[next:]
	}
	return all
}

// merge joins neighbours for as long as they fit, and begins each chunk with the end of the one before it, as far as the overlap goes.
func (s *splitter) merge(pieces []string, glue string) {
	first, total := 0, 0 // the chunk under way is pieces[first:i]
	for i, p := range pieces {
		tooLong := func() bool { return total+len(p)+(i-first)*len(glue) > s.size }
		if tooLong() && i > first {
			s.emit(strings.Join(pieces[first:i], glue))
			for total > s.overlap || tooLong() && total > 0 {
				total -= len(pieces[first])
				first++
			}
		}
		total += len(p)
	}
	s.emit(strings.Join(pieces[first:], glue))
}

func (s *splitter) emit(chunk string) {
	if chunk = strings.TrimSpace(chunk); chunk != "" {
		s.chunks = append(s.chunks, chunk)
	}
}
