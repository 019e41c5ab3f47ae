package rag

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFacts(t *testing.T) {
	ada := facts{Entities: []entity{{"ada lovelace", "PERSON", "A mathematician."}}, Relations: []relation{}}
	for name, c := range map[string]struct {
		answer string
		want   facts
	}{
		"plain":        {`{"entities":[{"name":"Ada  Lovelace","type":"person","description":" A mathematician. "}],"relationships":[]}`, ada},
		"fence":        {"```json\n{\"entities\":[{\"name\":\"ada lovelace\",\"type\":\"Person\",\"description\":\"A mathematician.\"}]}\n```\n", ada},
		"prose around": {`Here is the {data}: {"entities":[{"name":"ADA LOVELACE","type":"PERSON","description":"A mathematician."}]} That is all.`, ada},
		"nothing":      {`{"entities":[],"relationships":[]}`, facts{Entities: []entity{}, Relations: []relation{}}},
		"no type":      {`{"entities":[{"name":"X","description":null}]}`, facts{Entities: []entity{{"x", "OTHER", ""}}, Relations: []relation{}}},
		"no name":      {`{"entities":[{"name":"  ","type":"A"},{"type":"B"},{"name":"` + strings.Repeat("n", maxName+1) + `"}]}`, facts{Entities: []entity{}, Relations: []relation{}}},
		"weights": {`{"entities":[],"relationships":[{"from":"A","to":"B","type":" uses "},{"from":"A","to":"B","weight":7},{"from":"A","to":"B","weight":-1},
			{"from":"A","to":"B","weight":"0.25"},{"from":"A","to":"B","weight":"much"},{"from":"A","to":"B","weight":null},{"from":"A","to":""}]}`,
			facts{Entities: []entity{}, Relations: []relation{{"a", "b", "uses", 1}, {"a", "b", "", 1}, {"a", "b", "", 0}, {"a", "b", "", 0.25}, {"a", "b", "", 1}, {"a", "b", "", 1}}}},
	} {
		got, err := readFacts(c.answer)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, answer := range []string{
		"", "I see no entities.", "[]", "{", `{"entities":`, `{"entities":{}}`, `{"relationships":[]}`, `{"entities":["Ada"]}`,
		`{"entities":[{"name":5}]}`, strings.Repeat("{", 100_000), `{"entities":[{"name":"a"}],"relationships":[{"from":1}]}`,
	} {
		if f, err := readFacts(answer); !errors.Is(err, errAnswer) {
			t.Errorf("%.30q is taken as %v, %v", answer, f, err)
		}
	}
}

func FuzzReadFacts(f *testing.F) {
	f.Add("```{\"entities\":[{\"name\":\"a\"}],\"relationships\":[{\"from\":\"a\",\"to\":\"a\",\"weight\":\"NaN\"}]}")
	f.Fuzz(func(t *testing.T, answer string) {
		got, err := readFacts(answer)
		if err != nil && !errors.Is(err, errAnswer) {
			t.Error(err)
		}
		for _, r := range got.Relations {
			if !(r.Weight >= 0 && r.Weight <= 1) {
				t.Errorf("weight %v", r.Weight)
			}
		}
	})
}

func TestJoining(t *testing.T) {
	var g entityGraph
	g.addFacts(1, facts{
		Entities:  []entity{{"ada", "OTHER", ""}, {"engine", "PRODUCT", "A machine."}, {"ada", "PERSON", "A mathematician."}},
		Relations: []relation{{"ada", "engine", "wrote about", 0.5}, {"ada", "babbage", "knows", 1}, {"ada", "nobody", "knows", 1}},
	})
	g.addFacts(2, facts{
		Entities:  []entity{{"babbage", "PERSON", ""}, {"engine", "CONCEPT", "Another word."}, {"ada", "PLACE", "A town."}},
		Relations: []relation{{"ada", "engine", "wrote about", 0.9}, {"engine", "ada", "wrote about", 0.1}, {"ada", "engine", "paid", 0}},
	})
	want := []entity{{"ada", "PERSON", "A mathematician."}, {"engine", "PRODUCT", "A machine."}, {"babbage", "PERSON", ""}}
	if diff := cmp.Diff(want, g.entities); diff != "" {
		t.Errorf("entities (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int64{{1, 2}, {1, 2}, {2}}, g.mentions); diff != "" {
		t.Errorf("mentions (-want +got):\n%s", diff)
	}
	edges := []edge{{0, 1, "wrote about", 0.5}, {0, 2, "knows", 1}, {1, 0, "wrote about", 0.1}, {0, 1, "paid", 0}}
	if diff := cmp.Diff(edges, g.knownEdges(), cmp.AllowUnexported(edge{})); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

// plane is a graph for spreading: the weights of edges that go both ways.
type plane map[[2]int64]float64

func (p plane) neighbours(id int64) (all []neighbour, err error) {
	for to := range int64(3000) {
		for _, ends := range [][2]int64{{id, to}, {to, id}} {
			if w, ok := p[ends]; ok {
				all = append(all, neighbour{to, w})
			}
		}
	}
	return all, nil
}

func TestSpread(t *testing.T) {
	line := plane{{1, 2}: 0.5, {3, 2}: 0.5, {3, 4}: 1, {5, 1}: 0, {6, 1}: 1}
	for name, c := range map[string]struct {
		graph plane
		seeds []seed
		hops  int
		want  []reachedEntity
	}{
		"no hops":          {line, []seed{{1, 0.8}}, 0, []reachedEntity{{1, 0.8, 0}}},
		"one, both ways":   {line, []seed{{2, 0.8}}, 1, []reachedEntity{{2, 0.8, 0}, {1, 0.4, 1}, {3, 0.4, 1}}},
		"weights multiply": {line, []seed{{1, 1}}, 3, []reachedEntity{{1, 1, 0}, {6, 1, 1}, {2, 0.5, 1}, {3, 0.25, 2}, {4, 0.25, 3}}},
		"best way counts":  {plane{{1, 2}: 0.1, {1, 3}: 1, {3, 2}: 0.9}, []seed{{1, 1}}, 2, []reachedEntity{{1, 1, 0}, {3, 1, 1}, {2, 0.9, 1}}},
		"a better way goes on": {plane{{1, 2}: 0.1, {1, 3}: 1, {3, 2}: 0.9, {2, 4}: 1}, []seed{{1, 1}}, 3,
			[]reachedEntity{{1, 1, 0}, {3, 1, 1}, {2, 0.9, 1}, {4, 0.9, 2}}},
		"seeds gain too": {plane{{1, 2}: 1}, []seed{{1, 0.9}, {2, 0.5}}, 1, []reachedEntity{{1, 0.9, 0}, {2, 0.9, 0}}},
		"circle":         {plane{{1, 2}: 1, {2, 3}: 1, {3, 1}: 1}, []seed{{1, 0.5}}, 9, []reachedEntity{{1, 0.5, 0}, {2, 0.5, 1}, {3, 0.5, 1}}},
		"no seeds":       {line, nil, 2, nil},
	} {
		got, err := spreadScores(c.seeds, c.hops, c.graph.neighbours)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestSpreadIsBounded(t *testing.T) {
	star := plane{}
	for i := range int64(2000) {
		star[[2]int64{0, i + 1}] = float64(i+1) / 2000
	}
	got, err := spreadScores([]seed{{0, 1}}, 4, star.neighbours)
	if err != nil || len(got) != maxReached {
		t.Fatalf("%d entities, %v", len(got), err)
	}
	if last := got[len(got)-1]; last.id != 2000-maxReached+2 {
		t.Errorf("the last is %v: the best should be kept", last)
	}
}

func TestSpreadReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := spreadScores([]seed{{1, 1}}, 1, func(int64) ([]neighbour, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestNamesOfAQuery(t *testing.T) {
	if diff := cmp.Diff([]string{"a-1", "ada", "ada's", "c", "c++", "does", "what", "work", "zürich"}, nameWords(`what does "ada's" c++ (zürich) a-1 work?`)); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"e ", "ew ", "he ", "new ", "the ", "w "}, wordSuffixes("the new york")); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	long := strings.Repeat("word ", 1000) + strings.Repeat("x", 100_000) + " end"
	if got := wordSuffixes(long); !slices.Equal(got, []string{"word "}) {
		t.Errorf("%d heads of a long query", len(got))
	}
	if got := wordShare([]string{"ada", "engine", "wrote", "zoo"}, "Ada: (wrote) of engines"); got != 0.5 {
		t.Errorf("share %v", got)
	}
}
