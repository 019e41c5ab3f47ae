// Package keyword ranks texts by the words that they share with a query: English words without their endings, weighted
// by BM25.
package keyword

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokens returns the words of text that count for a search, in order: in ASCII if they have an ASCII form, in lower
// case, without stop words, and without their English endings.
func Tokens(text string) []string {
	var t Tokenizer
	return t.Tokens(text)
}

// A Tokenizer makes tokens and remembers the stems of the words it has seen, which makes it several times faster over
// many texts. The zero value is ready for use. It is not safe for concurrent use.
type Tokenizer struct {
	stems map[string]string // "": a stop word
}

// remembered and longestRemembered limit the memory of a Tokenizer: how many words it remembers, and how many bytes
// each of them may have.
const (
	remembered        = 200_000
	longestRemembered = 64
)

// Tokens is like the function Tokens.
func (t *Tokenizer) Tokens(text string) (all []string) {
	t.eachWord(text, func(word, rest string) {
		if stem := t.stemWord(strings.ToLower(word)); stem != "" {
			all = append(all, stem)
		}
	})
	return all
}

// eachWord calls visit with each word of text, folded but for its case, and the folded text after it.
func (t *Tokenizer) eachWord(text string, visit func(word, rest string)) {
	if t.stems == nil || len(t.stems) > remembered {
		t.stems = map[string]string{}
	}
	text = foldText(text)
	for text != "" {
		word, rest := nextWord(text)
		text = rest
		if word = strings.Trim(word, "_"); word != "" { // marks of emphasis, not of a name
			visit(word, rest)
		}
	}
}

// stemWord returns a word in lower case without its ending; "": it is a stop word.
func (t *Tokenizer) stemWord(word string) string {
	stem, ok := t.stems[word]
	if ok {
		return stem
	}
	if !stopWords[word] {
		stem = Stem(word)
	}
	if len(word) <= longestRemembered {
		t.stems[strings.Clone(word)] = strings.Clone(stem)
	}
	return stem
}

// foldText returns text with letters replaced by their ASCII forms. Small letters stay small, and capitals capitals.
func foldText(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range norm.NFKD.String(text) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r):
		case letters[unicode.ToLower(r)] != "":
			b.WriteString(letters[unicode.ToLower(r)])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// letters maps letters to ASCII forms that decomposition does not give.
var letters = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŋ': "ng", 'ĸ': "k",
	'‘': "'", '’': "'", 'ʼ': "'", '–': "-", '—': "-", '‐': "-", '‑': "-",
}

// nextWord returns the first word of text and the text after it. The word is empty if text begins with another
// character.
func nextWord(text string) (word, rest string) {
	first, size := utf8.DecodeRuneInString(text)
	if !isWord(first) {
		return "", text[size:]
	}
	if isOwnWord(first) {
		return text[:size], text[size:]
	}
	end := size
	last := first
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if isWord(r) && !isOwnWord(r) {
			last = r
			end = end + n
			continue
		}
		after, m := utf8.DecodeRuneInString(text[end+n:])
		if !isInsideWord(last, r, after) {
			break
		}
		last = after
		end = end + n + m
	}
	return text[:end], text[end:]
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// isOwnWord reports whether a character is a word by itself, as in scripts that put no spaces between words.
func isOwnWord(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana)
}

// isInsideWord reports whether r is inside a word, as in don't, e.g. and 1,000.50.
func isInsideWord(before, r, after rune) bool {
	switch r {
	case '.', '\'':
		return isLetter(before) && isLetter(after) || isDigit(before) && isDigit(after)
	case ':':
		return isLetter(before) && isLetter(after)
	case ',', ';':
		return isDigit(before) && isDigit(after)
	}
	return false
}

func isLetter(r rune) bool { return r != utf8.RuneError && unicode.IsLetter(r) && !isOwnWord(r) }
func isDigit(r rune) bool  { return unicode.IsDigit(r) }
