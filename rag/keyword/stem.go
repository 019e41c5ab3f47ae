package keyword

import "strings"

// Stem returns a word in lower case without its English endings, by the rules of the Snowball project's English stemmer (Porter2).
// Letters outside a to z stay as they are.
func Stem(word string) string {
	if len(word) < 3 {
		return word
	}
	if s, ok := irregular[word]; ok {
		return s
	}
	w := newStemmer(word)
	w.removePossessive()
	if !invariant[string(w.b)] {
		w.removePlural()
		if !invariant[string(w.b)] {
			w.removePastSuffix()
			w.finalY()
			w.replaceEnding(longEndings, w.r1)
			w.replaceShortEndings()
			w.removeLastEnding()
			w.finalE()
		}
	}
	return strings.ReplaceAll(string(w.b), "Y", "y")
}

// irregular words have stems that no rule gives.
var irregular = map[string]string{
	"skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl", "ugly": "ugli",
	"early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas",
	"cosmos": "cosmos", "bias": "bias", "andes": "andes",
}

// invariant words look as if they had an ending.
var invariant = map[string]bool{
	"inning": true, "outing": true, "canning": true, "herring": true, "earring": true, "proceed": true, "exceed": true, "succeed": true,
}

// A stemmer reduces one word to its stem. A y that is a consonant is written Y.
type stemmer struct {
	b      []byte
	r1, r2 int // where the two regions begin in which endings must lie
}

func newStemmer(word string) *stemmer {
	w := &stemmer{b: []byte(strings.TrimPrefix(word, "'"))}
	for i, c := range w.b {
		if c == 'y' && (i == 0 || isVowel(w.b[i-1])) {
			w.b[i] = 'Y'
		}
	}
	w.r1 = len(w.b)
	for _, prefix := range []string{"gener", "commun", "arsen"} {
		if strings.HasPrefix(string(w.b), prefix) {
			w.r1 = len(prefix)
		}
	}
	if w.r1 == len(w.b) {
		w.r1 = w.regionStart(0)
	}
	w.r2 = w.regionStart(w.r1)
	return w
}

// regionStart returns the index after the first consonant that follows a vowel at or after from.
func (w *stemmer) regionStart(from int) int {
	for i := from + 1; i < len(w.b); i++ {
		if !isVowel(w.b[i]) && isVowel(w.b[i-1]) {
			return i + 1
		}
	}
	return len(w.b)
}

func isVowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

func (w *stemmer) hasSuffix(s string) bool { return strings.HasSuffix(string(w.b), s) }

// replaceSuffix replaces the last n bytes.
func (w *stemmer) replaceSuffix(n int, with string) { w.b = append(w.b[:len(w.b)-n], with...) }

// vowelBefore reports whether there is a vowel before index end.
func (w *stemmer) vowelBefore(end int) bool {
	for _, c := range w.b[:max(0, end)] {
		if isVowel(c) {
			return true
		}
	}
	return false
}

func (w *stemmer) removePossessive() {
	for _, s := range []string{"'s'", "'s", "'"} {
		if w.hasSuffix(s) {
			w.replaceSuffix(len(s), "")
			return
		}
	}
}

func (w *stemmer) removePlural() {
	n := len(w.b)
	switch {
	case w.hasSuffix("sses"):
		w.replaceSuffix(2, "")
	case w.hasSuffix("ied"), w.hasSuffix("ies"):
		if n > 4 {
			w.replaceSuffix(2, "")
		} else {
			w.replaceSuffix(1, "")
		}
	case w.hasSuffix("us"), w.hasSuffix("ss"):
	case w.hasSuffix("s") && w.vowelBefore(n-2):
		w.replaceSuffix(1, "")
	}
}

// removePastSuffix removes ed and ing.
func (w *stemmer) removePastSuffix() {
	for _, s := range []string{"eedly", "eed"} {
		if w.hasSuffix(s) {
			if len(w.b)-len(s) >= w.r1 {
				w.replaceSuffix(len(s), "ee")
			}
			return
		}
	}
	for _, s := range []string{"ingly", "edly", "ing", "ed"} {
		if !w.hasSuffix(s) {
			continue
		}
		if !w.vowelBefore(len(w.b) - len(s)) {
			return
		}
		w.replaceSuffix(len(s), "")
		switch {
		case w.hasSuffix("at"), w.hasSuffix("bl"), w.hasSuffix("iz"):
			w.replaceSuffix(0, "e")
		case w.hasSuffix("bb"), w.hasSuffix("dd"), w.hasSuffix("ff"), w.hasSuffix("gg"), w.hasSuffix("mm"), w.hasSuffix("nn"), w.hasSuffix("pp"), w.hasSuffix("rr"), w.hasSuffix("tt"):
			w.replaceSuffix(1, "")
		case w.r1 >= len(w.b) && w.shortSyllable(len(w.b)):
			w.replaceSuffix(0, "e")
		}
		return
	}
}

// shortSyllable reports whether the syllable before index end is short: a vowel between consonants, or one that begins the word.
func (w *stemmer) shortSyllable(end int) bool {
	if end == 2 {
		return isVowel(w.b[0]) && !isVowel(w.b[1])
	}
	if end < 3 {
		return false
	}
	c := w.b[end-1]
	return !isVowel(c) && c != 'w' && c != 'x' && c != 'Y' && isVowel(w.b[end-2]) && !isVowel(w.b[end-3])
}

func (w *stemmer) finalY() {
	n := len(w.b)
	if n > 2 && (w.b[n-1] == 'y' || w.b[n-1] == 'Y') && !isVowel(w.b[n-2]) {
		w.b[n-1] = 'i'
	}
}

// An ending and its replacement. Of the endings in a table that fit, only the longest is used.
type ending struct{ from, to string }

var longEndings = []ending{
	{"ization", "ize"}, {"ational", "ate"}, {"fulness", "ful"}, {"ousness", "ous"}, {"iveness", "ive"},
	{"tional", "tion"}, {"biliti", "ble"}, {"lessli", "less"},
	{"entli", "ent"}, {"ation", "ate"}, {"alism", "al"}, {"aliti", "al"}, {"ousli", "ous"}, {"iviti", "ive"}, {"fulli", "ful"},
	{"enci", "ence"}, {"anci", "ance"}, {"abli", "able"}, {"izer", "ize"}, {"ator", "ate"}, {"alli", "al"},
	{"bli", "ble"}, {"ogi", "og"}, {"li", ""},
}

var shortEndings = []ending{
	{"ational", "ate"}, {"tional", "tion"}, {"alize", "al"}, {"icate", "ic"}, {"iciti", "ic"}, {"ative", ""}, {"ical", "ic"},
	{"ness", ""}, {"ful", ""},
}

// replaceEnding replaces the first ending that fits and begins at or after region.
func (w *stemmer) replaceEnding(endings []ending, region int) {
	for _, e := range endings {
		if !w.hasSuffix(e.from) {
			continue
		}
		at := len(w.b) - len(e.from)
		if at < region {
			return
		}
		switch {
		case e.from == "ogi" && (at == 0 || w.b[at-1] != 'l'):
		case e.from == "li" && (at == 0 || strings.IndexByte("cdeghkmnrt", w.b[at-1]) < 0):
		case e.from == "ative" && at < w.r2:
		default:
			w.replaceSuffix(len(e.from), e.to)
		}
		return
	}
}

func (w *stemmer) replaceShortEndings() { w.replaceEnding(shortEndings, w.r1) }

var lastEndings = []string{
	"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion", "al", "er", "ic",
}

func (w *stemmer) removeLastEnding() {
	for _, s := range lastEndings {
		if !w.hasSuffix(s) {
			continue
		}
		at := len(w.b) - len(s)
		if at >= w.r2 && (s != "ion" || at > 0 && (w.b[at-1] == 's' || w.b[at-1] == 't')) {
			w.replaceSuffix(len(s), "")
		}
		return
	}
}

func (w *stemmer) finalE() {
	n := len(w.b)
	switch {
	case w.hasSuffix("e"):
		if n-1 >= w.r2 || n-1 >= w.r1 && !w.shortSyllable(n-1) {
			w.replaceSuffix(1, "")
		}
	case w.hasSuffix("l") && n-1 >= w.r2 && n > 1 && w.b[n-2] == 'l':
		w.replaceSuffix(1, "")
	}
}
