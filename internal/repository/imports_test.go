package repository_test

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An importRule says what one package, or those below a directory that have no row of their own, may import of this module, and why. Tests are exempt.
type importRule struct {
	of      string
	may     []string // packages, and directories for all packages below them
	stdOnly bool     // it may not import anything outside the standard library either, except for this module
	reason  string
}

// importRules has rows for the packages that programs can import and those below them, sorted: they promise more than their storey does. What
// lies in internal/ may import what TestStoreys allows.
var importRules = []importRule{
	{of: "agent", may: []string{"graph", "graph/history", "graph/journal", "internal/base", "llm", "tool"},
		reason: "the loop of a model and its tools is a graph; its caller supplies models and tools"},
	{of: "agent/shape", may: []string{"agent", "graph", "internal/base", "llm", "tool"},
		reason: "the schema of a Go type is for agents that want answers of that type"},
	{of: "cmd/raddle", may: []string{"internal/terminal"},
		reason: "the program is its command line and nothing else"},
	{of: "docs/guide", stdOnly: true,
		reason: "the guides are texts: what shows them knows how"},
	{of: "draw", may: []string{"draw/internal/layered", "graph"},
		reason: "a picture shows the structure of a compiled graph, wherever that came from"},
	{of: "draw/internal/layered",
		reason: "the layout places boxes and lines; it need not know what they mean"},
	{of: "examples", stdOnly: true,
		reason: "the examples are files: what lists and runs them knows how"},
	{of: "examples/assistant/server",
		reason: "a server of tools is a program of its own, for any client"},
	{of: "examples/go", may: []string{"agent", "graph", "llm", "store", "team", "tool"},
		reason: "examples use the packages as a program of its own would: through what everybody may import"},
	{of: "flow", may: []string{"agent", "flow/check", "flow/hook", "flow/internal", "flow/spec", "graph", "graph/history", "internal/base", "llm", "memory", "rag", "rag/load", "team", "tool"},
		reason: "files become graphs of model calls and child processes; the caller supplies models, stores and terminals"},
	{of: "flow/check", may: []string{"flow/spec", "internal/base"},
		reason: "a check is a function of a file and of what the host knows, and runs nothing; what one type of node needs, the type brings along"},
	{of: "flow/flowtest", may: []string{"internal/proving"},
		reason: "the cases of agents are Go tests for programs that embed them; what runs them is that of raddle test"},
	{of: "flow/hook", may: []string{"internal/base", "tool/permission"},
		reason: "a hook is an entry of a file and a command; when it runs and whether the user has agreed, others know"},
	{of: "flow/internal/upgrade", may: []string{"flow/spec", "graph", "internal/base/jsonvalue"},
		reason: "migrations of files become those of graphs, and run nothing"},
	{of: "flow/narrate", may: []string{"agent", "flow", "graph", "internal/base", "internal/report/updates", "team"},
		reason: "texts for people are no part of loading and running: they follow from the events"},
	{of: "flow/spec", may: []string{"flow/hook", "internal/base", "tool"},
		reason: "a format is data: reading it needs no engine, no model and no other file; what is done about calls in doubt is a word of package tool"},
	{of: "graph", may: []string{"graph/internal/backoff", "graph/internal/eventqueue", "graph/internal/effectid", "graph/internal/fence", "graph/internal/fold", "graph/internal/lease", "graph/internal/migration", "graph/internal/namelist", "graph/internal/nearest", "graph/internal/ordinal", "graph/internal/panics", "graph/internal/probe", "graph/internal/process", "graph/internal/reach", "graph/internal/record", "graph/internal/ringcache", "graph/internal/runid", "graph/internal/structure", "graph/internal/timing", "graph/internal/value", "graph/internal/writer", "graph/journal"}, stdOnly: true,
		reason: "the engine knows nothing of models or files, and a program that uses it imports nothing else"},
	{of: "graph/graphtest", may: []string{"graph", "graph/graphtest/disturb", "graph/history", "graph/journal"},
		reason: "the suites see what a store or an executor sees"},
	{of: "graph/graphtest/disturb", may: []string{"graph", "graph/history", "graph/internal/probe", "graph/journal"}, stdOnly: true,
		reason: "whatever keeps a journal can be disturbed, also by programs, which do not need package testing for it"},
	{of: "graph/history", may: []string{"graph", "graph/internal/fence", "graph/internal/fold", "graph/internal/record", "graph/internal/structure", "graph/internal/value", "graph/journal"}, stdOnly: true,
		reason: "what is stored of a run can be read without its graph and without the code of its nodes"},
	{of: "graph/internal/backoff", stdOnly: true,
		reason: "how long a pause is does not depend on what is tried again"},
	{of: "graph/internal/eventqueue", stdOnly: true,
		reason: "what is passed on from goroutine to goroutine is no matter of how"},
	{of: "graph/internal/fence", may: []string{"graph/internal/fold", "graph/internal/process", "graph/internal/record", "graph/journal"}, stdOnly: true,
		reason: "a drive is ended through its lease, by drives and by what changes a stored run without its graph"},
	{of: "graph/internal/fold", may: []string{"graph/internal/panics", "graph/internal/record", "graph/internal/structure", "graph/journal"}, stdOnly: true,
		reason: "records are folded in one way for drives and for readers, and without a graph"},
	{of: "graph/internal/lease", may: []string{"graph/internal/fence", "graph/internal/fold", "graph/internal/panics", "graph/internal/process", "graph/internal/record", "graph/journal"}, stdOnly: true,
		reason: "whether a drive still has its thread says the store's lease; what it is used for is the drive's"},
	{of: "graph/internal/migration", may: []string{"graph/internal/nearest", "graph/internal/record", "graph/internal/structure"}, stdOnly: true,
		reason: "what a run holds is moved from graph to graph as records have it, and without code of nodes"},
	{of: "graph/internal/namelist", stdOnly: true,
		reason: "a list of names does not depend on what they name"},
	{of: "graph/internal/nearest", stdOnly: true,
		reason: "which name is near is a question about texts"},
	{of: "graph/internal/ordinal", stdOnly: true,
		reason: "how calls are counted by name does not depend on what they do"},
	{of: "graph/internal/panics", stdOnly: true,
		reason: "a recovered panic is an error with a stack, whoever recovers it"},
	{of: "graph/internal/probe", stdOnly: true,
		reason: "a test sees effects through a context, and the engine need not know which test"},
	{of: "graph/internal/process", stdOnly: true,
		reason: "who owns a lease is a question about processes, not about graphs"},
	{of: "graph/internal/reach", stdOnly: true,
		reason: "which nodes can run is a question about numbers"},
	{of: "graph/internal/record", may: []string{"graph/internal/value", "graph/internal/wire"}, stdOnly: true,
		reason: "what a record holds is described once, below everything that reads or writes one"},
	{of: "graph/internal/ringcache", stdOnly: true,
		reason: "a cache does not know what it keeps"},
	{of: "graph/internal/runid", stdOnly: true,
		reason: "an id is spelt in one way, whatever it names"},
	{of: "graph/internal/structure", stdOnly: true,
		reason: "the shape of a graph in a journal is read without the graph: its form is data"},
	{of: "graph/internal/timing", may: []string{"graph/internal/record"}, stdOnly: true,
		reason: "how long an effect took does not depend on what it did; its form is that of a record"},
	{of: "graph/internal/value", may: []string{"graph/internal/panics", "graph/internal/wire"}, stdOnly: true,
		reason: "how a Go value becomes bytes depends on its type only"},
	{of: "graph/internal/wire", stdOnly: true,
		reason: "it writes and reads bytes, and does not know what they mean"},
	{of: "graph/internal/writer", may: []string{"graph/internal/fold", "graph/internal/panics", "graph/internal/record", "graph/journal"}, stdOnly: true,
		reason: "a thread is written without knowing graphs"},
	{of: "graph/journal", may: []string{"graph/internal/process", "graph/internal/record"}, stdOnly: true,
		reason: "a store keeps records and leases, and does not know what they mean"},
	{of: "llm", may: []string{"internal/base"},
		reason: "what a model is asked and answers is the same for every vendor and without a network"},
	{of: "llm/anthropic", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/bedrock", may: []string{"llm", "llm/internal/wire"},
		reason: "a wire knows one provider's protocol, and what all wires share; credentials are its caller's"},
	{of: "llm/gemini", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/internal/wire", may: []string{"internal/base", "llm"},
		reason: "what the wires share: the exchange, streams, repaired histories, assembly of replies, classes of errors"},
	{of: "llm/internal/wiretest", may: []string{"llm"},
		reason: "the same failures are played to every wire"},
	{of: "llm/ollama", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/openai", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/script", may: []string{"internal/base", "llm"},
		reason: "a transcript can replace any vendor, so it knows none"},
	{of: "memory", may: []string{"rag/keyword"},
		reason: "values that outlive a run know no graph and no model: their caller supplies stores and embedding models"},
	{of: "memory/memorytest", may: []string{"memory"},
		reason: "the suite sees what a store sees"},
	{of: "rag", may: []string{"internal/base", "llm", "rag/keyword", "rag/load", "rag/split"},
		reason: "a knowledge base knows neither graphs nor vendors: its caller supplies embedding models"},
	{of: "rag/embed", may: []string{"internal/base", "llm", "rag"},
		reason: "the wires of embedding models: the caller supplies addresses and keys, failures are those of chat models"},
	{of: "rag/keyword",
		reason: "ranking texts by their words is a pure function"},
	{of: "rag/load", may: []string{"internal/base", "rag/pdftext"},
		reason: "documents come from files and from commands; its caller uses them"},
	{of: "rag/measure", may: []string{"internal/base/stats", "rag"},
		reason: "it asks a base questions, and knows neither agents nor files"},
	{of: "rag/pdftext",
		reason: "the text of a PDF file depends on its bytes alone"},
	{of: "rag/split",
		reason: "cutting text is a pure function"},
	{of: "server", may: []string{"agent", "flow", "flow/spec", "graph", "graph/journal", "internal/base", "internal/process", "internal/report/updates", "internal/storage", "llm"},
		reason: "it drives runs as the command line does, through internal/process/app, for callers that are programs; what a protocol says is below it"},
	{of: "server/a2a", may: []string{"agent", "graph", "internal/base", "internal/process", "internal/report/updates", "internal/storage", "server"},
		reason: "a protocol translates what package server does, and starts, drives and reads nothing itself"},
	{of: "server/acp", may: []string{"agent", "flow", "graph", "internal/base", "internal/process", "internal/report/updates", "internal/storage", "server", "tool"},
		reason: "a protocol translates what package server does; sessions of editors are conversations"},
	{of: "server/agui", may: []string{"agent", "flow", "graph", "graph/history", "graph/journal", "internal/base", "internal/report/updates", "internal/storage", "llm", "server"},
		reason: "a protocol translates what package server does, and starts, drives and reads nothing itself"},
	{of: "server/api", may: []string{"agent", "draw", "flow", "flow/spec", "graph", "graph/history", "graph/journal", "internal/base", "internal/process", "internal/proving", "internal/report", "internal/storage", "llm", "server"},
		reason: "it offers what the command line offers, and reads agents and runs as the command line does"},
	{of: "server/gateway", may: []string{"internal/base", "internal/storage/entries", "server"},
		reason: "who may call is the same for every protocol, and no protocol knows about tokens; all servers of a store know them"},
	{of: "server/mcp", may: []string{"agent", "flow", "flow/narrate", "flow/spec", "graph", "internal/base", "internal/process", "internal/report/updates", "internal/storage", "llm", "server"},
		reason: "a protocol translates what package server does; the lines of its progress are those of the command line"},
	{of: "server/openai", may: []string{"agent", "flow", "graph", "internal/base", "internal/report/updates", "internal/storage", "llm", "server"},
		reason: "OpenAI's wire is a translation of runs and their events, and knows nothing of how they are driven"},
	{of: "server/servertest", may: []string{"internal/process", "internal/testkit/llmtest", "server"},
		reason: "the tests of the protocols need the same service, home directory and web server"},
	{of: "server/studio",
		reason: "it serves files; what the page shows comes from the API"},
	{of: "server/webhook", may: []string{"graph/journal", "internal/base", "internal/process", "server"},
		reason: "a request fires a trigger of the store: what a trigger is, and who drives it, others know"},
	{of: "store/postgres", may: []string{"graph/journal", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "store/redis", may: []string{"graph/journal", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "store/sqlite", may: []string{"graph/journal", "internal/base", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "team", may: []string{"agent", "graph", "llm", "tool"},
		reason: "agents that spawn agents are child graphs of one node; their caller knows which agents there are"},
	{of: "tool", may: []string{"llm"},
		reason: "a tool is a function with a schema: it knows neither journals nor who gives permission"},
	{of: "tool/builtin", may: []string{"internal/base", "memory", "tool"},
		reason: "tools that come with the program: they do what a call says, and their caller checks permission"},
	{of: "tool/declare", may: []string{"tool"},
		reason: "a declaration is read from text alone: nothing runs, so nothing that runs things is needed"},
	{of: "tool/mcp", may: []string{"internal/base", "llm", "tool"},
		reason: "the tools of servers are tools like others; a server over stdio is a child process"},
	{of: "tool/permission", may: []string{"internal/base", "tool"},
		reason: "it decides from rules and from what a call would touch, and leaves asking and running to others"},
	{of: "tool/script", may: []string{"internal/base", "tool", "tool/declare"},
		reason: "a script is a child process whose arguments a declaration names"},
}

// openFiles may be imported by every package: TestFilesAreOpenedInOnePlace asks for it.
const openFiles = "internal/base/plainfile"

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name, "internal/") {
			continue
		}
		rule, ok := findImportRule(p.name)
		if !ok {
			t.Errorf("package %s has no row in importRules (imports_test.go): add one with what it may import and the reason", p.name)
			continue
		}
		for imported, place := range p.imports(t) {
			if why := rule.forbids(imported); why != "" {
				t.Errorf("%s: %s", place, why)
			}
		}
	}
}

// findImportRule returns the row of a package: its own, or the one of a directory above it.
func findImportRule(name string) (rule importRule, ok bool) {
	for _, r := range importRules {
		if lies(name, r.of) && len(r.of) > len(rule.of) {
			rule, ok = r, true
		}
	}
	return rule, ok
}

// lies reports whether a package is the one of a directory, or lies below it.
func lies(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// imports returns what the code of a package imports, with the places.
func (p *goPackage) imports(t *testing.T) iter.Seq2[string, string] {
	return func(yield func(imported, place string) bool) {
		for _, f := range p.code() {
			for _, spec := range f.syntax.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !yield(imported, fmt.Sprintf("%s:%d", f.path, f.line(spec))) {
					return
				}
			}
		}
	}
}

// forbids returns why an import breaks the rule, or "".
func (r importRule) forbids(imported string) string {
	if inModule, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		if inModule == openFiles || inModule == latePatterns || slices.ContainsFunc(r.may, func(dir string) bool { return lies(inModule, dir) }) {
			return ""
		}
		return fmt.Sprintf("%s may not import %s (%s): move the code to where it may, or change the row in importRules and say why",
			r.of, inModule, r.reason)
	}
	first, _, _ := strings.Cut(imported, "/")
	if r.stdOnly && (strings.Contains(first, ".") || imported == "C") {
		return fmt.Sprintf("%s may import the standard library only (%s), not %s", r.of, r.reason, imported)
	}
	return ""
}

func TestImportRulesAreTrue(t *testing.T) {
	exists := map[string]bool{}
	for _, p := range packages(t) {
		for name := p.name; name != "."; name = path.Dir(name) {
			exists[name] = true
		}
	}
	for i, r := range importRules {
		if !exists[r.of] {
			t.Errorf("importRules has a row for %s, which does not exist: delete the row", r.of)
		}
		if r.reason == "" {
			t.Errorf("the row of %s in importRules gives no reason: add one", r.of)
		}
		if i > 0 && importRules[i-1].of >= r.of {
			t.Errorf("importRules: %s comes after %s: sort the rows", r.of, importRules[i-1].of)
		}
		for _, m := range r.may {
			if !exists[m] {
				t.Errorf("the row of %s in importRules allows %s, which does not exist: delete it", r.of, m)
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	forbidden := []string{"types", "common", "util", "utils", "pkg", "core", "models", "manager", "helpers"}
	for _, p := range everything(t) {
		for _, part := range strings.Split(p.name, "/") {
			if slices.Contains(forbidden, part) {
				t.Errorf("package %s: %q says nothing about what is in it: name it by the thing it is for", p.name, part)
			}
		}
		for _, f := range p.code() {
			if name := f.syntax.Name.Name; slices.Contains(forbidden, name) {
				t.Errorf("%s: package name %q says nothing about what is in it: name it by the thing it is for", f.path, name)
			}
		}
	}
}
