package llmtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

// openModel returns a model of a vendor.
func openModel(t *testing.T, v Vendor, url string) llm.Model {
	t.Helper()
	m, err := openThrough(v, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const vertexPath = "/v1/projects/" + GoogleProject + "/locations/" + GoogleLocation

// authorizeVertex adds the access token that Vertex takes.
func authorizeVertex(r *http.Request) ([]string, error) {
	r.Header.Set("Authorization", "Bearer "+GoogleToken)
	return []string{GoogleToken}, nil
}

// throughTo returns a client that reaches a test server, whatever host it asks for.
func throughTo(url string, through *http.Client) *http.Client {
	next := http.DefaultTransport
	if through != nil {
		next = through.Transport
	}
	return &http.Client{Transport: redirected{strings.TrimPrefix(url, "http://"), next}}
}

// redirected sends requests to another host than they name.
type redirected struct {
	host string
	next http.RoundTripper
}

func (d redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	there := r.Clone(r.Context())
	there.Host, there.URL.Host = r.URL.Host, d.host
	return d.next.RoundTrip(there)
}

var turns = []Turn{
	{Thought: "zwei auf einmal", Text: "Žluťoučký kůň 馬", Calls: []Call{
		{"a1", "find", `{"město":"Brno 馬","deep":{"list":[1,"},{"]}}`}, {"a2", "clock", ""}, {"a3", "draw", `{"n":12345678901234567890}`}}},
	{Thought: "noch einer", Calls: []Call{{"b1", "clock", `{}`}}},
	{Text: "half way"},
	{Calls: []Call{{"c1", "find", `{"město":"Praha"}`}, {"c2", "find", `{"město":"Plzeň"}`}}},
	{Text: "finished"},
}

var picture = llm.Image{MIME: "image/png", Data: []byte("png")}

// results answers the calls of a reply as tools do: with text, with an error
// and a picture, with nothing; in one message, or in one for each call.
func results(m llm.Message, apart bool) []llm.Message {
	contents := [][]llm.Part{{llm.Text{Text: "Moravia"}, picture}, {}, {picture, llm.Text{Text: "no paper"}}}
	var list []llm.Message
	for i, c := range m.ToolCalls() {
		r := llm.ToolResult{CallID: c.ID, Name: c.Name, Content: contents[i%3], Error: i == 2}
		if i == 0 || apart {
			list = append(list, llm.Message{Role: llm.RoleTool})
		}
		last := &list[len(list)-1]
		last.Parts = append(last.Parts, r)
	}
	return list
}

// TestConversations plays several rounds against each vendor.
func TestConversations(t *testing.T) {
	for _, v := range Vendors() {
		for _, apart := range []bool{false, true} {
			t.Run(v.Name, func(t *testing.T) {
				s := StartServer(t, v, turns...)
				talk(t, openModel(t, v, s.URL), apart)
				last := string(s.RequestBodies()[len(turns)-1])
				seal := map[string]string{"groq": `"reasoning":"zwei auf einmal"`, "cerebras": `"reasoning":"zwei auf einmal"`, "mistral": `"thinking":[{"text":"zwei auf einmal"`,
					"deepseek": `"reasoning_content":"zwei auf einmal"`, "moonshot": `"reasoning_content":""`, "openrouter": `"data":"sealed"`, "gemini-openai": `"thought_signature":"signed"`,
					"llama.cpp": `"reasoning_content":"zwei auf einmal"`, "vllm": `"reasoning_content":"zwei auf einmal"`, "litellm": `"signature":"seal"`, "minimax": `"type":"reasoning.text"`, "OpenAI responses": `"encrypted_content":"` + sealOf("zwei auf einmal") + `"`, "OpenAI": `"reasoning_content":"zwei auf einmal"`, "Anthropic": `"signature":"seal of zwei auf einmal"`,
					"Bedrock": `"signature":"seal of zwei auf einmal"`, "Vertex Anthropic": `"signature":"seal of zwei auf einmal"`, "Vertex Gemini": `"thoughtSignature":"c2VhbCBvZiBmaW5k"`, "Azure": `"encrypted_content":"` + sealOf("zwei auf einmal") + `"`, "Gemini": `"thoughtSignature":"c2VhbCBvZiBmaW5k"`, "Ollama": `"thinking":"zwei auf einmal"`}[v.Name]
				for _, want := range []string{seal, "12345678901234567890", "Žluťoučký kůň 馬", "město", "half way"} {
					if !strings.Contains(last, want) {
						t.Errorf("the last request lacks %s:\n%s", want, last)
					}
				}
			})
		}
	}
}

// talk carries out the conversation of turns and returns its messages.
func talk(t *testing.T, m llm.Model, apart bool) []llm.Message {
	t.Helper()
	messages := []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "look"}, llm.Text{}, picture}}}
	for i, turn := range turns {
		reply, err := llm.Generate(t.Context(), m, llm.Request{System: "Be brief.", Messages: messages})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		var got []Call
		for _, c := range reply.Message.ToolCalls() {
			got = append(got, Call{c.ID, c.Name, string(c.Args)})
		}
		for j := range got {
			want := turn.Calls[j]
			if want.Args == "" {
				want.Args = "{}"
			}
			want.ID = got[j].ID // Gemini sends none
			if d := cmp.Diff(want, got[j]); d != "" {
				t.Errorf("round %d: call (-want +got):\n%s", i, d)
			}
		}
		if len(got) != len(turn.Calls) || reply.Text() != turn.Text {
			t.Errorf("round %d: %d calls and %q", i, len(got), reply.Text())
		}
		messages = append(messages, reply.Message)
		messages = append(messages, results(reply.Message, apart)...)
		if i != 1 { // a person may or may not write after the results
			messages = append(messages, llm.User("go on"))
		}
	}
	return messages
}

// TestStructuredAnswers asks each vendor for an answer with a schema, after calls and their results.
func TestStructuredAnswers(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	for _, v := range Vendors() {
		t.Run(v.Name, func(t *testing.T) {
			s := StartServer(t, v, append(slices.Clone(turns), Turn{Thought: "as ordered", Text: `{"city":"Brno"}`})...)
			m := openModel(t, v, s.URL)
			messages := append(talk(t, m, false), llm.User("Which city?"))
			reply, err := llm.Generate(t.Context(), m, llm.Request{Messages: messages, Schema: schema})
			if err != nil || reply.Text() != `{"city":"Brno"}` {
				t.Fatalf("%q, %v", reply.Text(), err)
			}
			if body := string(s.RequestBodies()[len(turns)]); !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), `"required":["city"]`) {
				t.Errorf("the schema is not in %s", body)
			}
		})
	}
}

// TestInterruptedReplies leaves the reply of each vendor in its middle, and continues with what was read of it.
func TestInterruptedReplies(t *testing.T) {
	for _, v := range Vendors() {
		t.Run(v.Name, func(t *testing.T) {
			s := StartServer(t, v, turns[0], Turn{Text: "ok"})
			m := openModel(t, v, s.URL)
			var read string
			for d, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("look")}}) {
				if err != nil {
					t.Fatal(err)
				}
				if read += d.Text; read != "" {
					break
				}
			}
			messages := []llm.Message{llm.User("look"), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: read}}}, llm.User("go on")}
			if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: messages}); err != nil || read == "" || read == turns[0].Text {
				t.Errorf("after %q: %v", read, err)
			}
		})
	}
}

// TestConversationsMove continues the conversation of one vendor at another.
func TestConversationsMove(t *testing.T) {
	vendors := Vendors()
	for _, from := range vendors {
		messages := talk(t, openModel(t, from, StartServer(t, from, turns...).URL), false)
		data, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range vendors {
			if to.Name == from.Name {
				continue
			}
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				var read []llm.Message
				if err := json.Unmarshal(data, &read); err != nil {
					t.Fatal(err)
				}
				s := StartServer(t, to, Turn{Text: "ok"})
				if _, err := llm.Generate(t.Context(), openModel(t, to, s.URL), llm.Request{Messages: read}); err != nil {
					t.Fatal(err)
				}
				if body := string(s.RequestBodies()[0]); strings.Contains(body, "auf einmal") || strings.Contains(body, "c2VhbCBvZi") {
					t.Errorf("it read what another provider has sealed:\n%s", body)
				}
			})
		}
	}
}

// TestAwkwardRequests sends unusual requests that programs may create.
func TestAwkwardRequests(t *testing.T) {
	call := llm.ToolCall{ID: "x", Name: "f", Args: json.RawMessage(`"{\"broken\":"`)}
	answer := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "x", Name: "f", Error: true}}}
	for name, messages := range map[string][]llm.Message{
		"system only":        {llm.User("")},
		"nothing said":       {llm.User("a"), {Role: llm.RoleAssistant}, llm.User("b")},
		"two users":          {llm.User("a"), llm.User("b")},
		"two assistants":     {llm.User("a"), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "x"}}}, {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "y"}}}, llm.User("b")},
		"broken arguments":   {llm.User("a"), {Role: llm.RoleAssistant, Parts: []llm.Part{call}}, answer},
		"white space around": {llm.User("a"), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "\n"}, call}}, answer, llm.User(" ")},
	} {
		for _, v := range Vendors() {
			t.Run(name+" at "+v.Name, func(t *testing.T) {
				s := StartServer(t, v, Turn{Text: "ok"})
				reply, err := llm.Generate(t.Context(), openModel(t, v, s.URL), llm.Request{System: "Be brief.", Messages: messages})
				if err != nil || reply.Text() != "ok" {
					t.Errorf("%q, %v", reply.Text(), err)
				}
			})
		}
	}
}

// TestWrongCalls sends histories with names and ids of calls as real models write them, in every order in which programs keep them.
func TestWrongCalls(t *testing.T) {
	made := func(calls ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleAssistant, Parts: calls} }
	call := func(id, name string) llm.Part { return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(`{}`)} }
	answered := func(results ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: results} }
	result := func(id, name string) llm.Part {
		return llm.ToolResult{CallID: id, Name: name, Content: []llm.Part{llm.Text{Text: "of " + id + name}}}
	}
	both := func(id, name string) []llm.Message {
		return []llm.Message{llm.User("a"), made(call(id, name)), answered(result(id, name))}
	}
	long := strings.Repeat("x", 100)
	for name, messages := range map[string][]llm.Message{
		"namespace":                both("1", "functions.fs_ls"),
		"special token":            both("1", "fs_ls<|channel|>"),
		"blank name":               both("1", " "),
		"no name":                  both("1", ""),
		"blank in a name":          both("1", "fs ls"),
		"long name":                both("1", long),
		"digit first":              both("1", "3d_print"),
		"letters of other scripts": both("1", "měření"),
		"no id":                    both("", "f"),
		"long id":                  both(long, "f"),
		"odd id":                   both("functions.f:0", "f"),
		"one id for two at once":   {llm.User("a"), made(call("x", "f"), call("x", "g")), answered(result("x", "f"), result("x", "g"))},
		"one id for two in turn": {llm.User("a"), made(call("x", "f")), answered(result("x", "f")), llm.User("b"),
			made(call("x", "g")), answered(result("x", "g"))},
		"no ids for two":            {llm.User("a"), made(call("", "f"), call("", "g")), answered(result("", "g"), result("", "f"))},
		"result without call":       {llm.User("a"), answered(result("gone", "f")), llm.User("b")},
		"result first":              {answered(result("gone", "f")), llm.User("b")},
		"result again":              {llm.User("a"), made(call("x", "f")), answered(result("x", "f"), result("x", "f")), llm.User("b")},
		"call without result":       {llm.User("a"), made(call("x", "f")), llm.User("b")},
		"call without result, last": {llm.User("a"), made(call("x", "f"))},
		"one of two results":        {llm.User("a"), made(call("x", "f"), call("y", "g")), answered(result("y", "g"))},
		"results in another order":  {llm.User("a"), made(call("x", "f"), call("y", "g")), answered(result("y", "g"), result("x", "f"))},
		"result behind a person":    {llm.User("a"), made(call("x", "f")), llm.User("b"), answered(result("x", "f"))},
		"result behind a reply":     {llm.User("a"), made(call("x", "f")), made(llm.Text{Text: "hm"}), answered(result("x", "f")), llm.User("b")},
	} {
		for _, v := range Vendors() {
			t.Run(name+" at "+v.Name, func(t *testing.T) {
				s := StartServer(t, v, Turn{Text: "ok"})
				if _, err := llm.Generate(t.Context(), openModel(t, v, s.URL), llm.Request{Messages: messages}); err != nil {
					t.Fatal(err)
				}
				body := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(s.RequestBodies()[0]))
				for _, m := range messages { // no output of a tool may be lost
					for _, p := range m.Parts {
						if r, ok := p.(llm.ToolResult); ok && !strings.Contains(body, "of "+r.CallID+r.Name) {
							t.Errorf("the result of %s %s is missing: %s", r.CallID, r.Name, body)
						}
					}
				}
			})
		}
	}
}

// TestChecksRefuse shows that the checks find the errors they are made for.
func TestChecksRefuse(t *testing.T) {
	use, result := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`, `{"type":"tool_result","tool_use_id":"a"}`
	gcall := `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]}`
	ocall := `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, c := range []struct {
		v          Vendor
		list, want string
	}{
		{OpenAI(), `{"role":"user","content":"x"},` + ocall, "not answered"},
		{OpenAI(), ocall + `,{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":""}`, "not answered"},
		{OpenAI(), ocall + `,{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"a","content":""}`, "answers no call"},
		{OpenAI(), ocall + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}`, "text only"},
		{OpenAI(), `{"role":"assistant"}`, "no content"},
		{OpenAI(), strings.ReplaceAll(ocall, `"f"`, `"functions.f"`), "is not valid"},
		{OpenAI(), strings.ReplaceAll(ocall, `"a"`, `"`+strings.Repeat("a", 41)+`"`), "is not valid"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":"a"}]},` + strings.ReplaceAll(use, `"a"`, `"a.b"`), "is not valid"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":"a"}]},` + use + `,{"role":"user","content":[` + result + `]},` + use, "unique"},
		{Gemini(), `{"role":"user","parts":[{"text":"a"}]},` + strings.ReplaceAll(gcall, `"f"`, `"3d"`), "is not valid"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"a"}]}`, "alternate"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":" "}]}`, "non-whitespace"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":"a"}]},` + use, "without tool_result"},
		{Anthropic(), `{"role":"user","content":[{"type":"text","text":"a"}]},` + use + `,{"role":"user","content":[{"type":"text","text":"b"},` + result + `]}`, "must come first"},
		{Anthropic(), `{"role":"user","content":[` + result + `]}`, "unexpected tool_use_id"},
		{Gemini(), `{"role":"user","parts":[{"text":"a"}]},` + gcall, "no response"},
		{Gemini(), `{"role":"user","parts":[{"text":"a"}]},` + gcall + `,{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}},{"functionResponse":{"name":"f","response":{}}}]}`, "do not match"},
		{Gemini(), `{"role":"user","parts":[{"text":""}]}`, "no data"},
		{Gemini(), `{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]}`, "alternate"},
	} {
		key := map[string]string{"Gemini": "contents"}[c.v.Name]
		if key == "" {
			key = "messages"
		}
		err := c.v.Check([]byte(`{"max_tokens":1,"` + key + `":[` + c.list + `]}`))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %s", c.v.Name, c.list, err, c.want)
		}
	}
}

// Each server that is compatible with OpenAI's refuses what its rule names, and takes what OpenAI takes otherwise; and so does Ollama.
func TestCompatibleServersRefuse(t *testing.T) {
	conversation := func(more, call string) string {
		return `[{"role":"user","content":"x"},{"role":"assistant"` + more + `,"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}` + call + `}]},{"role":"tool","tool_call_id":"abcdefghi","content":"y"}]`
	}
	const signed = `,"extra_content":{"google":{"thought_signature":"signed"}}`
	taken := map[string]string{
		"deepseek": conversation(`,"reasoning_content":""`, ""), "moonshot": conversation(`,"reasoning_content":"t"`, ""), "gemini-openai": conversation("", signed),
		"litellm": conversation(`,"reasoning_content":"t","thinking_blocks":[{"type":"thinking","signature":"seal"}]`, ""),
	}
	refused := map[string][][2]string{ // the messages, and further members of the request
		"groq":          {{conversation(`,"reasoning_content":"t"`, ""), ""}},
		"cerebras":      {{conversation(`,"reasoning_content":"t"`, ""), ""}},
		"mistral":       {{conversation(`,"reasoning":"t"`, ""), ""}, {conversation("", ""), `"stream_options":{},`}, {strings.ReplaceAll(conversation("", ""), "abcdefghi", "call_1"), ""}},
		"deepseek":      {{conversation("", ""), ""}},
		"moonshot":      {{conversation(`,"reasoning_content":null`, ""), ""}},
		"openrouter":    {{conversation(`,"reasoning_details":[{"type":"reasoning.encrypted","data":"other"}]`, ""), ""}},
		"gemini-openai": {{conversation("", ""), ""}},
		"xai":           {{conversation("", ""), `"stop":["x"],`}, {conversation(`,"reasoning_content":"t"`, ""), ""}},
		"litellm":       {{conversation(`,"reasoning_content":"t"`, ""), ""}, {conversation(`,"reasoning_content":"t","thinking_blocks":[]`, ""), ""}},
		"minimax":       {{conversation("", ""), ""}, {conversation(`,"reasoning_content":"t"`, ""), `"reasoning_split":true,`}},
		"llama.cpp":     {}, "vllm": {}, "without-done": {}, "without-reason": {},
	}
	for _, v := range CompatibleServers() {
		cases, listed := refused[v.Name]
		if !listed {
			t.Errorf("%s: nothing says what it refuses", v.Name)
		}
		good := taken[v.Name]
		if good == "" {
			good = conversation("", "")
		}
		if err := v.Check([]byte(`{"reasoning_split":true,"messages":` + good + `}`)); err != nil {
			t.Errorf("%s refuses %s: %v", v.Name, good, err)
		}
		for _, c := range append(cases, [2]string{`[{"role":"user"}]`, ""}) {
			if v.Check([]byte(`{`+c[1]+`"messages":`+c[0]+`}`)) == nil {
				t.Errorf("%s takes %s %s", v.Name, c[1], c[0])
			}
		}
	}
	const good = `{"model":"m","messages":[{"role":"user","content":"x"}],"options":{"num_ctx":4096},"truncate":false,"shift":false}`
	if err := Ollama().Check([]byte(good)); err != nil {
		t.Errorf("Ollama refuses %s: %v", good, err)
	}
	for _, change := range [][2]string{
		{`"truncate":false`, `"truncate":true`}, {`"shift":false`, `"stream":true`}, {`4096`, `999999`}, {`"x"`, `[{"type":"text"}]`}, {`"x"`, `"` + strings.Repeat("x", ollamaLimit) + `"`},
		{`"model":"m"`, `"model":"m","think":"a lot"`}, {`{"role":"user","content":"x"}`, `{"role":"tool","content":"x"}`}, {`"user"`, `"robot"`},
		{`{"role":"user","content":"x"}`, `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`},
		{`{"role":"user","content":"x"}`, `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"user","content":"x"}`},
	} {
		if body := strings.Replace(good, change[0], change[1], 1); Ollama().Check([]byte(body)) == nil {
			t.Errorf("Ollama takes %.200s", body)
		}
	}
}
