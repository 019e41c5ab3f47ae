package draw

import (
	"fmt"

	"raddle.dev/graph"
)

// sample is a structure used by the golden tests and the benchmarks.
type sample struct {
	name string
	s    graph.Structure
	o    Options
}

func samples() []sample {
	return []sample{
		{"empty", graph.Structure{Name: "empty"}, Options{}},
		{"linear", linear(), Options{}},
		{"linear-right", linear(), Options{Direction: Right}},
		{"triage", triage(), Options{}},
		{"triage-right", triage(), Options{Direction: Right}},
		{"fanout", fanout(), Options{}},
		{"loops", loops(), Options{}},
		{"loops-right", loops(), Options{Direction: Right}},
		{"kinds", kinds(), Options{}},
		{"kinds-right", kinds(), Options{Direction: Right}},
		{"nested", nested(), Options{}},
		{"nested-bare", nested(), Options{NoEnds: true, NoRoutes: true, Title: "Without ends\nand \"routes\""}},
		{"triage-bare", triage(), Options{NoEnds: true}},
		{"kinds-bare", kinds(), Options{NoEnds: true, NoRoutes: true}},
		{"nested-right", nested(), Options{Direction: Right}},
		{"team", crew(), Options{}},
		{"team-right", crew(), Options{Direction: Right, NoEnds: true}},
		{"awkward", awkward(), Options{}},
		{"thirty", thirty(), Options{}},
	}
}

func plain(from, to string) graph.EdgeInfo {
	return graph.EdgeInfo{From: from, To: to, Kind: graph.EdgePlain}
}

func branch(from, to, label string) graph.EdgeInfo {
	return graph.EdgeInfo{From: from, To: to, Label: label, Kind: graph.EdgeBranch}
}

func route(from, to, label string) graph.EdgeInfo {
	return graph.EdgeInfo{From: from, To: to, Label: label, Kind: graph.EdgeRoute}
}

func failure(from, to, label string) graph.EdgeInfo {
	return graph.EdgeInfo{From: from, To: to, Label: label, Kind: graph.EdgeError}
}

func join(to string, group int, from ...string) []graph.EdgeInfo {
	var edges []graph.EdgeInfo
	for _, f := range from {
		edges = append(edges, graph.EdgeInfo{From: f, To: to, Kind: graph.EdgeJoin, Join: group})
	}
	return edges
}

func linear() graph.Structure {
	return graph.Structure{
		Name:  "summarize",
		Start: []string{"fetch"},
		Nodes: []graph.NodeInfo{
			{Name: "fetch", Kind: "script", Doc: "Reads the page."},
			{Name: "summarize", Kind: "llm", Title: "Write a summary"},
			{Name: "done", Kind: "end"},
		},
		Edges: []graph.EdgeInfo{plain("fetch", "summarize"), plain("summarize", "done"), plain("done", graph.End)},
	}
}

// crew is a node that runs graphs under names: a loop, one with a child graph, and
// one without nodes.
func crew() graph.Structure {
	loop := graph.Structure{Name: "explore", Start: []string{"think"}, Nodes: []graph.NodeInfo{{Name: "think", Kind: "llm"}, {Name: "act", Kind: "tools"}},
		Edges: []graph.EdgeInfo{branch("think", "act", "tools"), plain("act", "think"), branch("think", graph.End, "done")}}
	review := graph.Structure{Name: "review", Start: []string{"read"}, Nodes: []graph.NodeInfo{{Name: "read", Kind: "agent", Child: new(linear())}}, Edges: []graph.EdgeInfo{plain("read", graph.End)}}
	return graph.Structure{Name: "crew", Start: []string{"begin"}, Nodes: []graph.NodeInfo{{Name: "begin"},
		{Name: "team", Kind: "team", Children: map[string]graph.Structure{"lead": loop, "explore": loop, "review": review, "remote": {}}}, {Name: "done", Kind: "end"}},
		Edges: []graph.EdgeInfo{plain("begin", "team"), plain("team", "done"), plain("done", graph.End), failure("team", "team", "again")}}
}

func triage() graph.Structure {
	return graph.Structure{
		Name:  "triage",
		Start: []string{"ask"},
		Nodes: []graph.NodeInfo{
			{Name: "ask", Kind: "input"},
			{Name: "classify", Kind: "llm", Title: "Classify the ticket"},
			{Name: "lookup", Kind: "rag"},
			{Name: "draft", Kind: "llm", Title: "Draft an answer"},
			{Name: "review", Kind: "approval", Title: "Send this answer?"},
			{Name: "send", Kind: "script"},
			{Name: "escalate", Kind: "agent", Title: "Second level"},
			{Name: "sent", Kind: "end"},
			{Name: "closed", Kind: "end"},
			{Name: "failed", Kind: "end"},
		},
		Edges: []graph.EdgeInfo{
			plain("ask", "classify"),
			branch("classify", "lookup", "question"),
			branch("classify", "escalate", "incident"),
			branch("classify", "closed", "spam"),
			failure("classify", "failed", "fallback"),
			plain("lookup", "draft"),
			plain("draft", "review"),
			route("review", "send", "approve"),
			route("review", "draft", "revise"),
			route("review", "closed", "reject"),
			route("review", "escalate", "other"),
			plain("send", "sent"),
			failure("send", "failed", "fallback"),
			plain("escalate", "sent"),
		},
	}
}

func fanout() graph.Structure {
	edges := []graph.EdgeInfo{}
	for _, n := range []string{"web", "papers", "news"} {
		edges = append(edges, plain("plan", n))
	}
	edges = append(edges, plain("plan", "notes"))
	edges = append(edges, join("merge", 1, "web", "papers", "news")...)
	edges = append(edges, plain("notes", "write"), plain("merge", "write"), plain("write", graph.End))
	return graph.Structure{
		Name:  "research",
		Start: []string{"plan"},
		Nodes: []graph.NodeInfo{
			{Name: "plan", Kind: "llm"},
			{Name: "web", Kind: "agent", Title: "Search the web"},
			{Name: "papers", Kind: "agent", Title: "Read papers"},
			{Name: "news", Kind: "map", Title: "Scan the news"},
			{Name: "notes", Kind: "script", Title: "Keep notes"},
			{Name: "merge", Title: "Merge findings"},
			{Name: "write", Kind: "llm"},
		},
		Edges: edges,
	}
}

func loops() graph.Structure {
	return graph.Structure{
		Name:  "loops",
		Start: []string{"think"},
		Nodes: []graph.NodeInfo{
			{Name: "think", Kind: "llm"},
			{Name: "act", Kind: "tools"},
			{Name: "poll", Kind: "script"},
			{Name: "check", Kind: "approval"},
			{Name: "report", Kind: "llm"},
		},
		Edges: []graph.EdgeInfo{
			branch("think", "act", "tools"),
			plain("act", "think"),
			branch("think", "check", "answer"),
			branch("act", "poll", "wait"),
			route("poll", "poll", "again"),
			plain("poll", "check"),
			route("check", "think", "rework"),
			route("check", "act", "call again"),
			route("check", "report", "yes"),
			route("check", "report", "yes, but shorter"),
			failure("check", "report", ""),
			plain("report", graph.End),
		},
	}
}

func kinds() graph.Structure {
	s := graph.Structure{Name: "kinds", Start: []string{"llm", "input"}}
	names := []string{"llm", "agent", "team", "script", "tool", "approval", "input", "rag", "map", "graph", "function", "", "end"}
	for i, k := range names {
		name := k
		if k == "" {
			name = "no kind"
		}
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name, Kind: k})
		if i >= 3 {
			s.Edges = append(s.Edges, plain(s.Nodes[i-3].Name, name))
		}
	}
	return s
}

func nested() graph.Structure {
	inner := linear()
	inner.Nodes[1].Child = &graph.Structure{
		Name:  "writer",
		Start: []string{"outline"},
		Nodes: []graph.NodeInfo{{Name: "outline", Kind: "llm"}, {Name: "critic", Kind: "llm"}},
		Edges: []graph.EdgeInfo{plain("outline", "critic"), branch("critic", "outline", "weak"), branch("critic", graph.End, "good")},
	}
	return graph.Structure{
		Name:  "newsletter",
		Start: []string{"pick"},
		Nodes: []graph.NodeInfo{
			{Name: "pick", Kind: "llm", Title: "Pick the topics"},
			{Name: "article", Kind: "graph", Title: "One article", Child: &inner},
			{Name: "cover", Kind: "llm", Title: "Cover text"},
			{Name: "print", Kind: "script"},
		},
		Edges: append([]graph.EdgeInfo{
			plain("pick", "article"), plain("pick", "cover"),
			route("article", "article", "next topic"),
			failure("article", "pick", "empty"),
			plain("print", graph.End),
		}, join("print", 1, "article", "cover")...),
	}
}

// awkward has names and labels that mean something in the formats.
func awkward() graph.Structure {
	return graph.Structure{
		Name:  "awkward \"graph\" <b>&amp;</b>\nwith two lines",
		Start: []string{`say "hi"`},
		Nodes: []graph.NodeInfo{
			{Name: `say "hi"`, Title: `"quoted" | piped`, Doc: `a "doc" with <tags> & \N`},
			{Name: "end", Kind: "weird <kind>", Title: "end"},
			{Name: "[x](y){z}", Title: `back\slash \n \N`},
			{Name: "1. list", Title: "1. list *bold* _it_ `code` $$x$$"},
			{Name: "日本語", Title: "日本語のノード", Kind: "llm"},
			{Name: "two\nlines", Kind: "script"},
			{Name: "a_very_long_snake_case_name_that_must_be_broken_somewhere_because_nobody_can_read_it_in_one_line_and_it_goes_on_and_on_and_on"},
			{Name: "%%{init}%%;#35;&#35;"},
			{Name: "style x:#fff;"},
			{Name: "ctrl\x00\x1b[31m\xff"},
		},
		Edges: []graph.EdgeInfo{
			branch(`say "hi"`, "end", `a|b "c" <d> & e`),
			branch(`say "hi"`, "[x](y){z}", "line one\nline two"),
			route(`say "hi"`, "1. list", "--> ]]>"),
			plain("end", "日本語"),
			route("[x](y){z}", "two\nlines", "größer als 5"),
			failure("1. list", "a_very_long_snake_case_name_that_must_be_broken_somewhere_because_nobody_can_read_it_in_one_line_and_it_goes_on_and_on_and_on", "日本"),
			plain("日本語", "%%{init}%%;#35;&#35;"),
			plain("two\nlines", "style x:#fff;"),
			plain("two\nlines", "ctrl\x00\x1b[31m\xff"),
		},
	}
}

// thirty is a larger graph with edges of all lengths.
func thirty() graph.Structure {
	s := graph.Structure{Name: "thirty nodes", Start: []string{"n01"}}
	kinds := []string{"llm", "script", "approval", "rag", "agent", "map", "input"}
	name := func(i int) string { return fmt.Sprintf("n%02d", i) }
	for i := 1; i <= 30; i++ {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name(i), Kind: kinds[i%len(kinds)]})
		for _, j := range []int{2 * i, 2*i + 1} {
			if j <= 30 {
				s.Edges = append(s.Edges, plain(name(i), name(j)))
			}
		}
		if 2*i > 30 {
			s.Edges = append(s.Edges, plain(name(i), graph.End))
		}
	}
	s.Edges = append(s.Edges, branch(name(3), name(22), "skip"), route(name(20), name(2), "redo"),
		failure(name(9), name(30), "fallback"), route(name(27), name(13), "again"))
	return s
}
