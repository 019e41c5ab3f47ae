package raddle_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An importRule says what one package may import of this module, and why. Tests are exempt.
type importRule struct {
	of      string
	may     []string
	stdOnly bool // it may not import anything outside the standard library either, except for this module
	reason  string
}

// importRules has one row for each package of the module, sorted. It allows what ARCHITECTURE.md draws.
var importRules = []importRule{
	{of: "agent", may: []string{"graph", "graph/history", "graph/journal", "internal/redact", "llm", "tool", "internal/wording", "internal/toolschema"},
		reason: "the loop of a model and its tools is a graph; its caller supplies models and tools"},
	{of: "agent/shape", may: []string{"agent", "graph", "llm", "tool", "internal/wording"},
		reason: "the schema of a Go type is for agents that want answers of that type"},
	{of: "cmd/raddle", may: []string{"internal/cli"},
		reason: "the program is its command line and nothing else"},
	{of: "docs/guide", stdOnly: true,
		reason: "the guides are texts: what shows them knows how"},
	{of: "draw", may: []string{"draw/internal/layered", "graph"},
		reason: "a picture shows the structure of a compiled graph, wherever that came from"},
	{of: "draw/internal/layered",
		reason: "the layout places boxes and lines; it need not know what they mean"},
	{of: "examples/assistant/server",
		reason: "a server of tools is a program of its own, for any client"},
	{of: "examples/go/approval", may: []string{"graph", "graph/history", "graph/journal", "store/sqlite"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/breakpoints", may: []string{"graph", "graph/journal"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/mapreduce", may: []string{"graph"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/nested", may: []string{"graph", "graph/journal"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/streams", may: []string{"graph"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/team", may: []string{"agent", "agent/shape", "graph", "graph/history", "llm", "llm/script", "store/sqlite", "team", "tool"},
		reason: "examples use the packages as a program of its own would: through what everybody may import"},
	{of: "examples/go/timetravel", may: []string{"graph", "graph/history", "graph/journal"},
		reason: "examples use the engine as a program of its own would: through what everybody may import"},
	{of: "examples/go/toolloop", may: []string{"agent", "agent/shape", "graph", "llm", "llm/script", "store/sqlite", "tool"},
		reason: "examples use the packages as a program of its own would: through what everybody may import"},
	{of: "flow", may: []string{"agent", "graph", "graph/history", "internal/environ", "internal/hook", "internal/interpreter", "internal/proc", "internal/redact", "internal/skill", "internal/tempdir", "internal/term", "llm", "memory", "rag", "rag/load", "team", "tool", "internal/wording", "internal/strictyaml", "internal/jsonvalue", "flow/spec", "flow/check"},
		reason: "files become graphs of model calls and child processes; the caller supplies models, stores and terminals"},
	{of: "flow/check", may: []string{"flow/spec", "internal/jsonvalue", "internal/strictyaml", "internal/wording"},
		reason: "a check is a function of a file and of what the host knows, and runs nothing; what one type of node needs, the type brings along"},
	{of: "flow/flowtest", may: []string{"internal/testcase", "internal/testrun"},
		reason: "the cases of agents are Go tests for programs that embed them; what runs them is that of raddle test"},
	{of: "flow/spec", may: []string{"internal/hook", "internal/jsonvalue", "internal/strictyaml", "internal/wording", "tool"},
		reason: "a format is data: reading it needs no engine, no model and no other file; what is done about calls in doubt is a word of package tool"},
	{of: "graph", may: []string{"graph/internal/fence", "graph/internal/fold", "graph/internal/nearest", "graph/internal/ordinal", "graph/internal/panics", "graph/internal/probe", "graph/internal/process", "graph/internal/structure", "graph/internal/value", "graph/internal/wire", "graph/internal/writer", "graph/journal"}, stdOnly: true,
		reason: "the engine knows nothing of models or files, and a program that uses it imports nothing else"},
	{of: "graph/graphtest", may: []string{"graph", "graph/graphtest/disturb", "graph/history", "graph/journal"},
		reason: "the suites see what a store or an executor sees"},
	{of: "graph/graphtest/disturb", may: []string{"graph", "graph/history", "graph/internal/probe", "graph/journal"}, stdOnly: true,
		reason: "whatever keeps a journal can be disturbed, also by programs, which do not need package testing for it"},
	{of: "graph/history", may: []string{"graph", "graph/internal/fence", "graph/internal/fold", "graph/internal/structure", "graph/internal/value", "graph/internal/wire", "graph/journal"}, stdOnly: true,
		reason: "what is stored of a run can be read without its graph and without the code of its nodes"},
	{of: "graph/internal/fence", may: []string{"graph/internal/fold", "graph/internal/process", "graph/journal"}, stdOnly: true,
		reason: "a drive is ended through its lease, by drives and by what changes a stored run without its graph"},
	{of: "graph/internal/fold", may: []string{"graph/internal/panics", "graph/internal/structure", "graph/internal/value", "graph/internal/wire", "graph/journal"}, stdOnly: true,
		reason: "records are folded in one way for drives and for readers, and without a graph"},
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
	{of: "graph/internal/structure", may: []string{"graph/internal/wire"}, stdOnly: true,
		reason: "the shape of a graph in a journal is read without the graph: its form is data"},
	{of: "graph/internal/value", may: []string{"graph/internal/panics", "graph/internal/wire"}, stdOnly: true,
		reason: "how a Go value becomes bytes depends on its type only"},
	{of: "graph/internal/wire", stdOnly: true,
		reason: "it writes and reads bytes, and does not know what they mean"},
	{of: "graph/internal/writer", may: []string{"graph/internal/fold", "graph/internal/panics", "graph/internal/wire", "graph/journal"}, stdOnly: true,
		reason: "a thread is written without knowing graphs"},
	{of: "graph/journal", may: []string{"graph/internal/process", "graph/internal/value", "graph/internal/wire"}, stdOnly: true,
		reason: "a store keeps records and leases, and does not know what they mean"},
	{of: "internal/agentbundle", may: []string{"graph/journal", "internal/failure", "internal/redact"},
		reason: "files are packed, kept in a store and written again; which agent they are of, and who may run it, is not known here"},
	{of: "internal/app", may: []string{
		"agent", "flow", "flow/check", "graph", "graph/history", "graph/journal", "internal/agentbundle", "internal/attach", "internal/bundle", "internal/config", "internal/environ", "internal/failure", "internal/foreign", "internal/jsonvalue", "internal/keystore", "internal/mcplogin", "internal/provider", "internal/redact", "internal/runs", "internal/strictyaml", "internal/telemetry", "internal/tempdir",
		"internal/toolbox", "internal/wording", "llm", "memory", "rag", "rag/embed", "tool", "tool/builtin", "tool/permission", "tool/script"},
		reason: "it puts a process together from all parts, and is the only one to know how an agent gets its models, tools and permissions"},
	{of: "internal/attach", may: []string{"internal/failure", "internal/wording", "llm"},
		reason: "what a file is depends on its bytes and its name; who adds it to a prompt is not known here"},
	{of: "internal/box", may: []string{"internal/proc"},
		reason: "what a box allows is the caller's matter: it knows paths and processes, and no rules"},
	{of: "internal/browser", may: []string{"internal/environ"},
		reason: "the browser is opened for logins of providers and for the Studio"},
	{of: "internal/bundle", stdOnly: true,
		reason: "files that are written to a directory: its caller knows what agents are and where they go"},
	{of: "internal/catalogue", may: []string{"agent"},
		reason: "facts about models are a file; which client reaches which provider is not known here"},
	{of: "internal/chat", may: []string{"internal/sandbox", "agent", "flow", "graph", "internal/app", "internal/attach", "internal/config", "internal/conversation", "internal/failure", "internal/provider", "internal/term", "internal/term/editor", "internal/wording", "llm", "tool/permission"},
		reason: "it is the conversation on a terminal; what shows a run comes from the command line"},
	{of: "internal/cli", may: []string{"internal/sandbox", "agent", "internal/chat", "internal/commandline", "internal/mcpsetup", "docs/guide", "draw", "flow", "graph", "graph/history", "graph/journal", "internal/app", "internal/attach", "internal/config", "internal/doctor", "internal/eventlog", "internal/failure", "internal/gather", "internal/keystore", "internal/modeltest", "internal/modelview", "internal/overview", "internal/provider", "internal/question", "internal/replay", "internal/runfile", "internal/runs", "internal/schema", "internal/setup", "internal/storetool", "internal/story", "internal/term", "internal/term/excerpt", "internal/term/progress", "internal/testrun", "internal/toolbox", "llm", "memory", "team", "tool", "tool/permission", "internal/wording", "internal/strictyaml", "internal/jsonvalue", "flow/check", "flow/spec", "internal/term/markdown", "server", "server/a2a", "server/agui", "server/api", "server/gateway", "server/acp", "server/mcp", "server/openai", "server/studio"},
		reason: "it talks to people: it runs and shows things and asks questions, and leaves vendors to internal/provider and stores to internal/stores"},
	{of: "internal/clienttest", may: []string{"internal/testneed"},
		reason: "clients of others see raddle as a program, and so does what runs them"},
	{of: "internal/cloudkey", may: []string{"internal/environ", "internal/netplace", "internal/plainfile", "internal/proc"},
		reason: "credentials are found in the environment, in files and at services; what they are for is not known here"},
	{of: "internal/commandline", stdOnly: true,
		reason: "spellings are words: which commands there are, a test of the commands compares"},
	{of: "internal/config", may: []string{"internal/environ", "internal/failure", "internal/hook", "internal/wording", "tool", "tool/permission", "internal/strictyaml"},
		reason: "directories, environment and config.yaml are read before anything is opened, and know nothing of processes and runs"},
	{of: "internal/conversation", may: []string{"agent", "flow", "graph", "graph/history", "graph/journal", "internal/app", "internal/attach", "internal/config", "internal/failure", "internal/runs", "internal/wording", "llm", "tool"},
		reason: "conversations are sessions with their branches, read and made through the journal, for every user interface"},
	{of: "internal/coverage", may: []string{"draw", "graph", "internal/wording"},
		reason: "what runs have reached is counted from structures and events, of whatever agent"},
	{of: "internal/doctor", may: []string{"internal/sandbox", "flow", "internal/app", "internal/config", "internal/failure", "internal/term", "internal/wording", "llm"},
		reason: "it looks at the surroundings of a process, and leaves questions and exit codes to its caller"},
	{of: "internal/edit", stdOnly: true,
		reason: "it changes texts, wherever they are from"},
	{of: "internal/environ", stdOnly: true,
		reason: "how names of variables are compared is a question about the system"},
	{of: "internal/eventlog", may: []string{"agent", "flow", "graph", "internal/jsonvalue", "internal/wording"},
		reason: "the developer log shows every event of a run, of whatever kind"},
	{of: "internal/failure", stdOnly: true,
		reason: "every part of a process reports what a person can do, and none of it depends on the part"},
	{of: "internal/foreign", may: []string{"graph/journal"},
		reason: "a mark is about a thread of a store, and knows neither runs nor agents"},
	{of: "internal/gather", may: []string{"internal/attach", "internal/failure", "internal/wording", "tool/builtin"},
		reason: "a person names files, directories and addresses in the same way for every command; who asks is not known here"},
	{of: "internal/gitrepo", may: []string{"internal/environ", "internal/proc"},
		reason: "it asks git, and knows nothing of what the answers are for"},
	{of: "internal/hook", may: []string{"internal/proc", "internal/strictyaml", "internal/wording", "tool/permission"},
		reason: "a hook is an entry of a file and a command; when it runs and whether the user has agreed, others know"},
	{of: "internal/interpreter", may: []string{"internal/environ"},
		reason: "which program runs a file is the same for tools, script nodes and servers"},
	{of: "internal/jsonvalue", stdOnly: true,
		reason: "values of a state are the same for every package that reads or writes them"},
	{of: "internal/keystore", may: []string{"internal/config", "internal/environ"},
		reason: "keys are stored by the names of clients; what a client is, and when its key is needed, is not known here"},
	{of: "internal/llmtest",
		reason: "what a vendor refuses does not depend on raddle's wires"},
	{of: "internal/loopback", stdOnly: true,
		reason: "the answer of a login is the same for providers of models and for servers of tools"},
	{of: "internal/manual", may: []string{"internal/cli"},
		reason: "the manual of a release is made of the commands, by a program that is not part of it"},
	{of: "internal/mcplogin", may: []string{"internal/failure", "internal/keystore", "internal/loopback", "internal/netplace"},
		reason: "it logs in to a server of tools by its address; who asked for it, and how the page is shown, is not known here"},
	{of: "internal/mcpsetup", may: []string{"internal/config", "internal/failure", "internal/jsonvalue", "internal/redact", "internal/toolbox", "tool", "tool/mcp"},
		reason: "it changes and shows lists of servers; commands decide which and when"},
	{of: "internal/modeltest", may: []string{"internal/provider", "internal/wording", "llm", "llm/openai"},
		reason: "what works with a model is asked and judged in one way for people and for the table of the guide"},
	{of: "internal/modelview", may: []string{"internal/modeltest", "internal/provider", "internal/term", "internal/wording"},
		reason: "it writes lines about models, and leaves questions and exit codes to its caller"},
	{of: "internal/netplace", stdOnly: true,
		reason: "where an address is depends on nothing else"},
	{of: "internal/netproxy", may: []string{"internal/netplace"},
		reason: "it connects programs to hosts: which are allowed, and who is asked, its caller decides"},
	{of: "internal/overview", may: []string{"agent", "flow", "graph", "graph/history", "graph/journal", "internal/app", "internal/runs", "internal/story", "team"},
		reason: "what programs get of a run is the same from the command line and from the server"},
	{of: "internal/pattern", stdOnly: true,
		reason: "an expression is compiled late or not, whatever it is for"},
	{of: "internal/pgtest", may: []string{"internal/testneed"},
		reason: "a server for tests knows nothing of what is kept in it"},
	{of: "internal/plainfile", stdOnly: true,
		reason: "every package that reads files of others needs it, and none of them needs more than the file"},
	{of: "internal/proc", may: []string{"internal/environ"},
		reason: "a child process knows nothing of graphs: scripts, tools and servers share it"},
	{of: "internal/provider", may: []string{"agent", "flow", "internal/catalogue", "internal/cloudkey", "internal/config", "internal/environ", "internal/failure", "internal/keystore", "internal/proc", "internal/redact", "internal/runs", "internal/wording", "llm", "llm/anthropic", "llm/bedrock", "llm/gemini", "llm/ollama", "llm/openai", "llm/script", "rag/embed"},
		reason: "it is the only one to know every vendor: it opens models by their ids, and knows what the calls of a run cost"},
	{of: "internal/question", may: []string{"agent", "graph", "internal/failure", "internal/term", "internal/wording", "team", "tool/permission"},
		reason: "how a question is shown and answered at a terminal is the same for every command and for conversations"},
	{of: "internal/recorded", stdOnly: true,
		reason: "the recorded agents are files: what runs them knows how"},
	{of: "internal/redact", stdOnly: true,
		reason: "texts are searched for known values, whatever the texts are for"},
	{of: "internal/redistest", may: []string{"internal/testneed"},
		reason: "a server for tests is a process; it knows no store"},
	{of: "internal/replay", may: []string{"agent", "flow", "graph", "graph/history", "graph/journal", "internal/app", "internal/config", "internal/environ", "internal/failure", "internal/jsonvalue", "internal/redact", "internal/runfile", "internal/runs", "internal/story", "internal/strictyaml", "internal/tempdir", "internal/term", "internal/testcase", "internal/testrun", "internal/wording", "llm", "llm/script", "rag", "team", "tool"},
		reason: "a past run is executed again through the same process as every run; only what answers differs, and recorded calls have the words of their story"},
	{of: "internal/runfile", may: []string{"flow", "graph/history", "graph/journal", "internal/agentbundle", "internal/failure", "internal/foreign", "internal/redact", "internal/runs", "internal/wording"},
		reason: "a file with a run is made of journals and the files of agents alone; which secrets must not be in it, its caller knows"},
	{of: "internal/runs", may: []string{"internal/attach", "agent", "flow", "graph", "graph/history", "graph/journal", "internal/agentbundle", "internal/config", "internal/failure", "internal/foreign", "internal/stores", "internal/wording", "llm", "memory", "team", "tool"},
		reason: "past runs are read from their journals alone: that needs no process, no model and no agent"},
	{of: "internal/sandbox", may: []string{"internal/box", "internal/failure", "internal/proc", "internal/toolbox", "tool/permission"},
		reason: "it runs what a person names, and knows nothing of agents"},
	{of: "internal/schema", stdOnly: true,
		reason: "a schema is a text; only its tests know the reader that it describes"},
	{of: "internal/setup", may: []string{"graph", "internal/app", "internal/browser", "internal/config", "internal/doctor", "internal/failure", "internal/keystore", "internal/loopback", "internal/mcplogin", "internal/provider", "internal/question", "internal/recorded", "internal/sandbox", "internal/tempdir", "internal/term", "internal/toolbox", "internal/wording", "tool/permission"},
		reason: "it asks a person and saves the answers; commands decide when"},
	{of: "internal/skill",
		reason: "a skill is a folder with texts: which agent may read it is the caller's matter"},
	{of: "internal/sqlitefile",
		reason: "a store and a knowledge base create their files in one way, and know nothing of each other"},
	{of: "internal/stores", may: []string{"graph/journal", "internal/config", "internal/failure", "internal/wording", "memory", "store/postgres", "store/redis", "store/sqlite"},
		reason: "it is the only one to know every store, by the scheme of its URL"},
	{of: "internal/storetool", may: []string{"graph/history", "graph/journal", "internal/agentbundle", "internal/config", "internal/failure", "internal/foreign", "internal/stores", "memory"},
		reason: "it reads records as the engine does, and knows no run, agent or command"},
	{of: "internal/story", may: []string{"agent", "draw", "flow", "graph", "graph/journal", "internal/jsonvalue", "internal/provider", "internal/question", "internal/runs", "internal/term", "internal/wording", "team"},
		reason: "a past run is described and drawn from its journal alone, for every surface"},
	{of: "internal/strictyaml", may: []string{"internal/jsonvalue", "internal/wording"},
		reason: "files of every format are read by one reader, which knows no format"},
	{of: "internal/telemetry", may: []string{"agent", "flow", "graph", "internal/redact", "internal/wording", "llm", "rag", "team", "tool"},
		reason: "it turns the events of runs into spans, and wraps what models, tools and searches do; nothing that runs knows of it"},
	{of: "internal/tempdir",
		reason: "files that are removed after the call that they were made for, whatever the call is"},
	{of: "internal/term", may: []string{"internal/proc"},
		reason: "what a terminal gets, and what is typed there, depends on neither graphs nor commands"},
	{of: "internal/term/editor", may: []string{"internal/term"}, reason: "it knows texts and keys, and nothing of models and runs"},
	{of: "internal/term/excerpt", may: []string{"internal/strictyaml", "internal/term"}, reason: "how a finding looks does not depend on the command that shows it"},
	{of: "internal/term/markdown", may: []string{"internal/term"}, reason: "it knows texts and the terminal, and nothing of models and runs"},
	{of: "internal/term/progress", may: []string{"agent", "flow", "flow/spec", "graph", "internal/term", "internal/term/markdown", "internal/wording", "llm", "team", "tool"},
		reason: "what a run shows follows from its events alone, whatever command drives it"},
	{of: "internal/term/termtest",
		reason: "what a terminal displays depends on what is written to it, and not on raddle"},
	{of: "internal/testcase", may: []string{"internal/jsonvalue", "internal/strictyaml", "internal/wording", "llm", "llm/script"},
		reason: "a test case is a file: reading and comparing need no agent, and its replies are those of a transcript"},
	{of: "internal/testfile", stdOnly: true,
		reason: "the tests of any package may use it"},
	{of: "internal/testneed", stdOnly: true,
		reason: "the list of programs that tests may use is the same for all packages"},
	{of: "internal/testrun", may: []string{"agent", "draw", "flow", "flow/spec", "graph", "graph/graphtest/disturb", "graph/history", "graph/journal", "internal/app", "internal/config", "internal/environ", "internal/failure", "internal/jsonvalue", "internal/strictyaml", "internal/tempdir", "internal/term", "internal/term/excerpt", "internal/testcase", "internal/wording", "llm", "llm/script", "rag", "team", "tool", "tool/permission", "internal/coverage"},
		reason: "a case runs as every other run does, through internal/app, with answers of the case for models and tools"},
	{of: "internal/toolbox", may: []string{"agent", "flow", "flow/check", "graph", "graph/journal", "internal/box", "internal/config", "internal/environ", "internal/failure", "internal/hook", "internal/interpreter", "internal/mcplogin", "internal/netplace", "internal/netproxy", "internal/proc", "internal/provider", "internal/redact", "internal/runs", "internal/skill", "internal/tempdir",
		"internal/strictyaml", "internal/wording", "memory", "tool", "tool/builtin", "tool/declare", "tool/mcp", "tool/permission", "tool/script"},
		reason: "it knows where tools come from and which of them the user has approved; which agent runs is the caller's matter"},
	{of: "internal/toolschema",
		reason: "what providers accept of JSON Schema does not depend on where a tool comes from"},
	{of: "internal/wording", stdOnly: true,
		reason: "every package may need these helpers, and none of them needs more than the text"},
	{of: "llm", may: []string{"internal/redact"},
		reason: "what a model is asked and answers is the same for every vendor and without a network"},
	{of: "llm/anthropic", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/bedrock", may: []string{"llm", "llm/internal/wire"},
		reason: "a wire knows one provider's protocol, and what all wires share; credentials are its caller's"},
	{of: "llm/gemini", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/internal/wire", may: []string{"internal/redact", "llm", "internal/toolschema"},
		reason: "what the wires share: the exchange, streams, repaired histories, assembly of replies, classes of errors"},
	{of: "llm/internal/wiretest", may: []string{"llm"},
		reason: "the same failures are played to every wire"},
	{of: "llm/ollama", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/openai", may: []string{"llm", "llm/internal/wire"},
		reason: "one wire each: requests and events of one vendor, on what all wires share"},
	{of: "llm/script", may: []string{"internal/redact", "llm", "internal/wording", "internal/strictyaml"},
		reason: "a transcript can replace any vendor, so it knows none"},
	{of: "memory", may: []string{"rag/keyword"},
		reason: "values that outlive a run know no graph and no model: their caller supplies stores and embedding models"},
	{of: "memory/memorytest", may: []string{"memory"},
		reason: "the suite sees what a store sees"},
	{of: "rag", may: []string{"internal/sqlitefile", "llm", "rag/keyword", "rag/load", "rag/split"},
		reason: "a knowledge base knows neither graphs nor vendors: its caller supplies embedding models"},
	{of: "rag/embed", may: []string{"internal/redact", "llm", "rag"},
		reason: "the wires of embedding models: the caller supplies addresses and keys, failures are those of chat models"},
	{of: "rag/keyword",
		reason: "ranking texts by their words is a pure function"},
	{of: "rag/load", may: []string{"internal/environ", "internal/gitrepo", "internal/proc", "internal/tempdir", "rag/pdftext"},
		reason: "documents come from files and from commands; its caller uses them"},
	{of: "rag/pdftext",
		reason: "the text of a PDF file depends on its bytes alone"},
	{of: "rag/split",
		reason: "cutting text is a pure function"},
	{of: "server", may: []string{"agent", "flow", "flow/spec", "graph", "graph/journal", "internal/app", "internal/attach", "internal/failure", "internal/runs", "llm"},
		reason: "it drives runs as the command line does, through internal/app, for callers that are programs; what a protocol says is below it"},
	{of: "server/a2a", may: []string{"agent", "graph", "internal/app", "internal/attach", "internal/config", "internal/failure", "internal/runs", "server"},
		reason: "a protocol translates what package server does, and starts, drives and reads nothing itself"},
	{of: "server/acp", may: []string{"agent", "flow", "graph", "internal/app", "internal/attach", "internal/conversation", "internal/failure", "internal/wording", "llm", "server", "tool"},
		reason: "a protocol translates what package server does; sessions of editors are conversations"},
	{of: "server/agui", may: []string{"agent", "flow", "graph", "graph/history", "graph/journal", "internal/attach", "internal/config", "internal/failure", "internal/runs", "llm", "server"},
		reason: "a protocol translates what package server does, and starts, drives and reads nothing itself"},
	{of: "server/api", may: []string{"agent", "draw", "flow", "flow/spec", "graph", "graph/history", "graph/journal", "internal/app", "internal/attach", "internal/conversation", "internal/failure", "internal/jsonvalue", "internal/overview", "internal/provider", "internal/replay", "internal/runfile", "internal/runs", "internal/strictyaml", "internal/story", "llm", "internal/toolbox", "server"},
		reason: "it offers what the command line offers, and reads agents and runs as the command line does"},
	{of: "server/gateway", may: []string{"internal/browser", "internal/failure", "server"},
		reason: "who may call is the same for every protocol, and no protocol knows about tokens"},
	{of: "server/mcp", may: []string{"agent", "flow", "flow/spec", "graph", "internal/app", "internal/failure", "internal/runs", "internal/wording", "llm", "server"},
		reason: "a protocol translates what package server does; the lines of its progress are those of the command line"},
	{of: "server/openai", may: []string{"agent", "flow", "graph", "internal/attach", "internal/failure", "internal/runs", "llm", "server", "team"},
		reason: "OpenAI's wire is a translation of runs and their events, and knows nothing of how they are driven"},
	{of: "server/servertest", may: []string{"internal/app", "server"},
		reason: "the tests of the protocols need the same service, home directory and web server"},
	{of: "server/studio",
		reason: "it serves files; what the page shows comes from the API"},
	{of: "store/postgres", may: []string{"graph/journal", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "store/redis", may: []string{"graph/journal", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "store/sqlite", may: []string{"graph/journal", "internal/sqlitefile", "memory"},
		reason: "a store keeps records; it reads none of them"},
	{of: "team", may: []string{"agent", "graph", "llm", "tool"},
		reason: "agents that spawn agents are child graphs of one node; their caller knows which agents there are"},
	{of: "tool", may: []string{"llm"},
		reason: "a tool is a function with a schema: it knows neither journals nor who gives permission"},
	{of: "tool/builtin", may: []string{"internal/box", "internal/edit", "internal/environ", "internal/gitrepo", "internal/netplace", "internal/proc", "memory", "tool"},
		reason: "tools that come with the program: they do what a call says, and their caller checks permission"},
	{of: "tool/declare", may: []string{"tool"},
		reason: "a declaration is read from text alone: nothing runs, so nothing that runs things is needed"},
	{of: "tool/mcp", may: []string{"internal/environ", "internal/netplace", "internal/proc", "internal/redact", "internal/strictyaml", "internal/wording", "llm", "tool", "internal/toolschema"},
		reason: "the tools of servers are tools like others; a server over stdio is a child process"},
	{of: "tool/permission", may: []string{"internal/gitrepo", "internal/netplace", "tool", "internal/wording", "internal/strictyaml"},
		reason: "it decides from rules and from what a call would touch, and leaves asking and running to others"},
	{of: "tool/script", may: []string{"internal/environ", "internal/gitrepo", "internal/interpreter", "internal/proc", "internal/tempdir", "tool", "tool/declare"},
		reason: "a script is a child process whose arguments a declaration names"},
}

// openFiles may be imported by every package: TestFilesAreOpenedInOnePlace asks for it.
const openFiles = "internal/plainfile"

func TestImports(t *testing.T) {
	rules := map[string]importRule{}
	for _, r := range importRules {
		rules[r.of] = r
	}
	for _, p := range packages(t) {
		rule, ok := rules[p.name]
		if !ok {
			t.Errorf("package %s has no row in importRules (repo_imports_test.go): add one with what it may import and the reason", p.name)
			continue
		}
		for _, f := range p.code() {
			for _, spec := range f.syntax.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if why := rule.forbids(imported); why != "" {
					t.Errorf("%s:%d: %s", f.path, f.line(spec), why)
				}
			}
		}
	}
}

// forbids returns why an import breaks the rule, or "".
func (r importRule) forbids(imported string) string {
	if inModule, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		if inModule == openFiles || inModule == latePatterns || slices.Contains(r.may, inModule) {
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
		exists[p.name] = true
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
