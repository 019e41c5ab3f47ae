package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/strictyaml"
)

// adviseRoutes reports a node that leads to no other node, and a next that is
// ignored.
func (a *adviser) adviseRoutes(n *spec.Node) {
	if !a.reached[n.ID] {
		return
	}
	kind := n.Kind()
	switch kind {
	case "agent", "input", "llm", "map", "rag":
		if n.Next == nil {
			a.warnAt(n, n.Pos(), "missing-next", fmt.Sprintf("%s node has no `next`: the run fails when the node succeeds", kind), "add `next: <node>`")
		}
	case "approval", "end":
		if n.Next != nil {
			a.warnAt(n, n.At("next"), "next-ignored", fmt.Sprintf("`next` of an %s node is not followed", kind), "remove it")
		}
		return
	case "script":
		if s, ok := n.Body.(*spec.ScriptNode); ok && n.Next == nil && s.Fallback == "" {
			return // its script may choose the next node itself
		}
	}
	if n.Next != nil && len(n.Next) == 0 {
		a.warnAt(n, n.At("next"), "missing-next", "`next` is an empty list: the run fails after this node", "name a node, or remove `next`")
	}
	if kind == "input" && len(n.Next) > 1 {
		a.warnAt(n, n.At("next"), "next-ignored", "an input node goes to the first node of its `next` only", "")
	}
}

// adviseLimits reports times and counts of zero.
func (a *adviser) adviseLimits(n *spec.Node) {
	zero := func(field string, is bool, effect string) {
		if is {
			a.warnAt(n, n.At(field), "zero-limit", fmt.Sprintf("`%s` is 0: %s", field, effect), "")
		}
	}
	const late = "the node times out at once"
	isZero := func(p *int) bool { return p != nil && *p == 0 }
	switch b := n.Body.(type) {
	case *spec.AgentNode:
		zero("timeout", b.Timeout == 0, late)
	case *spec.ScriptNode:
		zero("timeout", b.Timeout == 0, late)
	case *spec.LLMNode:
		zero("timeout", b.Timeout != nil && *b.Timeout == 0, late)
		zero("max_attempts", b.MaxAttempts == 0, "the model is never called and the node fails")
		zero("max_iterations", b.MaxIterations == 0, "the model is never called and the node fails")
		if b.Patience != nil && b.Timeout != nil && *b.Patience > *b.Timeout {
			a.warnAt(n, n.At("retry_patience"), "patience-timeout", fmt.Sprintf("`retry_patience` is %d and `timeout` is %d: waits count for the timeout, which ends the node first", *b.Patience, *b.Timeout), "")
		}
	case *spec.RAGNode:
		zero("timeout", b.Timeout == 0, late)
		zero("top_k", isZero(b.TopK), "nothing is ever found")
		zero("chunk_size", isZero(b.ChunkSize), "documents cannot be split")
		zero("batch_size", isZero(b.BatchSize), "nothing can be embedded")
	}
}

// adviseNode reports the mistakes that are possible in one type of node only.
func (a *adviser) adviseNode(n *spec.Node) {
	switch b := n.Body.(type) {
	case *spec.ScriptNode:
		a.adviseScript(n, b)
	case *spec.InputNode:
		if b.Validation != "" {
			if _, err := spec.ParsePredicate(b.Validation); err != nil {
				a.warnAt(n, n.At("validation"), "validation", err.Error()+": every answer is refused", "write for example `len(input) > 0`")
			}
		}
	case *spec.ApprovalNode:
		if len(b.Options) == 0 {
			a.warnAt(n, n.At("options"), "no-options", "approval without options: every answer is free text", "an input node asks for text")
		}
	case *spec.RAGNode:
		a.adviseRetrieval(n, b)
	case *spec.MapNode:
		if b.Over.SinglePath() == nil {
			a.warnAt(n, n.At("over"), "map-over", "`over` is not one placeholder, so it is a text and not a list: the node fails", "write it as \"{{key}}\" alone")
		}
	}
	a.adviseSchema(n)
}

// scriptExtensions are the extensions that decide how a script is run.
var scriptExtensions = []string{".sh", ".py", ".ts"}

func (a *adviser) adviseScript(n *spec.Node, s *spec.ScriptNode) {
	ext := strings.ToLower(filepath.Ext(s.Script))
	switch {
	case slices.Contains(scriptExtensions, ext):
	case ext == "" || ext == ".":
		a.warnAt(n, n.At("script"), "script-extension", fmt.Sprintf("script '%s' has no file extension: raddle does not know how to run it", s.Script), "use .sh, .py or .ts")
	default:
		a.warnAt(n, n.At("script"), "script-extension", fmt.Sprintf("unsupported script extension '%s'", ext), "use .sh, .py or .ts")
	}
}

func (a *adviser) adviseRetrieval(n *spec.Node, r *spec.RAGNode) {
	switch id := strings.ToLower(n.ID); {
	case id == "graph" || id == "config" || id == "rag":
		a.warnAt(n, n.Pos(), "rag-file", fmt.Sprintf("the knowledge base of this node would be the file %s.yaml, which means something else", n.ID), "give the node another id")
	case strings.ContainsAny(n.ID, `/\`) || strings.HasPrefix(n.ID, "."):
		a.warnAt(n, n.Pos(), "rag-file", fmt.Sprintf("the knowledge base of this node would be the file '%s.yaml', outside the agent directory or hidden", n.ID), "give the node an id of letters, digits, - and _")
	}
	if r.ChunkSize != nil && r.ChunkOverlap != nil && *r.ChunkSize > 0 && *r.ChunkOverlap >= *r.ChunkSize {
		a.warnAt(n, n.At("chunk_overlap"), "rag-chunks", fmt.Sprintf("`chunk_overlap` (%d) must be smaller than `chunk_size` (%d)", *r.ChunkOverlap, *r.ChunkSize), "")
	}
	if r.Driver != "" && r.Driver != spec.OwnDriver && ragDrivers[r.Driver] {
		a.Add(strictyaml.Finding{Severity: strictyaml.SeverityInfo, Code: "rag-driver", Node: n.ID, Message: spec.DescribeDriver(r.Driver), Pos: n.At("driver")})
	}
	place := n.Src.ItemPositions("documents")
	for i, d := range r.Documents {
		if !strings.Contains(d, "://") && slices.Contains(strings.Split(filepath.ToSlash(d), "/"), "..") {
			a.warnAt(n, place(i), "rag-document", fmt.Sprintf("Invalid document path: '%s'", d), "documents must not be above the agent directory")
		}
	}
}

// adviseSchema reports an output_schema that is not a schema.
func (a *adviser) adviseSchema(n *spec.Node) {
	schema := n.OutputSchema()
	if _, ok := schema.(*jsonvalue.Object); schema != nil && !ok {
		a.warnAt(n, n.At("output_schema"), "output-schema", fmt.Sprintf("`output_schema` is %s, not a map", jsonvalue.TypeName(schema)), "write a JSON schema: `type: object` and `properties`")
	}
}

// fanOuts reports parallel branches that always conflict.
func (a *adviser) fanOuts() {
	for _, g := range fanOutGroups(a.f) {
		ends := 0
		by := map[string]*spec.Node{} // maps by the key they collect into
		for _, n := range g.members {
			switch b := n.Body.(type) {
			case *spec.EndNode:
				ends++
			case *spec.MapNode:
				if other := by[b.CollectInto]; other != nil && a.f.Reducer(b.CollectInto) == "" {
					a.warnAt(n, n.At("collect_into"), "parallel-collect",
						fmt.Sprintf("nodes '%s' and '%s' run at the same time and both write `%s`, which has no reducer", other.ID, n.ID, b.CollectInto), "collect into different keys")
				}
				by[b.CollectInto] = n
			}
		}
		if ends > 1 {
			a.warnAt(g.from, g.from.At("next"), "parallel-ends", "`next` leads to several end nodes at once: the run fails there", "let the branches meet in one node")
		}
	}
}
