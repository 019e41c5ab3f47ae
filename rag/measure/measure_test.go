package measure

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/rag"
)

func TestReadQuestions(t *testing.T) {
	got, err := ReadQuestions("q.jsonl", []byte("\ufeff"+`{"question": "a\ud83d\ude00", "relevant": ["x/y.md", "z"]}

  {"answer": "b c", "question": "d"}
`))
	want := []Question{{Text: "a😀", Relevant: []string{"x/y.md", "z"}}, {Text: "d", Answer: "b c"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestFaultsOfQuestions has all mistakes of a file in one error, each with its place.
func TestFaultsOfQuestions(t *testing.T) {
	_, err := ReadQuestions("dir/q.jsonl", []byte(`{"question": "a", "relevant": "x"}
nope
{"qestion": "b", "answer": ""}
{"question": "ok", "relevant": ["a"]}
{"question": "ok", "relevant": ["a"]} x
{"question": "é", "relevant": ["a"], "question": 5}
{"question": "a", "relevant": []}
{"question": "a", "relevant": [""], "answer": null}
{"question": tru, "relevant": ["a"]}
{"question": "b", "relevant": ["a"`))
	want := `dir/q.jsonl:1:31: "relevant" must be a list of paths, as ["leave.md"]
dir/q.jsonl:2:1: expected an object, as {"question": "…", "relevant": ["PATH"]}
dir/q.jsonl:3:1: the field "question" is missing
dir/q.jsonl:3:2: unknown field "qestion": there are question, relevant, answer
dir/q.jsonl:3:28: "answer" is empty
dir/q.jsonl:5:39: not JSON, one object a line: invalid character 'x' after top-level value
dir/q.jsonl:6:38: the field "question" is there twice
dir/q.jsonl:6:50: "question" must be a text
dir/q.jsonl:7:31: "relevant" must name documents, and none of them may be empty
dir/q.jsonl:8:31: "relevant" must name documents, and none of them may be empty
dir/q.jsonl:8:47: "answer" must be a text
dir/q.jsonl:9:17: not JSON, one object a line: invalid character ',' in literal true (expecting 'e')
dir/q.jsonl:10:34: not JSON, one object a line: unexpected end of JSON input`
	if err == nil {
		t.Fatal("mistakes are accepted")
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ReadQuestions("q", []byte("\n\n")); err == nil || !strings.Contains(err.Error(), "there are no questions") {
		t.Errorf("an empty file: %v", err)
	}
	_, err = ReadQuestions("q", []byte(strings.Repeat("x\n", 60)))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 51 || lines[50] != "and 10 more" {
		t.Errorf("many mistakes: %v", err)
	}
}

func FuzzReadQuestions(f *testing.F) {
	f.Add([]byte(`{"question": "a", "relevant": ["b"], "answer": "c"}`))
	f.Add([]byte("{\"a\":{}}\n{\"\\u0000\":[1,2,{\"question\":\"}\"}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		questions, err := ReadQuestions("q", text)
		if err == nil && len(questions) == 0 {
			t.Error("neither questions nor a mistake")
		}
		for _, q := range questions {
			if err == nil && (strings.TrimSpace(q.Text) == "" || q.targets() == 0) {
				t.Errorf("%+v is accepted", q)
			}
		}
	})
}

func TestScores(t *testing.T) {
	hits := []rag.Hit{{Path: "/d/a.md", Text: "one"}, {Path: "/d/b.md", Text: "the \n answer"}, {Path: "/d/b.md", Text: "more"}, {Path: "/d/sub/c.md"}}
	log := func(place float64) float64 { return 1 / math.Log2(place+1) }
	for name, c := range map[string]struct {
		q    Question
		k    int
		want scores
	}{
		"first":                  {Question{Relevant: []string{"a.md"}}, 4, scores{1, 1, 1, 1}},
		"second":                 {Question{Relevant: []string{"b.md"}}, 4, scores{0, 1, 0.5, log(2)}},
		"two of three":           {Question{Relevant: []string{"d/b.md", "./sub/c.md", "x"}}, 4, scores{0, 2.0 / 3, 0.5, (log(2) + log(4)) / (1 + log(2) + log(3))}},
		"not among the first k":  {Question{Relevant: []string{"c.md"}}, 3, scores{}},
		"the end of a name":      {Question{Relevant: []string{"md", ".md", "ub/c.md"}}, 4, scores{}},
		"a passage":              {Question{Answer: "the  answer"}, 4, scores{0, 1, 0.5, log(2)}},
		"a passage of a file":    {Question{Answer: "more", Relevant: []string{"b.md"}}, 4, scores{0, 1, 1.0 / 3, log(3)}},
		"a passage of another":   {Question{Answer: "one", Relevant: []string{"b.md"}}, 4, scores{}},
		"more targets than hits": {Question{Relevant: []string{"a.md", "b.md", "c.md"}}, 1, scores{1, 1.0 / 3, 1, 1}},
	} {
		if got := scoreHits(&c.q, hits, c.k); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A shelf finds by the weight of words: with it the right document, else another one.
type shelf struct{ asked int }

func (s *shelf) Search(_ context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error) {
	s.asked++
	if query == "broken" {
		return nil, errors.New("no shelf")
	}
	wrong := rag.Hit{Path: "/wrong.md"}
	right := rag.Hit{Path: "/" + query + ".md"}
	if o.Fusion.Weights.Words > 0 {
		return []rag.Hit{right, wrong}[:o.TopK], nil
	}
	return []rag.Hit{wrong, right}[:o.TopK], nil
}

func TestCompare(t *testing.T) {
	questions := []Question{{Text: "a", Relevant: []string{"a.md"}}, {Text: "b", Relevant: []string{"b.md"}}}
	settings := []Setting{{Name: "meaning", Fusion: rag.Fusion{Weights: rag.Weights{Meaning: 1}}}, {Name: "words", Fusion: rag.Fusion{Weights: rag.Weights{Words: 1}}}}
	s := &shelf{}
	got, err := Compare(t.Context(), s, questions, settings, 2)
	if err != nil || s.asked != 4 {
		t.Fatalf("%d searches, %v", s.asked, err)
	}
	// two questions of which both say the same tell nothing about others
	flat := func(x float64) Figure { return Figure{x, 0, 1} }
	gain := func(x float64) Figure { return Figure{x, -1, 1} }
	late := 1 / math.Log2(3)
	want := []Result{
		{Setting: "meaning", First: flat(0), Recall: flat(1), MRR: flat(0.5), NDCG: flat(late), Gain: gain(0)},
		{Setting: "words", First: flat(1), Recall: flat(1), MRR: flat(1), NDCG: flat(1), Gain: gain(0.5)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = Compare(t.Context(), s, []Question{{Text: "broken", Relevant: []string{"x"}}}, settings, 2)
	if err == nil || err.Error() != `meaning, question "broken": no shelf` {
		t.Errorf("%v", err)
	}
}

func TestCommonSettings(t *testing.T) {
	names := func(s rag.Settings) (list []string) {
		for _, each := range CommonSettings(s, rag.Fusion{}) {
			if err := each.Fusion.Validate(); err != nil {
				t.Error(err)
			}
			list = append(list, each.Name)
		}
		return list
	}
	if diff := cmp.Diff([]string{"as set", "words"}, names(rag.Settings{})); diff != "" {
		t.Errorf("words alone (-want +got):\n%s", diff)
	}
	want := []string{"as set", "words", "meaning", "meaning 0.3, words 0.7", "meaning 0.5, words 0.5", "meaning 0.6, words 0.4",
		"meaning 0.7, words 0.3", "meaning 0.8, words 0.2", "ranks", "model"}
	if diff := cmp.Diff(want, names(rag.Settings{Dimensions: 3, RerankerModel: "x:y", ExtractorModel: "x:z"})); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// A counter returns a vector for each text, and counts them.
type counter struct{ texts []string }

func (c *counter) Embed(_ context.Context, _ rag.Purpose, texts []string) (all [][]float32, err error) {
	c.texts = append(c.texts, texts...)
	for _, text := range texts {
		all = append(all, []float32{float32(len(text))})
	}
	return all, nil
}

func TestEmbedderAsksOnce(t *testing.T) {
	c := &counter{}
	e := &Embedder{Model: c}
	for range 2 {
		got, err := e.Embed(t.Context(), rag.ForQuery, []string{"a", "bb", "a"})
		if err != nil || len(got) != 3 || got[1][0] != 2 {
			t.Errorf("%v, %v", got, err)
		}
		got[1][0] = 7
	}
	if _, err := e.Embed(t.Context(), rag.ForDocument, []string{"a"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a", "bb", "a"}, c.texts); diff != "" {
		t.Errorf("the model was asked for (-want +got):\n%s", diff)
	}
}
