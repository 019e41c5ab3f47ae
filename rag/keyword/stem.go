package keyword

import "strings"

// Stem takes the English endings off a word in lower case, by the rules of the Snowball project's English stemmer (Porter2). Words that
// have letters outside a to z come back as they are, apart from their endings in ASCII.
func Stem(word string) string {
	if len(word) < 3 {
		return word
	}
	if s, ok := irregular[word]; ok {
		return s
	}
	w := newStemmed(word)
	w.possessive()
	if !invariant[string(w.b)] {
		w.plural()
		if !invariant[string(w.b)] {
			w.past()
			w.finalY()
			w.replace(longEndings, w.r1)
			w.shorten()
			w.drop()
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

// A stemmed is a word on its way to its stem. A y that is a consonant is written Y.
type stemmed struct {
	b      []byte
	r1, r2 int // where the two regions begin that endings must lie in
}

func newStemmed(word string) *stemmed {
	w := &stemmed{b: []byte(strings.TrimPrefix(word, "'"))}
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
		w.r1 = w.region(0)
	}
	w.r2 = w.region(w.r1)
	return w
}

// region is the place after the first consonant that follows a vowel at or after from.
func (w *stemmed) region(from int) int {
	for i := from + 1; i < len(w.b); i++ {
		if !isVowel(w.b[i]) && isVowel(w.b[i-1]) {
			return i + 1
		}
	}
	return len(w.b)
}

func isVowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

func (w *stemmed) ends(s string) bool { return strings.HasSuffix(string(w.b), s) }

// cut replaces the last n bytes.
func (w *stemmed) cut(n int, with string) { w.b = append(w.b[:len(w.b)-n], with...) }

// vowelBefore tells whether there is a vowel before place end.
func (w *stemmed) vowelBefore(end int) bool {
	for _, c := range w.b[:max(0, end)] {
		if isVowel(c) {
			return true
		}
	}
	return false
}

func (w *stemmed) possessive() {
	for _, s := range []string{"'s'", "'s", "'"} {
		if w.ends(s) {
			w.cut(len(s), "")
			return
		}
	}
}

func (w *stemmed) plural() {
	n := len(w.b)
	switch {
	case w.ends("sses"):
		w.cut(2, "")
	case w.ends("ied"), w.ends("ies"):
		if n > 4 {
			w.cut(2, "")
		} else {
			w.cut(1, "")
		}
	case w.ends("us"), w.ends("ss"):
	case w.ends("s") && w.vowelBefore(n-2):
		w.cut(1, "")
	}
}

// past takes off ed and ing.
func (w *stemmed) past() {
	for _, s := range []string{"eedly", "eed"} {
		if w.ends(s) {
			if len(w.b)-len(s) >= w.r1 {
				w.cut(len(s), "ee")
			}
			return
		}
	}
	for _, s := range []string{"ingly", "edly", "ing", "ed"} {
		if !w.ends(s) {
			continue
		}
		if !w.vowelBefore(len(w.b) - len(s)) {
			return
		}
		w.cut(len(s), "")
		switch {
		case w.ends("at"), w.ends("bl"), w.ends("iz"):
			w.cut(0, "e")
		case w.ends("bb"), w.ends("dd"), w.ends("ff"), w.ends("gg"), w.ends("mm"), w.ends("nn"), w.ends("pp"), w.ends("rr"), w.ends("tt"):
			w.cut(1, "")
		case w.r1 >= len(w.b) && w.shortSyllable(len(w.b)):
			w.cut(0, "e")
		}
		return
	}
}

// shortSyllable tells whether the syllable before place end is short: a vowel between consonants, or one that begins the word.
func (w *stemmed) shortSyllable(end int) bool {
	if end == 2 {
		return isVowel(w.b[0]) && !isVowel(w.b[1])
	}
	if end < 3 {
		return false
	}
	c := w.b[end-1]
	return !isVowel(c) && c != 'w' && c != 'x' && c != 'Y' && isVowel(w.b[end-2]) && !isVowel(w.b[end-3])
}

func (w *stemmed) finalY() {
	n := len(w.b)
	if n > 2 && (w.b[n-1] == 'y' || w.b[n-1] == 'Y') && !isVowel(w.b[n-2]) {
		w.b[n-1] = 'i'
	}
}

// An ending and what takes its place. The longest of a table that fits is the only one that is looked at.
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

// replace replaces the first ending that fits and lies behind region.
func (w *stemmed) replace(endings []ending, region int) {
	for _, e := range endings {
		if !w.ends(e.from) {
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
			w.cut(len(e.from), e.to)
		}
		return
	}
}

func (w *stemmed) shorten() { w.replace(shortEndings, w.r1) }

var lastEndings = []string{
	"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion", "al", "er", "ic",
}

func (w *stemmed) drop() {
	for _, s := range lastEndings {
		if !w.ends(s) {
			continue
		}
		at := len(w.b) - len(s)
		if at >= w.r2 && (s != "ion" || at > 0 && (w.b[at-1] == 's' || w.b[at-1] == 't')) {
			w.cut(len(s), "")
		}
		return
	}
}

func (w *stemmed) finalE() {
	n := len(w.b)
	switch {
	case w.ends("e"):
		if n-1 >= w.r2 || n-1 >= w.r1 && !w.shortSyllable(n-1) {
			w.cut(1, "")
		}
	case w.ends("l") && n-1 >= w.r2 && n > 1 && w.b[n-2] == 'l':
		w.cut(1, "")
	}
}
