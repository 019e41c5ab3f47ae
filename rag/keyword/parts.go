package keyword

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// partMark begins the token of a part of a name. No word contains it.
const partMark = "/"

// partWeight is how much a part of a name counts where a word counts one.
const partWeight = 0.5

// PartOf returns the token of a word as a part of a name, as [Tokenizer.Terms] has it.
func PartOf(word string) string { return partMark + word }

// IsPart reports whether a token is a part of a name.
func IsPart(token string) bool { return strings.HasPrefix(token, partMark) }

// Terms returns the tokens of a text with those of the parts of its names: of os.path.join also os, path and join, of
// getUserById get and user, of HTTPServer http and server, of 3.11.7 also 3.11, of e-mail also email, and pairs of
// neighbours of what is written without spaces. Parts come after the word that they are of, each as PartOf.
func (t *Tokenizer) Terms(text string) (all []string) {
	var joined []string // words with a hyphen between each two
	before := rune(0)   // the character of its own that ends where the word begins
	left := -1          // bytes of the folded text after before
	t.eachWord(text, func(word, rest string) {
		whole := t.stemWord(strings.ToLower(word))
		if whole != "" {
			all = append(all, whole)
		}
		addPart := func(part string) {
			if utf8.RuneCountInString(part) < 2 {
				return
			}
			if stem := t.stemWord(strings.ToLower(part)); stem != "" && stem != whole {
				all = append(all, PartOf(stem))
			}
		}
		first, _ := utf8.DecodeRuneInString(word)
		switch {
		case isOwnWord(first):
			if left == len(word)+len(rest) {
				addPart(string(before) + word)
			}
			before = first
			left = len(rest)
		case first >= utf8.RuneSelf && unicode.In(first, unspaced...):
			addPairs(word, addPart)
		case isName(word):
			for _, part := range splitName(word) {
				addPart(part)
			}
		}
		joined = append(joined, word)
		if !isHyphenBeforeLetter(rest) {
			if len(joined) == 2 && isPlain(joined[0]) && isPlain(joined[1]) {
				addPart(joined[0] + joined[1])
			}
			joined = joined[:0]
		}
	})
	return all
}

// unspaced are scripts whose words stand without spaces between them, or with endings that belong to them.
var unspaced = []*unicode.RangeTable{unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// addPairs adds each two neighbours of a word of more than two characters.
func addPairs(word string, add func(string)) {
	runes := []rune(norm.NFC.String(word))
	if len(runes) < 3 {
		return
	}
	for i := range runes[1:] {
		add(norm.NFKD.String(string(runes[i : i+2]))) // as words are folded
	}
}

// isHyphenBeforeLetter reports whether a text begins with a hyphen and a letter.
func isHyphenBeforeLetter(text string) bool {
	after, ok := strings.CutPrefix(text, "-")
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRuneInString(after)
	return isLetter(r)
}

// isPlain reports whether a word consists of letters.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !isLetter(r) })
}

// isName reports whether a word may have parts.
func isName(word string) bool {
	for i, r := range word {
		if i > 0 && (unicode.IsUpper(r) || isDigit(r)) || r == '.' || r == '_' || r == ':' || i == 0 && isDigit(r) {
			return true
		}
	}
	return false
}

// splitName returns the parts of a name; nil: it has none. A number with points is one part, and so are its first two
// numbers if it has more.
func splitName(word string) (parts []string) {
	runes := []rune(word)
	start := 0
	end := func(at int) {
		if part := strings.Trim(string(runes[start:at]), "._:,;'"); part != "" {
			parts = append(parts, part)
			if numbers := strings.Split(part, "."); len(numbers) > 2 && isDigit(runes[start]) {
				parts = append(parts, numbers[0]+"."+numbers[1])
			}
		}
		start = at
	}
	for i := 1; i < len(runes); i++ {
		if isPartStart(runes, i) {
			end(i)
		}
	}
	if start > 0 || slices.Contains(runes, '.') {
		end(len(runes))
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == word })
}

// isPartStart reports whether a part of a name begins at i, which is not the first character.
func isPartStart(runes []rune, i int) bool {
	before := runes[i-1]
	r := runes[i]
	switch {
	case before == '_', before == ':':
		return true
	case before == '.':
		return !isDigit(r) || i < 2 || !isDigit(runes[i-2])
	case unicode.IsUpper(r) && unicode.IsUpper(before):
		return i+1 < len(runes) && unicode.IsLower(runes[i+1]) && string(runes[i+1:]) != "s" // not the plural of URL
	case unicode.IsUpper(r):
		return before != '\''
	case isDigit(r):
		return isLetter(before)
	}
	return isDigit(before) && isLetter(r)
}
