package keyword

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The constants of BM25: how soon further repetitions stop to count, and how much length counts.
const (
	k1 = 1.5
	b  = 0.75
)

// A Posting says how often a word occurs in one text.
type Posting struct {
	Text  uint32 // its index in Corpus.Lengths
	Count uint32
}

// A Corpus describes the texts to rank.
type Corpus struct {
	// Lengths are the numbers of tokens of the texts.
	Lengths []uint32
	// Postings returns where a token occurs: every text at most once. It is also called for the token as a part of a
	// name, PartOf, which counts half.
	Postings func(token string) ([]Posting, error)
	// Keep returns which texts may be returned; nil: all.
	Keep func(text uint32) bool
	// Less breaks ties; nil: the lower index comes first.
	Less func(a, b uint32) bool
}

// A Match is a text and its score, which is above zero.
type Match struct {
	Text  uint32
	Score float64
}

// Rank returns the best matches of a query's tokens, best first and at most top. Those that are parts of names count
// half. It only returns errors of Postings. It is safe for concurrent use if Postings is.
func (c Corpus) Rank(tokens []string, top int) ([]Match, error) {
	times := map[string]float64{}
	var distinct []string
	for _, t := range tokens {
		weight := 1.0
		if IsPart(t) {
			t = strings.TrimPrefix(t, partMark)
			weight = partWeight
		}
		if times[t] == 0 {
			distinct = append(distinct, t)
		}
		times[t] += weight
	}
	if len(distinct) == 0 || top <= 0 {
		return nil, nil
	}
	scores := make([]float64, len(c.Lengths))
	occurs := make([]float64, len(c.Lengths)) // of the token at hand
	average := c.averageLength()
	for _, t := range distinct {
		texts, err := c.addOccurrences(t, occurs)
		if err != nil {
			return nil, err
		}
		n := float64(len(texts))
		weight := times[t] * math.Log(1+(float64(len(c.Lengths))-n+0.5)/(n+0.5))
		for _, text := range texts {
			tf := occurs[text]
			occurs[text] = 0
			scores[text] += weight * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(c.Lengths[text])/average))
		}
	}
	best := NewBest(top, c.Less)
	for i, s := range scores {
		if s > 0 && (c.Keep == nil || c.Keep(uint32(i))) {
			best.Add(Match{Text: uint32(i), Score: s})
		}
	}
	return best.SortMatches(), nil
}

// addOccurrences adds to occurs, which is zero, how often a token occurs in each text, as a word and as a part of
// names, which counts half. It returns the texts in which it does, each once.
func (c Corpus) addOccurrences(token string, occurs []float64) (texts []uint32, err error) {
	for _, form := range []struct {
		token  string
		weight float64
	}{{token, 1}, {PartOf(token), partWeight}} {
		list, err := c.Postings(form.token)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if occurs[p.Text] == 0 {
				texts = append(texts, p.Text)
			}
			occurs[p.Text] += form.weight * float64(p.Count)
		}
	}
	return texts, nil
}

func (c Corpus) averageLength() float64 {
	total := 0.0
	for _, n := range c.Lengths {
		total += float64(n)
	}
	return max(1, total/float64(max(1, len(c.Lengths))))
}

// A Best keeps the best of many matches. It is not safe for concurrent use.
type Best struct {
	top  int
	less func(a, b uint32) bool
	all  []Match // a heap, the worst first, once it is full
}

// NewBest keeps at most top matches. If scores are equal, the lesser text wins; a nil less compares the indexes.
func NewBest(top int, less func(a, b uint32) bool) *Best {
	if less == nil {
		less = func(a, b uint32) bool { return a < b }
	}
	return &Best{top: top, less: less}
}

// Add adds m, and drops the worst match if there are more than top.
func (b *Best) Add(m Match) {
	if b.top <= 0 {
		return
	}
	if len(b.all) < b.top {
		b.all = append(b.all, m)
		for i := len(b.all) - 1; i > 0 && b.isWorse(i, (i-1)/2); i = (i - 1) / 2 {
			b.all[i], b.all[(i-1)/2] = b.all[(i-1)/2], b.all[i]
		}
		return
	}
	if worst := b.all[0]; m.Score < worst.Score || m.Score == worst.Score && !b.less(m.Text, worst.Text) {
		return
	}
	b.all[0] = m
	b.siftDown()
}

func (b *Best) isWorse(i, j int) bool {
	x := b.all[i]
	y := b.all[j]
	return x.Score < y.Score || x.Score == y.Score && b.less(y.Text, x.Text)
}

func (b *Best) siftDown() {
	for i := 0; ; {
		worst := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(b.all) && b.isWorse(child, worst) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		b.all[i], b.all[worst] = b.all[worst], b.all[i]
		i = worst
	}
}

// SortMatches returns the matches, best first. Do not use h after it.
func (b *Best) SortMatches() []Match {
	slices.SortFunc(b.all, func(x, y Match) int {
		if c := cmp.Compare(y.Score, x.Score); c != 0 {
			return c
		}
		if b.less(x.Text, y.Text) {
			return -1
		}
		return 1
	})
	return b.all
}
