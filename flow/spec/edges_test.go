package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/internal/base/strictyaml"
)

// testKinds are types with each routing. A step has every field that types share, and a map runs another node.
var testKinds = Kinds{
	{Name: "step", Required: []string{"work"}, Optional: []string{"fallback", "targets", "queue", "state_updates", "output_schema", "enabled_skills"}, Scoped: "made",
		Routing: RouteNext, Decode: func(f *NodeFields) any {
			f.AddStrict("work", f.ReadText("work", strictyaml.Required))
			f.ReadTargets()
			f.ReadQueue()
			return f.ReadFallback(true)
		}},
	{Name: "first", Routing: RouteFirst, Decode: func(*NodeFields) any { return nil }},
	{Name: "any", Routing: RouteAny, WritesAnyKey: true, Spawns: true, Decode: func(*NodeFields) any { return nil }},
	{Name: "own", Optional: []string{"to"}, Routing: RouteOwn, Decode: func(f *NodeFields) any {
		f.AddEdge(Edge{To: f.ReadText("to", strictyaml.Optional), Field: "to", Role: EdgeChoice})
		return nil
	}},
	{Name: "each", Late: true, Optional: []string{"branch"}, Routing: RouteNext, Decode: func(f *NodeFields) any {
		f.AddEdge(Edge{To: f.ReadText("branch", strictyaml.Optional), Field: "branch", Role: EdgeBranch})
		return nil
	}},
	{Name: "wait", Optional: []string{"for", "until", "deadline", "on_deadline"}, Decode: func(f *NodeFields) any {
		f.ReadSpan("for")
		f.ReadMoment("until")
		return f.ReadDeadline()
	}},
	{Name: "end", Routing: RouteEnd, Decode: func(*NodeFields) any { return nil }},
}

// parseNodes parses a graph that begins at its node a.
func parseNodes(t *testing.T, nodes string) *File {
	t.Helper()
	f, err := Parse("graph.yaml", []byte("name: g\nstart: a\nnodes:\n"+nodes), testKinds)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFollowedEdges(t *testing.T) {
	f := parseNodes(t, `
  a: {type: step, work: w, next: [b, c, b], fallback: e}
  b: {type: first, next: [c, e]}
  c: {type: any, next: [e, m]}
  o: {type: own, to: e, next: a}
  m: {type: each, branch: b, next: e}
  e: {type: end, next: [a]}
`)
	for id, want := range map[string]string{
		"a": "b 'next', c 'next', b 'next', e step 'fallback'", "b": "c 'next'", "c": "e 'next', m 'next'",
		"o": "e own 'to'", "m": "e 'next'", "e": "",
	} {
		var got []string
		for _, e := range f.Node(id).FollowedEdges() {
			got = append(got, e.To+" "+f.Node(id).Label(e))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s follows %s, want %s", id, text, want)
		}
	}
	if got := f.Node("m").DeclaredEdges(); len(got) != 2 || got[0].To != "e" || got[1].To != "b" ||
		got[1].Role != EdgeBranch {
		t.Errorf("m declares %+v", got)
	}
	if got := f.Node("a").DeclaredEdges(); got[2].Item != 2 || !got[3].Updates {
		t.Errorf("a declares %+v", got)
	}
}

// A network finds what follows from its definition: which nodes lead to which, where walks must begin, and cycles.
func TestNetworkProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 400 {
		f := randomGraph(rng)
		w := f.BuildNetwork()
		n := len(f.Nodes)
		leads := closure(f, true)
		for i := range n {
			want := slices.Clone(leads[i])
			want[i] = true
			if got := w.ReachableFrom(i); !slices.Equal(got, want) {
				t.Fatalf("%s\nfrom %d: %v, want %v", f.Text, i, got, want)
			}
		}
		seen := w.ReachableFromEntries(f)
		for i, got := range w.FindRoots(seen) {
			root := !seen[i]
			for j := range n {
				if !seen[j] && leads[j][i] && (j < i || !leads[i][j]) {
					root = false
				}
			}
			if got != root {
				t.Fatalf("%s\n%d is a root: %t (seen %v)", f.Text, i, got, seen)
			}
		}
		checkCycle(t, f, w.FindCycle())
	}
}

// randomGraph returns a graph of up to nine nodes with edges, targets and an edge to a node that does not exist.
func randomGraph(rng *rand.Rand) *File {
	n := 1 + rng.IntN(9)
	f := &File{Start: "n0", ByID: map[string]*Node{}}
	for i := range n {
		node := &Node{ID: fmt.Sprint("n", i), Type: testKinds[0], Next: []string{"none"}}
		for j := range n {
			switch rng.IntN(3 * n) {
			case 0, 1:
				node.Next = append(node.Next, fmt.Sprint("n", j))
			case 2:
				node.Targets = append(node.Targets, fmt.Sprint("n", j), "none")
			}
		}
		f.Nodes = append(f.Nodes, node)
		f.Text = fmt.Appendf(f.Text, "%d: %v %v\n", i, node.Next, node.Targets)
	}
	if rng.IntN(2) == 0 {
		f.Finally = fmt.Sprint("n", rng.IntN(n))
	}
	return f
}

// closure returns which node leads to which over one edge or more, with targets or without.
func closure(f *File, targets bool) [][]bool {
	leads := make([][]bool, len(f.Nodes))
	for i, from := range f.Nodes {
		leads[i] = make([]bool, len(f.Nodes))
		for j, to := range f.Nodes {
			leads[i][j] = slices.Contains(from.Next, to.ID) || targets && slices.Contains(from.Targets, to.ID)
		}
	}
	for k := range leads {
		for i := range leads {
			for j := range leads {
				leads[i][j] = leads[i][j] || leads[i][k] && leads[k][j]
			}
		}
	}
	return leads
}

// checkCycle checks that a loop is one over edges of next, and that it is nil only if there is none.
func checkCycle(t *testing.T, f *File, loop []int) {
	t.Helper()
	if loop == nil {
		for i, row := range closure(f, false) {
			if row[i] {
				t.Fatalf("%s\nno cycle is found at %d", f.Text, i)
			}
		}
		return
	}
	for i, at := range loop {
		to := f.Nodes[loop[(i+1)%len(loop)]].ID
		if !slices.Contains(f.Nodes[at].Next, to) || slices.Contains(loop[:i], at) {
			t.Fatalf("%s\n%v is no cycle", f.Text, loop)
		}
	}
}

// What the model of a node may set decides what is known about the state after it.
func TestWrittenKeysOfNodes(t *testing.T) {
	for schema, open := range map[string]bool{
		"":                                     false,
		"{properties: {x: {}}}":                false,
		"{properties: {}}":                     true,
		"{type: object}":                       true,
		"true":                                 true,
		"{properties: {x: {}}, oneOf: []}":     true,
		"{properties: {x: {}}, $ref: '#/a'}":   true,
		"{properties: {x: {}}, if: {}}":        true,
		"{properties: {x: {}}, required: [x]}": false,
		"{properties: {x: {}}, additionalProperties: false}": false,
		"{properties: {x: {}}, additionalProperties: true}":  true,
		"{properties: {x: {}}, additionalProperties: {}}":    true,
	} {
		text := "  a: {type: step, work: w, next: a}\n"
		if schema != "" {
			text = "  a: {type: step, work: w, next: a, output_schema: " + schema + "}\n"
		}
		if got := parseNodes(t, text).Node("a").WritesAnyKey(); got != open {
			t.Errorf("%s: any key %t", schema, got)
		}
	}
	f := parseNodes(t, "  a: {type: any, next: b}\n  b: {type: step, work: '{{x}}', queue: '', state_updates: {}, output_schema: {properties: {z: 1, y: 2}}}\n"+
		"  c: {type: step, work: '{{x}}', state_updates: {k: '{{made}}', l: w}}\n")
	if !f.Node("a").WritesAnyKey() || !f.CanSpawn() || !f.Kinds.IsScoped("made") || f.Kinds.IsScoped("") {
		t.Error("the type of a node is ignored")
	}
	b := f.Node("b")
	if diff := cmp.Diff([]string{
		"z", "y",
	}, b.SchemaProperties()); diff != "" || b.Updates == nil || b.Queue == nil || b.QueueName() != "" || f.Node("a").QueueName() != "" {
		t.Errorf("the fields of b: %+v\n%s", b, diff)
	}
	var uses []string
	for _, u := range f.Node("c").AllTemplates() {
		uses = append(uses, fmt.Sprintf("%s %d %t %v", u.Field, u.Item, u.Strict, u.Template.Keys()))
	}
	if diff := cmp.Diff([]string{
		"work 0 true [x]", "state_updates 0 false [made]", "state_updates 1 false []",
	}, uses); diff != "" {
		t.Error(diff)
	}
}

func TestBranchNodes(t *testing.T) {
	for failure, want := range map[string]string{
		"stop": `"" [work] ""`, "skip": `"" [work] "n"`, "collect": `"" [work] "n"`, "": `"" [work] "n"`,
		"mend": `"mend" [work mend] "n"`, "work": `"work" [work] "n"`,
	} {
		n := &Node{ID: "n", Branch: &Branch{To: "work", OnFailure: failure}}
		if got := fmt.Sprintf("%q %v %q", n.Branch.Handler(), n.Branch.Nodes(), n.CountsKey()); got != want {
			t.Errorf("%s: %s, want %s", failure, got, want)
		}
	}
	if key := (&Node{ID: "n"}).CountsKey(); key != "" {
		t.Errorf("a node that runs no other keeps counts under %s", key)
	}
}
