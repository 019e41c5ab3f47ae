package draw

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph"
)

var update = flag.Bool("update", false, "write the golden files anew")

var extensions = map[string]string{"text": "txt", "mermaid": "mmd", "dot": "dot", "svg": "svg", "json": "json"}

// TestGolden compares every sample in every text format with its file. Look at the pictures after an update.
func TestGolden(t *testing.T) {
	for _, tt := range samples() {
		for _, format := range Formats() {
			if format == "png" {
				continue // its bytes hang on the compressor; see TestPNG
			}
			t.Run(tt.name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := Write(&b, format, tt.s, tt.o); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", tt.name+"."+extensions[format])
				if *update {
					if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), b.String()); d != "" {
					t.Errorf("%s differs (-want +got), run with -update and look:\n%s", file, d)
				}
			})
		}
	}
}

func TestWriteUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, "gif", linear(), Options{})
	if err == nil || !strings.Contains(err.Error(), `"gif"`) || !strings.Contains(err.Error(), "mermaid, dot, svg, png, json") {
		t.Errorf("got %v, want an error that names the format and lists the known ones", err)
	}
}

func TestFaults(t *testing.T) {
	node := func(names ...string) (list []graph.NodeInfo) {
		for _, n := range names {
			list = append(list, graph.NodeInfo{Name: n})
		}
		return list
	}
	endless := graph.Structure{Name: "endless", Nodes: node("a")}
	endless.Nodes[0].Child = &endless
	recruits := graph.Structure{Name: "recruits", Nodes: []graph.NodeInfo{{Name: "a", Children: map[string]graph.Structure{}}}}
	recruits.Nodes[0].Children["again"] = recruits // it shares the map
	wide := graph.Structure{Name: "level 0", Nodes: node("a")}
	for range 20 {
		child := wide
		wide = graph.Structure{Name: "wide", Nodes: []graph.NodeInfo{{Name: "a", Child: &child}, {Name: "b", Child: &child}}}
	}
	tests := []struct {
		name string
		s    graph.Structure
		want string
	}{
		{"unknown start", graph.Structure{Name: "g", Start: []string{"x"}}, `graph "g": starts at node "x"`},
		{"unknown from", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain("x", "a")}}, `from node "x"`},
		{"unknown to", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain("a", "x")}}, `from "a" to node "x"`},
		{"from the end", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain(graph.End, "a")}}, `leads from END to "a"`},
		{"same name", graph.Structure{Name: "g", Nodes: node("a", "a")}, `two nodes are named "a"`},
		{"endless", endless, "does it contain itself?"},
		{"endless by name", recruits, "does it contain itself?"},
		{"too large", wide, "more than 20000 nodes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, format := range Formats() {
				if format == "json" && !strings.HasPrefix(tt.name, "endless") && tt.name != "too large" {
					continue // JSON shows also what cannot be drawn
				}
				err := Write(&bytes.Buffer{}, format, tt.s, Options{})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: got %v, want an error with %q", format, err, tt.want)
				}
			}
		})
	}
}

// failing is a writer that takes no more.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorIsReported(t *testing.T) {
	for _, format := range Formats() {
		if err := Write(failing{}, format, triage(), Options{}); err == nil {
			t.Errorf("%s: a failed write is not reported", format)
		}
	}
}

// sample is a structure used by the golden tests and the benchmarks.
type sample struct {
	name string
	s    graph.Structure
	o    Options
}

// triageRun is a run of triage that failed at one node and waits at another.
func triageRun(theme Theme) Options {
	s := triage()
	o := Options{Theme: theme, Title: "triage · a run", Run: map[string]Note{}, Taken: map[[2]string]bool{}}
	for i, n := range s.Nodes[:len(s.Nodes)/2+1] {
		o.Run[n.Name] = Note{Status: [...]string{StatusDone, StatusDone, StatusFailed, StatusWaiting, StatusRunning}[i%5], Text: "2× · 1.2 s · 85 tokens"}
	}
	for _, e := range s.Edges {
		if o.Run[e.From].Status == StatusDone {
			o.Taken[[2]string{e.From, e.To}] = true
		}
	}
	return o
}

func samples() []sample {
	return []sample{
		{"empty", graph.Structure{Name: "empty"}, Options{}},
		{"linear", linear(), Options{}},
		{"linear-right", linear(), Options{Direction: Right}},
		{"triage", triage(), Options{}},
		{"triage-right", triage(), Options{Direction: Right}},
		{"fanout", fanout(), Options{}},
		{"triage-run", triage(), triageRun(Light)},
		{"triage-dark", triage(), triageRun(Dark)},
		{"triage-auto", triage(), triageRun(Auto)},
		{"triage-narrow", triage(), Options{Columns: 30, ASCII: true}},
		{"loops-ascii", loops(), Options{ASCII: true}},
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

// chaos is a graph of n nodes with edges of all lengths and directions. It is the same for the same n.
func chaos(n int) graph.Structure {
	s := graph.Structure{Name: fmt.Sprint(n, " nodes"), Start: []string{"node 0"}}
	seed := uint32(1)
	random := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	kinds := []string{"llm", "script", "approval", "rag", "agent", "map", "input", "tool", "function"}
	name := func(i int) string { return fmt.Sprint("node ", i) }
	for i := range n {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name(i), Kind: kinds[random(len(kinds))]})
		if i > 0 {
			s.Edges = append(s.Edges, plain(name(max(0, i-1-random(6))), name(i)))
		}
		switch random(8) {
		case 0:
			s.Edges = append(s.Edges, branch(name(i), name(random(n)), fmt.Sprint("case ", i)))
		case 1:
			s.Edges = append(s.Edges, route(name(i), name(random(i+1)), "back"))
		case 2:
			s.Edges = append(s.Edges, failure(name(i), graph.End, ""))
		}
	}
	return s
}

func BenchmarkSVG(b *testing.B) {
	for _, n := range []int{10, 50, 200} {
		s := chaos(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := WriteSVG(io.Discard, s, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPNG(b *testing.B) {
	s := triage()
	b.ReportAllocs()
	for b.Loop() {
		if err := WritePNG(io.Discard, s, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	s := chaos(200)
	for name, draw := range map[string]func(io.Writer, graph.Structure, Options) error{"mermaid": WriteMermaid, "dot": WriteDOT} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := draw(io.Discard, s, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
