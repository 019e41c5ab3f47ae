package rag

import (
	"bufio"
	"compress/gzip"
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"raddle.dev/rag/keyword"
)

// opticks returns Isaac Newton's book of 1730, which is in the public domain.
func opticks(t testing.TB) string {
	t.Helper()
	f, err := os.Open("testdata/opticks.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// babble is as many bytes of text as wanted with the words and the pairs of words of a book, and no sense. It is the same every time.
func babble(book string, size int, seed uint64) string {
	words := strings.Fields(book)
	after := map[string][]int{}
	for i, w := range words[:len(words)-1] {
		after[w] = append(after[w], i+1)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	at := 0
	for line := 0; b.Len() < size; {
		b.WriteString(words[at])
		line += len(words[at]) + 1
		switch {
		case strings.HasSuffix(words[at], ".") && line > 500:
			b.WriteString("\n\n")
			line = 0
		default:
			b.WriteByte(' ')
		}
		next := after[words[at]]
		if len(next) == 0 {
			at = random.IntN(len(words))
			continue
		}
		at = next[random.IntN(len(next))]
	}
	return b.String()
}

// trigrams embeds a text by the three-letter pieces of its words. It replaces a model: it finds words that are written differently, but
// knows no meanings.
type trigrams struct{ dims int }

func (m trigrams) Embed(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
	var all [][]float32
	var tokens keyword.Tokenizer
	for _, text := range texts {
		v := make([]float32, m.dims)
		for _, token := range tokens.Tokens(text) {
			token = "^" + token + "$"
			for i := range len(token) - 2 {
				h := fnv.New32a()
				io.WriteString(h, token[i:i+3])
				v[h.Sum32()%uint32(m.dims)]++
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// A question has the words that a passage must hold to answer it.
type question struct{ text, answer string }

// questions reads the labelled set.
func questions(t testing.TB) (all []question) {
	t.Helper()
	f, err := os.Open("testdata/questions.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		q, answer, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Fatalf("line %q has no answer", lines.Text())
		}
		all = append(all, question{q, answer})
	}
	if err := lines.Err(); err != nil || len(all) < 20 {
		t.Fatalf("%d questions, %v", len(all), err)
	}
	return all
}

// recall returns how many questions find their passage: with both rankings together, with vectors alone, and with words alone.
func recall(t testing.TB, b *Base, all []question, top int) (hybrid, near, words float64) {
	t.Helper()
	ctx := context.Background()
	for _, q := range all {
		hits, err := b.Search(ctx, q.text, SearchOptions{TopK: top})
		if err != nil {
			t.Fatal(err)
		}
		found := func(hits []Hit) float64 {
			for _, h := range hits {
				if strings.Contains(strings.Join(strings.Fields(h.Text), " "), q.answer) {
					return 1 / float64(len(all))
				}
			}
			return 0
		}
		hybrid += found(hits)
		near += found(searchWith(t, b, q.text, top, Weights{Meaning: 1}))
		words += found(searchWith(t, b, q.text, top, Weights{Words: 1}))
	}
	return hybrid, near, words
}

// searchWith searches by scores with these weights.
func searchWith(t testing.TB, b *Base, query string, top int, w Weights) []Hit {
	t.Helper()
	hits, err := b.Search(context.Background(), query, SearchOptions{TopK: top, Fusion: &Fusion{Weights: w}})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}
