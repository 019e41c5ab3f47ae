package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

const claude = "eu.anthropic.claude-x-1:0"

var own = Credentials{KeyID: llmtest.AWSKeyID, Secret: llmtest.AWSSecret, Token: llmtest.AWSToken}

func newModel(t testing.TB, name, base string, keys Credentials) *Model {
	t.Helper()
	m, err := New(Config{
		Model:       name,
		Region:      llmtest.AWSRegion,
		Endpoint:    llm.Endpoint{BaseURL: base},
		Credentials: func(context.Context) (Credentials, error) { return keys, nil },
		Advice:      func() string { return "The credentials are from a test." },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func frame(name, payload string) string     { return llmtest.Frame("event", name, payload) }
func exception(name, payload string) string { return llmtest.Frame("exception", name, payload) }

func textDelta(s string) string {
	return frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+s+`"},"p":"abc"}`)
}

var (
	start = frame("messageStart", `{"role":"assistant"}`)
	rest  = frame("contentBlockStop", `{"contentBlockIndex":0}`) + frame("messageStop", `{"stopReason":"end_turn"}`) + frame("metadata", `{"usage":{"inputTokens":6,"outputTokens":15,"totalTokens":21,"cacheReadInputTokens":4,"cacheWriteInputTokens":2}}`)
)

func serve(t testing.TB, stream string) *wiretest.Server {
	return wiretest.StartServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventMedia)
		wiretest.SendText(w, stream)
	})
}

func TestFailures(t *testing.T) {
	wiretest.CheckFailures(t, wiretest.Provider{
		New: func(t testing.TB, base string, read time.Duration) llm.Model {
			m, err := New(Config{Model: claude, Region: "us-east-1", Endpoint: llm.Endpoint{BaseURL: base, APIKey: wiretest.Key, KeyName: "MY_KEY", ReadTimeout: read}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		KeyName: "MY_KEY", Start: start + textDelta("Hel"), Rest: textDelta("lo") + rest, Media: eventMedia, Malformed: frame("contentBlockDelta", `{"oops`),
		StreamError: exception("serviceUnavailableException", `{"message":"too busy"}`),
		Error: func(status int, message string) string {
			text, _ := json.Marshal(message)
			if status == http.StatusUnauthorized { // of a gateway: AWS answers with 403
				return fmt.Sprintf(`{"error":{"code":401,"message":%s}}`, text)
			}
			return fmt.Sprintf(`{"message":%s}`, text)
		},
	})
}

// The names of exceptions decide what a failure is, and what can be done is said.
func TestExceptions(t *testing.T) {
	for _, c := range []struct {
		status        int // 0: within the stream
		name, message string
		class         llm.Class
		want          string
	}{
		{429, "ThrottlingException", "Too many tokens, please wait before trying again.", llm.RateLimited, "Too many tokens"},
		{0, "throttlingException", "Too many requests", llm.RateLimited, "Too many requests"},
		{400, "ServiceQuotaExceededException", "quota", llm.RateLimited, "quota"},
		{429, "ModelNotReadyException", "The model is not ready", llm.Overloaded, "not ready"},
		{408, "ModelTimeoutException", "slow", llm.Timeout, "slow"},
		{424, "ModelErrorException", "broken", llm.Server, "broken"},
		{0, "modelStreamErrorException", "broken", llm.Server, "broken"},
		{0, "internalServerException", "oh", llm.Server, "oh"},
		{400, "ValidationException", "Input is too long for requested model.", llm.ContextLength, "too long"},
		{0, "validationException", "The model returned the following errors: prompt is too long: 903884 tokens > 200000 maximum", llm.ContextLength, "too long"},
		{400, "ValidationException", "Invocation of model ID x with on-demand throughput isn’t supported.", llm.BadRequest, "Name an inference profile instead, such as us."},
		{400, "ValidationException", "This model doesn't support tool use in streaming mode.", llm.BadRequest, "Use another model"},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", llm.Auth, "bedrock:InvokeModelWithResponseStream"},
		{403, "ExpiredTokenException", "The security token included in the request is expired", llm.Auth, "The credentials are from a test."},
		{403, "InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than 20260101T001000Z", llm.Auth, "The clock of this machine is wrong"},
		{403, "SignatureDoesNotMatch", "Signature not yet current: 20260101T000000Z is still later than", llm.Auth, "The clock of this machine is wrong"},
		{404, "ResourceNotFoundException", "no such model", llm.BadRequest, "name of the model"},
	} {
		s := wiretest.StartServer(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.status == 0 {
				w.Header().Set("Content-Type", eventMedia)
				wiretest.SendText(w, start+exception(c.name, `{"message":"`+c.message+`"}`))
				return
			}
			w.Header().Set("X-Amzn-Errortype", c.name+":http://internal.amazon.com/")
			w.WriteHeader(c.status)
			fmt.Fprintf(w, `{"message":%q}`, c.message)
		})
		_, err := llm.Generate(t.Context(), newModel(t, claude, s.URL, own), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.want) || !strings.EqualFold(e.Code, c.name) {
			t.Errorf("%s: %v (%+v), want %s with %q", c.name, err, e, c.class, c.want)
		}
	}
}

// A signature that AWS refuses is an error without a secret, although AWS quotes the request with its session token.
func TestRefusedSignature(t *testing.T) {
	for name, c := range map[string]struct {
		keys Credentials
		want string
	}{
		"wrong secret":  {Credentials{KeyID: own.KeyID, Secret: "wrong-secret-of-an-account", Token: own.Token}, "does not match"},
		"wrong account": {Credentials{KeyID: "AKIAOTHER", Secret: own.Secret, Token: own.Token}, "is invalid"},
		"expired":       {Credentials{KeyID: own.KeyID, Secret: own.Secret, Token: llmtest.AWSExpired}, "is expired"},
	} {
		server := startVendor(t, llmtest.Bedrock())
		_, err := llm.Generate(t.Context(), newModel(t, claude, server, c.keys), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.Auth || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "The credentials are from a test.") {
			t.Errorf("%s: %v", name, err)
		}
		for _, secret := range []string{c.keys.Secret, own.Token} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows a secret: %v", name, err)
			}
		}
	}
	refused := &llm.Error{Class: llm.Auth, Message: "no profile"}
	m, err := New(Config{Model: claude, Region: "us-east-1", Endpoint: llm.Endpoint{BaseURL: "http://127.0.0.1:1"}, Credentials: func(context.Context) (Credentials, error) { return Credentials{}, refused }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}}); !errors.Is(err, refused) {
		t.Errorf("no credentials: %v", err)
	}
}

// startVendor starts a server that answers every request with one word.
func startVendor(t *testing.T, v llmtest.Vendor) string {
	s := httptest.NewServer(v.NewHandler(func([]byte) (llmtest.Turn, int) { return llmtest.Turn{Text: "ok"}, 0 }))
	t.Cleanup(s.Close)
	return s.URL
}

// The API key counts before credentials, and the headers that a user adds do not break a signature.
func TestAuthorization(t *testing.T) {
	asked := 0
	keys := func(context.Context) (Credentials, error) { asked++; return own, nil }
	for _, c := range []struct {
		config Config
		asked  int
	}{
		{Config{Endpoint: llm.Endpoint{APIKey: llmtest.BedrockKey}, Credentials: keys}, 0},
		{Config{Credentials: keys, Endpoint: llm.Endpoint{Headers: map[string]string{"X-Team": "a  b", "User-Agent": "mine"}, Body: map[string]any{"inferenceConfig": map[string]any{"maxTokens": 9}}}}, 1},
	} {
		asked = 0
		c.config.Model, c.config.Region, c.config.BaseURL = "arn:aws:bedrock:eu-central-1:1:inference-profile/"+claude, llmtest.AWSRegion, startVendor(t, llmtest.Bedrock())
		m, err := New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := llm.Generate(llm.WithTraceparent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), m, llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if err != nil || reply.Text() != "ok" || asked != c.asked {
			t.Errorf("%q, %v, asked %d times", reply.Text(), err, asked)
		}
	}
}

func TestConfig(t *testing.T) {
	keys := func(context.Context) (Credentials, error) { return own, nil }
	for _, c := range []struct {
		config Config
		url    string // or the error
	}{
		{Config{Model: claude, Region: "us-east-1", Credentials: keys}, "https://bedrock-runtime.us-east-1.amazonaws.com/model/eu.anthropic.claude-x-1%3A0/converse-stream"},
		{Config{Model: "arn:aws:bedrock:a:1:inference-profile/x", Region: "cn-north-1", Endpoint: llm.Endpoint{APIKey: "k"}}, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/arn%3Aaws%3Abedrock%3Aa%3A1%3Ainference-profile%2Fx/converse-stream"},
		{Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/"}, Credentials: keys}, "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/model/x/converse-stream"},
		{Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: "http://gateway/aws", APIKey: "k"}}, "http://gateway/aws/model/x/converse-stream"},
		{Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: "http://gateway"}, Credentials: keys}, "bedrock: no region is set"},
		{Config{Model: "x", Credentials: keys}, "bedrock: no region is set"},
		{Config{Model: "x", Region: "us-east-1"}, "no credentials: set AWS_BEARER_TOKEN_BEDROCK"},
		{Config{Region: "us-east-1", Endpoint: llm.Endpoint{APIKey: "k"}}, "bedrock: no model is set"},
	} {
		m, err := New(c.config)
		if err != nil && !strings.HasSuffix(err.Error(), c.url) || err == nil && m.url != c.url {
			t.Errorf("%+v: %v, %+v", c.config, err, m)
		}
	}
	for id, want := range map[string]string{
		"anthropic.claude-x": "anthropic", "us.anthropic.claude-x:0": "anthropic", "global.amazon.nova-x": "amazon", "us-gov.anthropic.claude-x": "anthropic",
		"openai.gpt-oss-120b-1:0": "openai", "us.deepseek.r1-v1:0": "deepseek", "arn:aws:bedrock:us-east-1:1:inference-profile/us.meta.llama4-x:0": "meta",
		"arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123": "", "x": "",
	} {
		if got := makerOf(id); got != want {
			t.Errorf("%s is of %q, want %q", id, got, want)
		}
	}
}

func TestRequest(t *testing.T) {
	temperature := 0.5
	r := llm.Request{
		System: "Be brief.", Temperature: &temperature, MaxTokens: 9, Stop: []string{"END"}, Schema: json.RawMessage(`{"type":"object"}`),
		Tools: []llm.ToolSpec{{Name: "now"}, {Name: "find", Description: "Finds.", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{llm.File{Name: "Jörg's  report_v1.pdf", MIME: "application/pdf", Data: []byte("pdf")}, llm.Image{MIME: "image/png", Data: []byte("png")}}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "foreign", Signature: "x", Origin: "anthropic"}, llm.Text{Text: "c"}, llm.ToolCall{ID: "1", Name: "now", Args: json.RawMessage(`{}`)}}},
			{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "1", Name: "now", Error: true, Content: []llm.Part{llm.File{Name: "J rg s report v1.md", MIME: "text/markdown", Data: []byte("md")}}}}},
			llm.User("go on"),
		},
	}
	tools := `{"toolSpec":{"name":"now","inputSchema":{"json":{"type":"object","properties":{}}}}},{"toolSpec":{"name":"find","description":"Finds.","inputSchema":{"json":{"type":"object","properties":{"q":{"type":"string"}}}}}}`
	system := `{"text":"Be brief."},{"text":"When you answer, write only JSON that matches this schema, without anything around it:\n{\"type\":\"object\"}"}`
	first := `{"text":"See the attached documents."},{"document":{"format":"pdf","name":"J rg s report v1","source":{"bytes":"cGRm"}}},{"image":{"format":"png","source":{"bytes":"cG5n"}}}`
	document := `{"document":{"format":"md","name":"J rg s report v1 2","source":{"bytes":"bWQ="}}}`
	for model, want := range map[string]string{
		claude: `{"system":[` + system + `,{"cachePoint":{"type":"default"}}],"inferenceConfig":{"temperature":0.5,"maxTokens":9,"stopSequences":["END"]},"toolConfig":{"tools":[` + tools + `],"toolChoice":{"auto":{}}},
			"messages":[{"role":"user","content":[` + first + `,{"cachePoint":{"type":"default"}}]},{"role":"assistant","content":[{"text":"c"},{"toolUse":{"toolUseId":"1","name":"now","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"1","status":"error","content":[` + document + `]}},{"text":"go on"},{"cachePoint":{"type":"default"}}]}]}`,
		"meta.llama-x": `{"system":[` + system + `],"inferenceConfig":{"temperature":0.5,"maxTokens":9,"stopSequences":["END"]},"toolConfig":{"tools":[` + tools + `]},
			"messages":[{"role":"user","content":[` + first + `]},{"role":"assistant","content":[{"text":"c"}]},{"role":"user","content":[{"text":"Please continue."}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"now","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"Error:"},` + document + `]}}]},{"role":"assistant","content":[{"text":"I have the results."}]},{"role":"user","content":[{"text":"go on"}]}]}`,
	} {
		q, err := newModel(t, model, "http://x", own).buildRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		wiretest.EqualJSON(t, []byte(want), body)
	}
}

// The server takes the marks of the cache where each model has them, and what asks for effort.
func TestModelsDiffer(t *testing.T) {
	half := 0.5
	tools := []llm.ToolSpec{{Name: "now"}}
	for _, c := range []struct {
		model  string
		r      llm.Request
		want   string
		absent string
	}{
		{claude, llm.Request{Tools: tools}, `"toolConfig":{"tools":[{"toolSpec":{"inputSchema":{"json":{"type":"object","properties":{}}},"name":"now"}},{"cachePoint":{"type":"default"}}]`, ""},
		{claude, llm.Request{}, `"messages"`, "cachePoint"},
		{"anthropic.claude-3-haiku-x", llm.Request{Tools: tools}, `"toolConfig"`, "cachePoint"},
		{"us.amazon.nova-x", llm.Request{Tools: tools}, `{"text":"hi"},{"cachePoint":{"type":"default"}}`, `"name":"now"}},{"cachePoint"`},
		{"us.amazon.nova-x", llm.Request{Tools: tools, System: "s"}, `{"text":"s"},{"cachePoint":{"type":"default"}}`, ""},
		{"meta.llama-x", llm.Request{Tools: tools}, `"toolConfig"`, "toolChoice"},
		{claude, llm.Request{Effort: "high", Temperature: &half, TopP: &half}, `"output_config":{"effort":"high"},"thinking":{"display":"summarized","type":"adaptive"}`, "temperature"},
		{claude, llm.Request{Effort: "2048"}, `"inferenceConfig":{"maxTokens":18432},"additionalModelRequestFields":{"thinking":{"budget_tokens":2048,"type":"enabled"}}`, ""},
		{claude, llm.Request{Effort: "none", Temperature: &half}, `"temperature":0.5`, "enabled"},
		{"openai.gpt-oss-120b-1:0", llm.Request{Effort: "xhigh"}, `"reasoning_effort":"high"`, ""},
		{"openai.gpt-oss-120b-1:0", llm.Request{Effort: "none"}, `"reasoning_effort":"low"`, ""},
		{"us.amazon.nova-2-x", llm.Request{Effort: "high", MaxTokens: 9, Temperature: &half}, `{"reasoningConfig":{"maxReasoningEffort":"high","type":"enabled"}}`, "inferenceConfig"},
		{"meta.llama-x", llm.Request{Effort: "none"}, `"messages"`, "additional"},
	} {
		v := llmtest.Bedrock()
		s := llmtest.StartServer(t, v, llmtest.Turn{Text: "ok"})
		c.r.Messages = []llm.Message{llm.User("hi")}
		if _, err := llm.Generate(t.Context(), newModel(t, c.model, s.URL, own), c.r); err != nil {
			t.Errorf("%s: %v", c.model, err)
			continue
		}
		body := string(s.RequestBodies()[0])
		if !strings.Contains(body, c.want) || c.absent != "" && strings.Contains(body, c.absent) {
			t.Errorf("%s: %s lacks %s, or has %s", c.model, body, c.want, c.absent)
		}
	}
	m := newModel(t, "meta.llama-x", "http://x", own)
	if _, err := llm.Generate(t.Context(), m, llm.Request{Effort: "high", Messages: []llm.Message{llm.User("hi")}}); err == nil || !strings.Contains(err.Error(), "additionalModelRequestFields") {
		t.Errorf("effort of another maker: %v", err)
	}
}

// What the wire cannot carry is refused before anything is sent.
func TestRefusesBeforeSending(t *testing.T) {
	for name, part := range map[string]llm.Part{
		"an address": llm.Image{MIME: "image/png", URL: "https://x/y.png"}, "a drawing": llm.Image{MIME: "image/svg+xml", Data: []byte("<svg/>")},
		"an address of a file": llm.File{MIME: "application/pdf", URL: "https://x/y.pdf"}, "an archive": llm.File{MIME: "application/zip", Data: []byte("PK")},
	} {
		_, err := llm.Generate(t.Context(), newModel(t, claude, "http://127.0.0.1:1", own), llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReply(t *testing.T) {
	stream := start +
		frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}}}`) + frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m."}}}`) +
		frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"sig"}}}`) + frame("contentBlockStop", `{"contentBlockIndex":0}`) +
		frame("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"aGlk"}}}`) + frame("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"ZGVu"}}}`) + frame("contentBlockStop", `{"contentBlockIndex":1}`) +
		frame("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"text":"It is."}}`) + frame("contentBlockStop", `{"contentBlockIndex":2}`) +
		frame("contentBlockStart", `{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"t1","name":"f"}}}`) + frame("contentBlockDelta", `{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"n\":12345678901234567890}"}}}`) + frame("contentBlockStop", `{"contentBlockIndex":3}`) +
		frame("later", `{"a":1}`) + frame("messageStop", `{"stopReason":"tool_use"}`) +
		frame("metadata", `{"usage":{"inputTokens":6,"outputTokens":15,"totalTokens":21,"cacheReadInputTokens":4,"cacheWriteInputTokens":2}}`)
	m := newModel(t, claude, serve(t, stream).URL, own)
	reply, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.Part{
		llm.Reasoning{Text: "Hmm.", Signature: "sig", Origin: m.origin}, llm.Reasoning{Signature: "aGlkZGVu", Redacted: true, Origin: m.origin},
		llm.Text{Text: "It is."}, llm.ToolCall{ID: "t1", Name: "f", Args: json.RawMessage(`{"n":12345678901234567890}`)},
	}
	if !slices.EqualFunc(reply.Message.Parts, want, func(a, b llm.Part) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }) {
		t.Errorf("%+v", reply.Message.Parts)
	}
	if reply.Usage != (llm.Usage{Input: 12, Output: 15, Cached: 4, Written: 2}) || reply.Stop != llm.StopTools || reply.Model != claude {
		t.Errorf("%+v", reply)
	}
	if !strings.HasPrefix(m.origin, "bedrock.anthropic@127.0.0.1:") {
		t.Errorf("origin is %s", m.origin)
	}
	q, err := m.buildRequest(llm.Request{Messages: []llm.Message{llm.User("a"), reply.Message}})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(q.Messages[1].Content[:2])
	wiretest.EqualJSON(t, []byte(`[{"reasoningContent":{"reasoningText":{"text":"Hmm.","signature":"sig"}}},{"reasoningContent":{"redactedContent":"aGlkZGVu"}}]`), body)
	other := newModel(t, "openai.gpt-oss-120b-1:0", serve(t, "").URL, own)
	if q, _ = other.buildRequest(llm.Request{Messages: []llm.Message{llm.User("a"), reply.Message}}); q.Messages[1].Content[0].Reasoning != nil {
		t.Error("reasoning of another maker goes to the model")
	}
}

// A stream that ends after the stop reason is complete, and one with a broken frame is an error.
func TestFrames(t *testing.T) {
	ask := func(stream string) (llm.Reply, error) {
		return llm.Generate(t.Context(), newModel(t, claude, serve(t, stream).URL, own), llm.Request{Messages: []llm.Message{llm.User("hi")}})
	}
	if reply, err := ask(start + textDelta("x") + frame("messageStop", `{"stopReason":"end_turn"}`)); err != nil || reply.Text() != "x" {
		t.Errorf("without metadata: %+v, %v", reply, err)
	}
	whole := textDelta("x")
	broken := whole[:len(whole)-20] + "y" + whole[len(whole)-19:]
	if _, err := ask(start + broken + rest); err == nil || !strings.Contains(err.Error(), "broken frame") {
		t.Errorf("a broken frame: %v", err)
	}
	if _, err := ask(start + "nonsense that is no frame at all" + rest); err == nil {
		t.Error("nonsense is a reply")
	}
	if _, err := ask(start + llmtest.Frame("error", "x", "")); err == nil {
		t.Error("an error is a reply")
	}
}

// Frames in pieces of any size, and of any content, are read without a crash.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(start + textDelta("x") + rest))
	f.Add([]byte(exception("a", "b\n\nc")))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := translateFrames(strings.NewReader(string(data)))
		buffer := make([]byte, 7)
		for {
			if _, err := reader.Read(buffer); err != nil {
				return
			}
		}
	})
}
