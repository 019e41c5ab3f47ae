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
		var tokens Tokenizer
		for _, token := range tokens.Terms(text) {
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
		var tokens Tokenizer
		c.Lengths = append(c.Lengths, uint32(len(Tokens(text))))
		counts := map[string]uint32{}
		for _, token := range tokens.Terms(text) {
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

// Names have their parts as terms, after the whole; prose has none.
func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"The quick foxes don't stop.":  {"quick", "fox", "stop"},
		"os.path.join":                 {"os.path.join", "/os", "/path", "/join"},
		"getUserById(42)":              {"getuserbyid", "/get", "/user", "/id", "42"},
		"fetch_all_rows":               {"fetch_all_row", "/fetch", "/row"},
		"the HTTPServer":               {"httpserver", "/http", "/server"},
		"Version 3.11.7":               {"version", "3.11.7", "/3.11"},
		"Python3.11 utf8":              {"python3.11", "/python", "/3.11", "utf8", "/utf"},
		"config.yaml at example.com":   {"config.yaml", "/config", "/yaml", "example.com", "/exampl", "/com"},
		"an e-mail":                    {"e", "mail", "/email"},
		"state-of-the-art x-2":         {"state", "art", "x", "2"},
		"Hello World, iPhone":          {"hello", "world", "iphon", "/phone"},
		"std::vector URLs":             {"std", "vector", "url"},
		"東京都 東 京":                      {"東", "京", "/東京", "都", "/京都", "東", "京"},
		"サポートセンター":                     {"サホートセンター", "/サホ", "/ホー", "/ート", "/トセ", "/セン", "/ンタ", "/ター"},
		"__init__ _x_ ÉtéNoël 1,000.5": {"init", "x", "etenoel", "/ete", "/noel", "1,000.5"},
		"":                             nil,
	} {
		var tokens Tokenizer
		if diff := cmp.Diff(want, tokens.Terms(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		var words []string
		for _, term := range tokens.Terms(text) {
			if !IsPart(term) {
				words = append(words, term)
			}
		}
		if diff := cmp.Diff(tokens.Tokens(text), words); diff != "" {
			t.Errorf("%q: the terms that are no parts (-tokens +terms):\n%s", text, diff)
		}
	}
}

// A part of a name is found, and counts less than the word; so does a part of a name in the query.
func TestRankParts(t *testing.T) {
	texts := []string{
		"Use os.path.join to build names, and getUserById or fetch_all_rows.",
		"A path that you join by hand.",
		"The HTTPServer of version 3.11.7 reads its e-mail at example.com.",
		"환불은 サポートセンター",
		"Nothing of all that is here.",
	}
	c := corpusOf(texts)
	for query, want := range map[string][]uint32{
		"path join":      {1, 0},
		"os.path.join":   {0, 1},
		"user by id":     {0},
		"fetch rows":     {0},
		"http server":    {2},
		"3.11":           {2},
		"email":          {2},
		"example":        {2},
		"Server HTTP":    {2},
		"환불":             {3},
		"サポート":           {3},
		"pathjoin users": {0},
	} {
		var tokens Tokenizer
		got, err := c.Rank(tokens.Terms(query), 3)
		if err != nil {
			t.Fatal(err)
		}
		var found []uint32
		for _, m := range got {
			found = append(found, m.Text)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
