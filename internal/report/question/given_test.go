package question

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

func TestAnswers(t *testing.T) {
	s := graph.Structure{Nodes: []graph.NodeInfo{{Name: "a"}, {Name: "child", Child: &graph.Structure{Nodes: []graph.NodeInfo{{Name: "b"}}}}}}
	known := NamesOf([]graph.Question{{ID: "x/y#2"}}, s)
	list, err := ParseAnswers([]string{"a=1", "child/b#2=2", "b=3", "x/y#2=4", "c=5", "=a=6", "7", "a=b=c"}, known)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range list {
		got = append(got, g.ID+"|"+g.Text)
	}
	want := []string{"a|1", "child/b#2|2", "b|3", "x/y#2|4", "|c=5", "|a=6", "|7", "a|b=c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	take := func(id, node string, bare bool) string {
		text, ok, _ := list.Take(graph.Question{ID: id, Node: node}, bare, anyText)
		return fmt.Sprint(text, ok)
	}
	for _, step := range []struct {
		id, node, want string
		bare           bool
	}{
		{"child/b#2", "b", "2true", true},
		{"child/b#3", "b", "3true", true},
		{"a", "a", "1true", false},
		{"other", "other", "false", false},
		{"other", "other", "c=5true", true},
	} {
		if got := take(step.id, step.node, step.bare); got != step.want {
			t.Errorf("answer for %s: %s, want %s", step.id, got, step.want)
		}
	}
	if diff := cmp.Diff([]string{"x/y#2=4", "=a=6", "7", "a=b=c"}, list.ListUnused()); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func anyText(string, int) error { return nil }

// An answer that is far from a question with options is not used if it is not one of them;
// one that names the question, or a question for a text, is used and is wrong.
func TestAnswersThatDoNotSuit(t *testing.T) {
	suits := func(text string, _ int) error {
		if text == "good" {
			return nil
		}
		return errors.New("bad")
	}
	ask := graph.Question{ID: "a/act", Node: "act", Options: []string{"good"}}
	text := graph.Question{ID: "a/act", Node: "act"}
	for _, k := range []struct {
		q     graph.Question
		given GivenAnswers
		want  string
	}{
		{ask, GivenAnswers{{Text: "x"}, {Text: "good"}}, "good true <nil>"},
		{ask, GivenAnswers{{Text: "x"}}, " false <nil>"},
		{text, GivenAnswers{{Text: "x"}, {Text: "good"}}, "x true bad"},
		{ask, GivenAnswers{{Text: "x", ID: "a"}, {Text: "good", ID: "act"}}, "good true <nil>"},
		{ask, GivenAnswers{{Text: "good"}, {Text: "x", ID: "a/act"}}, "x true bad"},
		{ask, GivenAnswers{{Text: "one", ID: "b"}}, " false <nil>"},
		{text, GivenAnswers{{Text: "far", ID: "a"}, {Text: "near", ID: "act"}}, "near true bad"},
	} {
		got, ok, wrong := k.given.Take(k.q, true, suits)
		if s := fmt.Sprint(got, " ", ok, " ", wrong); s != k.want {
			t.Errorf("%+v: %s, want %s", k.given, s, k.want)
		}
	}
}

func TestMarkUsed(t *testing.T) {
	list := GivenAnswers{{Text: "a"}, {Text: "b", ID: "n"}, {Text: "a"}}
	list.MarkUsed([]graph.Answer{{Value: "A"}}, strings.ToUpper)
	if list[0].Used || !list[1].Used || !list[2].Used {
		t.Errorf("%+v", list)
	}
}

// Questions of spawned agents are named by their paths, and by the agents.
func TestAnswersForATeam(t *testing.T) {
	loop := graph.Structure{Nodes: []graph.NodeInfo{{Name: "think"}, {Name: "act"}, {Name: "sign", Kind: "approval"}}}
	s := graph.Structure{Nodes: []graph.NodeInfo{{Name: "team", Children: map[string]graph.Structure{"lead": loop, "explore": loop}}}}
	const one, two = "agent_explore_1f2e3d4c", "agent_explore_00000002"
	open := []graph.Question{{ID: "team/" + one + "/act", Node: "act"}, {ID: "team/" + two + "/act", Node: "act"}, {ID: "team/" + two + "/act#2", Node: "act"}, {ID: "team/lead/act", Node: "act"}}
	list, err := ParseAnswers([]string{two + "=b", "team/" + two + "/act#2=c", "team/" + one + "=a=a", "lead=d"}, NamesOf(open, s))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range open {
		text, _, _ := list.Take(q, false, anyText)
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"a=a", "b", "c", "d"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, mistyped := range []string{"team/" + one + "/akt=x", "team/lead/sigm=x", "agent_explore_1f2e3d4d=x"} {
		if _, err := ParseAnswers([]string{mistyped}, NamesOf(open, s)); err == nil {
			t.Errorf("%s is taken", mistyped)
		}
	}
	if list, err := ParseAnswers([]string{"act=x", "team/lead/act=y"}, NamesOf(nil, s)); err != nil || list[0].ID != "act" || list[1].ID != "team/lead/act" {
		t.Errorf("ahead: %+v %v", list, err)
	}
}
