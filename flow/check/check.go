package check

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/internal/wording"
	"raddle.dev/rag"
)

// ValidateFile runs the validator of the file format on a graph: all checks in a fixed
// order, each through the nodes in file order. The findings and their texts are
// defined by the format. A graph with errors is not run unless it disables the
// validator. See also [ProvePlaceholders] and [AdviseFile].
func ValidateFile(f *spec.File, k Context) []strictyaml.Finding {
	c := &checker{f: f, k: k, w: f.BuildNetwork(), Report: strictyaml.Report{Class: strictyaml.ClassValidate}}
	c.checkTargets()
	c.checkCycles()
	c.checkReachability()
	c.checkScripts()
	c.checkAgents()
	c.checkApprovals()
	c.checkRetrieval()
	c.checkModels()
	c.checkSkills()
	c.checkConcurrency()
	c.mapBranches()
	c.checkInteraction()
	c.parallelWrites()
	c.parallelReads()
	return c.Findings
}

// checker is one run of the validator.
type checker struct {
	strictyaml.Report
	f *spec.File
	k Context
	w *spec.Network
}

// errorAt reports an error of a node.
func (c *checker) errorAt(n *spec.Node, at strictyaml.Pos, code, format string, args ...any) {
	c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: code, Node: n.ID, Message: fmt.Sprintf(format, args...), Pos: at})
}

func (c *checker) warnAt(n *spec.Node, at strictyaml.Pos, code, message string) {
	c.Add(strictyaml.Finding{Severity: strictyaml.SeverityWarning, Code: code, Node: n.ID, Message: message, Pos: at})
}

// addGraphFinding reports a finding that is not about a single node.
func (c *checker) addGraphFinding(s strictyaml.Severity, at strictyaml.Pos, code, message string) {
	c.Add(strictyaml.Finding{Severity: s, Code: code, Message: message, Pos: at})
}

func (c *checker) checkTargets() {
	var ids []string
	for _, n := range c.f.Nodes {
		ids = append(ids, n.ID)
	}
	for _, n := range c.f.Nodes {
		for _, e := range n.DeclaredEdges() {
			if c.f.Node(e.To) != nil || c.IsFull() {
				continue
			}
			c.Add(strictyaml.Finding{
				Severity: strictyaml.SeverityError, Code: "unknown-target", Node: n.ID,
				Message: fmt.Sprintf("References non-existent node '%s' in %s", e.To, e.Label),
				Hint:    wording.SuggestNearest(e.To, ids, "`"), Pos: n.Src.ItemPositions(e.Field)(e.Item),
			})
		}
	}
}

func (c *checker) checkCycles() {
	loop := c.w.FindCycle()
	if loop == nil {
		return
	}
	var ids []string
	for _, i := range append(loop, loop[0]) {
		ids = append(ids, c.f.Nodes[i].ID)
	}
	c.Add(strictyaml.Finding{
		Severity: strictyaml.SeverityError, Code: "cycle", Message: "Cycle detected: " + strings.Join(ids, " -> "),
		Hint: "a loop goes through a script node that emits `_next`", Pos: c.f.Nodes[loop[0]].Pos(),
	})
}

func (c *checker) checkReachability() {
	seen := c.w.ReachableFrom(c.w.Index[c.f.Start])
	ends, reached := 0, false
	for i, n := range c.f.Nodes {
		if !seen[i] {
			c.warnAt(n, n.Pos(), "unreachable", "Node is unreachable from the start node via declared edges (script `_next` routing is not analyzed)")
		}
		if n.Kind() == "end" {
			ends++
			reached = reached || seen[i]
		}
	}
	switch {
	case ends == 0:
		c.addGraphFinding(strictyaml.SeverityError, c.f.At("nodes"), "no-end", "Graph has no end nodes; execution would never terminate")
	case !reached:
		c.addGraphFinding(strictyaml.SeverityWarning, c.f.At("start"), "end-unreachable",
			"No end node is reachable from the start node via declared edges (a script's `_next` may still route to one)")
	}
}

func (c *checker) checkScripts() {
	for _, n := range c.f.Nodes {
		s, ok := n.Body.(*spec.ScriptNode)
		if !ok || c.k.Dir == "" {
			continue
		}
		if path := spec.ScriptPath(c.k.Dir, s.Script); !hasFile(path) {
			c.errorAt(n, n.At("script"), "script-missing", "Script file not found: '%s'", path)
			continue
		}
		c.workingDir(n, s)
	}
}

func (c *checker) checkAgents() {
	for _, n := range c.f.Nodes {
		a, ok := n.Body.(*spec.AgentNode)
		if !ok || c.k.Dir == "" {
			continue
		}
		switch found, defined := c.k.lookAgent(a.Agent); {
		case !found:
			c.errorAt(n, n.At("agent"), "agent-missing", "Agent '%s' not found (directory missing)", a.Agent)
		case !defined:
			c.errorAt(n, n.At("agent"), "agent-undefined", "Agent '%s' has neither a config.yaml nor a graph.yaml", a.Agent)
		}
	}
}

func (c *checker) checkApprovals() {
	for _, n := range c.f.Nodes {
		a, ok := n.Body.(*spec.ApprovalNode)
		if !ok {
			continue
		}
		options, routes := map[string]bool{}, map[string]bool{}
		for _, r := range a.Routes {
			routes[r.Answer] = true
		}
		optionAt, routeAt := n.Src.ItemPositions("options"), n.Src.KeyPositions("routes")
		for i, o := range a.Options {
			options[o] = true
			if !routes[o] {
				c.errorAt(n, optionAt(i), "option-without-route", "Approval option '%s' has no route defined", o)
			}
		}
		for i, r := range a.Routes {
			if !options[r.Answer] {
				c.warnAt(n, routeAt(i), "route-without-option", fmt.Sprintf("Route '%s' has no corresponding option", r.Answer))
			}
		}
	}
}

// ragDrivers are the storage drivers of knowledge bases.
var ragDrivers = map[string]bool{"": true, "yaml": true, "duckdb": true, "qdrant": true}

func (c *checker) checkRetrieval() {
	for _, n := range c.f.Nodes {
		r, ok := n.Body.(*spec.RAGNode)
		if !ok {
			continue
		}
		if len(r.Documents) == 0 {
			c.errorAt(n, n.At("documents"), "rag-documents", "RAG node has no 'documents'; at least one knowledge source is required")
		}
		if n.Updates == nil {
			c.warnAt(n, n.Pos(), "rag-result-unused", "RAG node has no 'state_updates'; its retrieval result will not be written to state")
		}
		if r.ExtractorPrompt != "" && !strings.Contains(r.ExtractorPrompt, rag.ChunkMark) {
			c.errorAt(n, n.At("extractor_prompt"), "rag-extractor", "`extractor_prompt` does not contain %s, so it never shows the model a chunk", rag.ChunkMark)
		}
		if !ragDrivers[r.Driver] {
			c.errorAt(n, n.At("driver"), "rag-driver", "Unknown RAG driver '%s'. Valid drivers: yaml, duckdb, qdrant.", r.Driver)
		}
	}
}

// checkModels checks the names in llm nodes: tools and servers in the order of the
// list, then the model.
func (c *checker) checkModels() {
	if !c.k.Loaded {
		return
	}
	known := c.k
	known.Servers = slices.Concat(known.Servers, NamedServers(c.f))
	tools := known.toolNames(hasKind(c.f, "agent"))
	servers := map[string]bool{}
	for _, s := range known.Servers {
		servers[s] = true
	}
	for _, n := range c.f.Nodes {
		if r, ok := n.Body.(*spec.RAGNode); ok {
			c.ragModels(n, r)
		}
		l, ok := n.Body.(*spec.LLMNode)
		if !ok {
			continue
		}
		toolAt := n.Src.ItemPositions("tools")
		for i, tool := range l.Tools {
			server, isServer := strings.CutPrefix(tool, "mcp:")
			switch {
			case isServer && !servers[server] && WantsAllServers(c.f):
				c.warnAt(n, toolAt(i), "unknown-server", fmt.Sprintf("there is no MCP server '%s'; the node runs without it", server))
			case isServer && !servers[server]:
				c.errorAt(n, toolAt(i), "unknown-server", "llm node references unknown MCP server '%s'", tool)
			case !isServer && !tools[spec.ToolStem(tool)]:
				c.errorAt(n, toolAt(i), "unknown-tool", "llm node references unknown tool '%s'", tool)
			}
		}
		if l.Model != "" && (c.k.Model == nil || !c.k.Model(l.Model)) {
			found := strictyaml.Finding{Severity: strictyaml.SeverityError, Code: "unknown-model", Node: n.ID, Message: fmt.Sprintf("llm node references unknown model '%s'", l.Model), Pos: n.At("model")}
			if c.k.ModelHint != nil {
				found.Hint = c.k.ModelHint(l.Model)
			}
			c.Add(found)
		}
	}
}

// WantsAllServers reports whether mcp_servers requests every server. Then a node
// may name a server that exists only on other machines: the graph runs without
// it.
func WantsAllServers(f *spec.File) bool { return slices.Equal(f.MCPServers, []string{"all"}) }

// NamedServers returns the ids in the graph's mcp_servers. They count as known
// even if no mcp.json defines them: the graph then runs without these servers.
func NamedServers(f *spec.File) []string {
	if WantsAllServers(f) {
		return nil
	}
	return f.MCPServers
}

// hasKind reports whether a graph has a node of a type.
func hasKind(f *spec.File, name string) bool {
	for _, n := range f.Nodes {
		if n.Kind() == name {
			return true
		}
	}
	return false
}

// ragModels warns about models that no client has.
func (c *checker) ragModels(n *spec.Node, r *spec.RAGNode) {
	unknown := func(id string) bool { return id != "" && (c.k.Model == nil || !c.k.Model(id)) }
	if unknown(r.ExtractorModel) {
		c.warnAt(n, n.At("extractor_model"), "unknown-model", fmt.Sprintf("rag node references unknown model '%s'", r.ExtractorModel))
	}
	if r.EmbeddingModel != rag.Keyword && unknown(r.EmbeddingModel) {
		c.warnAt(n, n.At("embedding_model"), "unknown-model", fmt.Sprintf("rag node references unknown embedding model '%s'", r.EmbeddingModel))
	}
	if unknown(r.RerankerModel) {
		c.warnAt(n, n.At("reranker_model"), "unknown-model", fmt.Sprintf("rag node references unknown reranker model '%s'", r.RerankerModel))
	}
}
