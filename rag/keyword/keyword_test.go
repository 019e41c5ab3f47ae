package keyword

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStem holds the stemmer to what the Snowball project's own gives for these words.
func TestStem(t *testing.T) {
	text, err := os.ReadFile("testdata/stems.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		word, want, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			t.Fatalf("line %q is no pair", line)
		}
		if got := Stem(word); got != want {
			t.Errorf("Stem(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		"the of and":                      nil,
		"The QUICK brown foxes, running!": {"quick", "brown", "fox", "run"},
		"don't can't e.g. 3.14 1,000 a.b": {"can't", "e.g", "3.14", "1,000", "a.b"},
		"Crème brûlée in Łódź, straße & Ærø":  {"creme", "brule", "lodz", "strass", "aero"},
		"snake_case http://example.com/x-ray": {"snake_cas", "http", "example.com", "x", "ray"},
		"東京 タワー и москва":                     {"東", "京", "タワー", "и", "москва"},
		"it’s the owner’s":                    {"owner"},
		"\xff\xfe broken":                     {"broken"},
		"_Tunica Retina_ __x__ ___":           {"tunica", "retina", "x"},
		"end. Next":                           {"end", "next"},
	} {
		if diff := cmp.Diff(want, Tokens(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestTokenizerRemembersWithoutChange(t *testing.T) {
	var tokens Tokenizer
	for range 2 {
		if diff := cmp.Diff([]string{"fox", "jump"}, tokens.Tokens("the foxes jumped")); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("don't 3.14 東京 naïve'")
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range Tokens(text) {
			if token == "" || strings.ContainsAny(token, " \n\t") {
				t.Errorf("token %q of %q", token, text)
			}
		}
	})
}

// corpusOf counts texts in memory.
func corpusOf(texts []string) Corpus {
	postings := map[string][]Posting{}
	var c Corpus
	for i, text := range texts {
		tokens := Tokens(text)
		c.Lengths = append(c.Lengths, uint32(len(tokens)))
		counts := map[string]uint32{}
		for _, token := range tokens {
			counts[token]++
		}
		for token, n := range counts {
			postings[token] = append(postings[token], Posting{Text: uint32(i), Count: n})
		}
	}
	c.Postings = func(token string) ([]Posting, error) { return postings[token], nil }
	return c
}

func TestRankScores(t *testing.T) {
	c := corpusOf([]string{"apple apple pear", "apple", "plum"})
	got, err := c.Rank(Tokens("apples"), 5)
	if err != nil {
		t.Fatal(err)
	}
	// idf = ln(1 + 1.5/2.5) = 0.470004; average length 5/3.
	want := []Match{{Text: 1, Score: 0.573175}, {Text: 0, Score: 0.534095}}
	if len(got) != len(want) {
		t.Fatalf("matches %v", got)
	}
	for i := range want {
		if got[i].Text != want[i].Text || got[i].Score < want[i].Score-1e-5 || got[i].Score > want[i].Score+1e-5 {
			t.Errorf("match %d is %v, want %v", i, got[i], want[i])
		}
	}
	twice, err := c.Rank(Tokens("apple apples"), 5)
	if err != nil {
		t.Fatal(err)
	}
	if twice[0].Score != 2*got[0].Score {
		t.Errorf("a repeated word counts %g times", twice[0].Score/got[0].Score)
	}
}

func TestBestBreaksTiesByOrder(t *testing.T) {
	best := NewBest(3, nil)
	for _, i := range []uint32{5, 1, 4, 2, 3} {
		best.Add(Match{Text: i, Score: 1})
	}
	best.Add(Match{Text: 9, Score: 2})
	want := []Match{{9, 2}, {1, 1}, {2, 1}}
	if diff := cmp.Diff(want, best.SortMatches()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
