//go:build unix

package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// A planted secret is somewhere where raddle finds it. Its mark is in it and in
// each of its lines, and no escape changes the mark.
type planted struct {
	mark, value string
	name        string // of the variable of the environment; empty if the secret is in another place
	whole       string // the value of the variable, if the secret is only a part of it
}

// plant returns 40 secrets of many shapes.
func plant() (list []planted) {
	add := func(name, shape string) *planted {
		mark := fmt.Sprintf("zz%02dQx", len(list))
		p := planted{mark: mark, name: name, value: strings.ReplaceAll(shape, "@@", mark)}
		list = append(list, p)
		return &list[len(list)-1]
	}
	line := "@@MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7+/@@abcdef\n"
	for _, s := range [][2]string{
		{"PLAIN_TOKEN", "@@plain123"}, {"GITHUB_PAT", "ghp_@@abcdefghij"}, {"DB_PASS", "@@pass"}, {"DBPASS", "@@dbpass"}, {"GPG_PASSPHRASE", "@@ correct horse battery"},
		{"PASSPHRASE", "  @@ padded with spaces  "}, {"MYSQL_PWD", "@@pwd"}, {"STRIPE_KEYS", "sk_live_@@aaaaaaaaaa,sk_test_@@bbbbbbbbbb"},
		{"DEPLOY_KEY", "-----BEGIN PRIVATE KEY-----\n" + line + line + "-----END PRIVATE KEY-----\n"}, {"WINDOWS_KEY", "@@ first line of it\r\n@@ second line of it"},
		{"QUOTE_PASSWORD", `@@QUO"TE'12'34`}, {"BACKSLASH_SECRET", `@@\back\nslash\\u0041`}, {"UNICODE_TOKEN", "@@ñandú→😀秘密"}, {"HTML_SECRET", "@@<b>&amp;</b>&1"},
		{"AWS_SECRET_ACCESS_KEY", "/@@b+cd/EF+gh=="}, {"DOLLAR_PASSWORD", "@@$HOME`id`$(x)"}, {"PERCENT_PASSWORD", "@@%20%%s+100%"}, {"SHORT_TOKEN", "@@"},
		{"PREFIX_TOKEN", "@@prefix-of"}, {"SERVICE_CREDENTIALS", `{"type": "account", "private_key": "@@ in JSON\n@@ in JSON", "client_secret": "@@client"}`},
		{"lower_token", "@@lower/case"}, {"ApiKey", "@@Camel"}, {"TAB_SECRET", "@@\ttab\x01\x1b[31mred"}, {"MY_CREDENTIAL", "@@;semi|pipe&amp"},
		{"SOME_TOKENS", "@@tokens here"}, {"HTPASSWD", "user:$apr1$@@/x."}, {"EMPTY_LINES_KEY", "@@ one line of text\n\n\n@@ another line of text\n"},
		{"STAR_PASSWORD", "@@*?[x]{y}~"}, {"HASH_PASSWORD", "#@@#x!"}, {"OPENAI_API_KEY", "sk-@@openai"},
	} {
		add(s[0], s[1])
	}
	longer := add("PREFIXED_TOKEN", "")
	longer.value = list[18].value + "-and-more" // PREFIX_TOKEN is its beginning
	longer.mark = list[18].mark
	encoded := add("TLS_KEY_B64", "@@ what is encoded")
	encoded.whole = base64.StdEncoding.EncodeToString([]byte(encoded.value))
	dsn := add("DATABASE_URL", "@@p%40ss")
	dsn.whole = "postgres://ann:" + dsn.value + "@db.example/x"
	dsn = add("QUEUE_ADDRESS", "@@query")
	dsn.whole = "https://q.example/x?region=1&access_token=" + dsn.value
	for _, where := range []string{"config", "base", "baseQuery", "dotenv", "mcpHeader", "mcpEnv"} {
		add("", "@@-"+where)
	}
	return list
}

// written returns a value as programs write it.
func written(value string) string {
	ascii, _ := json.Marshal(value)
	nested, _ := json.Marshal(string(ascii))
	return strings.Join([]string{
		value, string(ascii), string(nested), "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", fmt.Sprintf("%q %+q", value, value), url.QueryEscape(value), url.PathEscape(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte(value + "\n")),
	}, " | ")
}

// leaks searches a text for the secrets, by other means than the program does.
func leaks(secrets []planted, text string) (found []string) {
	for _, p := range secrets {
		forms := []string{p.mark}
		for _, v := range []string{p.value, p.whole} {
			if from := strings.Index(v, p.mark); from >= 0 {
				from -= from % 3 // three bytes are four characters
				part := []byte(v[from:min(len(v), from+9)])
				forms = append(forms, base64.RawStdEncoding.EncodeToString(part), base64.RawURLEncoding.EncodeToString(part))
			}
		}
		for _, f := range forms {
			if i := strings.Index(text, f); i >= 0 {
				found = append(found, fmt.Sprintf("%s (%s): …%q…", p.name, p.mark, text[max(0, i-60):min(len(text), i+60)]))
				break
			}
		}
	}
	return found
}

var inBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}`)

// A leakyModel is a provider that answers with every secret in every form, and records
// what it received.
type leakyModel struct {
	all string

	mu   sync.Mutex
	seen strings.Builder
}

func (m *leakyModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.seen.Write(body)
	m.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/embeddings") {
		var req struct{ Input []string }
		_ = json.Unmarshal(body, &req)
		var vectors []string
		for i := range req.Input {
			vectors = append(vectors, fmt.Sprintf(`{"index":%d,"embedding":[1,0.5,%d]}`, i, i))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(vectors, ","))
		return
	}
	said := m.all + " " + r.Header.Get("Authorization")
	if strings.Contains(string(body), `"model":"bad"`) {
		w.WriteHeader(http.StatusUnauthorized)
		text, _ := json.Marshal(said)
		fmt.Fprintf(w, `{"error":{"message":%s,"code":%s}}`, text, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(delta string) {
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":%s}]}`+"\n\n", delta)
	}
	text := func(kind, s string) {
		for piece := range slices.Chunk([]rune(s), 7) { // so that every secret is cut
			data, _ := json.Marshal(string(piece))
			event(`{"` + kind + `":` + string(data) + `}`)
		}
	}
	text("reasoning_content", said)
	text("content", said)
	if strings.Contains(string(body), `"show"`) && !strings.Contains(string(body), `"role":"tool"`) {
		args, _ := json.Marshal(map[string]string{"text": said})
		for i, name := range []string{"show", "fails", "mcp__leaky__echo"} {
			quoted, _ := json.Marshal(string(args))
			event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, i, i, name, quoted))
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

const leaky = `
-- flow/graph.yaml --
name: flow
model: local:small
start: py
initial_state: {written: "INLINE"}
nodes:
  py: {type: script, description: "INLINE", script: echo.py, next: sh}
  sh: {type: script, script: echo.sh, fallback: think, next: think}
  think: {type: llm, prompt: "{{written}} {{all}} {{raw}}", state_updates: {said: "{{output}}"}, next: ask}
  ask: {type: input, question: "{{said}}?", state_updates: {answer: "{{input}}"}, next: done}
  done: {type: end, output: "{{said}} {{all}} {{answer}}"}
-- flow/echo.py --
import base64, json, os, shlex, sys, urllib.parse
values = {n: os.environ.get(n, "") for n in os.environ["SECRET_NAMES"].split(",")}
forms = [f(v) for v in values.values() for f in (str, json.dumps, repr, shlex.quote, urllib.parse.quote, urllib.parse.quote_plus, lambda v: base64.b64encode(v.encode()).decode(), lambda v: base64.encodebytes(v.encode()).decode())]
print(" ".join(forms), file=sys.stderr)
print(json.dumps({"all": " ".join(forms), "raw": values, "inline": json.loads(values["SERVICE_CREDENTIALS"])}))
-- flow/echo.sh --
env >&2; declare -p >&2; for n in ${SECRET_NAMES//,/ }; do printf '%q %s\n' "${!n}" "${!n@Q}" >&2; done; exit 3
-- failing/graph.yaml --
name: failing
model: local:bad
start: think
nodes:
  think: {type: llm, prompt: "Hello", next: done}
  done: {type: end, output: "x"}
-- talk/config.yaml --
name: Talk
model: local:small
instructions: "Be INLINE. {{api_token}}"
mcp_servers: [leaky]
variables: [{name: api_token, description: "a token", default: "VARIABLE"}]
-- talk/tools.sh --
# @cmd Shows all.
# @option --text
# raddle: read-only
show() { { env; declare -p; for n in ${SECRET_NAMES//,/ }; do printf '%s\n%q\n' "${!n}" "${!n}"; printf %s "${!n}" | base64; done; } | tee -a "$LLM_OUTPUT" >&2; }
# @cmd Fails.
# @option --text
# raddle: read-only
fails() { env >&2; echo "$argc_text" >&2; return 3; }
-- talk/server.py --
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    print("\n".join(os.environ.values()), file=sys.stderr, flush=True)
    if "id" not in m: continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if m["method"] == "tools/list":
        r = {"tools": [{"name": "echo", "description": " ".join(os.environ.values()), "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True, "openWorldHint": False}}]}
    if m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": json.dumps(dict(os.environ)) + json.dumps(m["params"])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
-- lore/config.yaml --
name: Lore
model: local:small
documents: [notes.md]
embedding_model: local:embed
instructions: "Answer."
`

// newLeaks creates a workplace where everything gives the secrets away.
func newLeaks(t *testing.T, secrets []planted) (*workplace, *leakyModel) {
	t.Helper()
	at := func(where string) string {
		i := slices.IndexFunc(secrets, func(p planted) bool { return strings.HasSuffix(p.value, "-"+where) })
		return secrets[i].value
	}
	var all, names []string
	w := newWorkplace(t, leaky)
	for _, p := range secrets {
		all = append(all, written(p.value))
		if p.name == "" {
			continue
		}
		names = append(names, p.name)
		value := p.value
		if p.whole != "" {
			value = p.whole
			all = append(all, p.whole)
		}
		w.env = append(w.env, p.name+"="+value)
	}
	w.env = append(w.env, "SECRET_NAMES="+strings.Join(names, ","))
	m := &leakyModel{all: strings.Join(all, "\n")}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	base := strings.Replace(server.URL, "http://", "http://ann:"+at("base")+"@", 1) + "/v1"
	w.write(".config/raddle/config.yaml", fmt.Sprintf("clients:\n- {name: local, type: openai-compatible, api_base: %q, api_key: %s}\n- {name: other, type: openai-compatible, api_base: %q}\n",
		base, at("config"), "http://x.example/v1?key="+at("baseQuery")))
	w.write(".config/raddle/.env", "DOT_TOKEN='"+at("dotenv")+"'\n")
	w.write(".config/raddle/mcp.json", fmt.Sprintf(`{"mcpServers": {"leaky": {"command": "python3", "args": ["%s/talk/server.py"], "env": {"MY_AUTH": %q}},
		"web": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer %s"}}}}`, w.dir, at("mcpEnv"), at("mcpHeader")))
	w.write("lore/notes.md", m.all)
	for _, file := range []string{"flow/graph.yaml", "talk/config.yaml"} {
		text := strings.ReplaceAll(strings.ReplaceAll(w.read(file), "INLINE", secrets[0].value), "VARIABLE", secrets[1].value)
		w.write(file, text)
	}

	if err := os.Mkdir(filepath.Join(w.dir, "pictures"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w, m
}

// TestPlantedSecrets lets scripts, tools, servers, models and documents give away
// 40 secrets in every form, and searches for them in everything that raddle writes or sends.
func TestPlantedSecrets(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	secrets := plant()
	if len(secrets) != 40 {
		t.Fatalf("%d secrets", len(secrets))
	}
	w, m := newLeaks(t, secrets)
	prompt := secrets[0].value + " and " + secrets[10].value
	do := func(codes []int, args ...string) result {
		t.Helper()
		r := w.run(args...)
		if !slices.Contains(codes, r.code) {
			t.Errorf("raddle %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.err)
		}
		decoded := inBase64.ReplaceAllStringFunc(r.out, func(text string) string { // an export has its records in it
			data, _ := base64.StdEncoding.DecodeString(text)
			return string(data)
		})
		for _, l := range slices.Concat(leaks(secrets, r.out), leaks(secrets, r.err), leaks(secrets, decoded)) {
			t.Errorf("raddle %s prints %s", strings.Join(args, " "), l)
		}
		return r
	}
	ok, parked := []int{0}, []int{5}
	var runs []string
	for _, output := range []string{"text", "json", "stream-json"} {
		do(parked, "run", "-v", "--output", output, "./flow", prompt)
		runs = append(runs, w.runs()[0].Run)
		do(ok, "resume", "-v", "--output", output, runs[len(runs)-1], "--answer", "it is "+prompt)
		do([]int{0, 1, 4}, "run", "-v", "--output", output, "./failing", prompt)
		do(ok, "run", "-v", "--output", output, "./talk", "--agent-variable", "api_token", secrets[2].value, prompt)
		runs = append(runs, w.runs()[0].Run)
		do(ok, "run", "-v", "--output", output, "./lore", prompt)
	}
	for _, id := range []string{runs[0], runs[1]} {
		for _, command := range []string{"show", "history", "blame"} {
			do([]int{0, 2}, "runs", command, id)
			do([]int{0, 2}, "runs", command, id, "--output", "json")
		}
		do(ok, "runs", "export", id)
		do(ok, "runs", "share", id, "-o", "-")
	}
	do([]int{0, 1}, "runs", "diff", runs[0], runs[2])
	for _, args := range [][]string{{"runs", "ls"}, {"runs", "ls", "--tree", "--output", "json"}, {"check", "./flow"}, {"check", "./talk"}, {"info"}, {"info", "--output", "json"}, {"info", "--agent", "./talk"},
		{"models"}, {"tools", "ls", "./talk"}, {"tools", "show", "./talk", "show"}, {"tools", "show", "./talk", "mcp__leaky__echo"}, {"tools", "call", "./talk", "show", "{}"}, {"tools", "call", "./talk", "fails", "{}"},
		{"tools", "call", "./talk", "mcp__leaky__echo", "{}"}, {"rag", "search", "./lore", prompt}, {"run", "--dry-run", "./talk", prompt}} {
		do([]int{0, 1, 2}, args...)
	}
	for _, format := range []string{"svg", "mermaid", "dot", "json", "png"} {
		do(ok, "graph", "./flow", "-o", "pictures/flow."+format, "--format", format)
		do(ok, "graph", "./flow", "-o", "-", "--format", format)
	}
	for _, l := range leaks(secrets, m.seen.String()) {
		t.Errorf("a request to the model holds %s", l)
	}
	for _, shown := range []string{"[redacted]", `PLAIN_TOKEN=[redacted]`, "exited with code 3", `\"PLAIN_TOKEN\": \"[redacted]`, `"input"`, "Hello"} {
		if !strings.Contains(m.seen.String(), shown) {
			t.Errorf("no request holds %s: not everything was tried", shown)
		}
	}
	files := 0
	for _, dir := range []string{".state", "pictures", ".cache"} {
		_ = filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			files++
			for _, l := range leaks(secrets, string(data)) {
				t.Errorf("%s holds %s", path, l)
			}
			return nil
		})
	}
	if files < 6 {
		t.Errorf("only %d files were searched", files)
	}
}
