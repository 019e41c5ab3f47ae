package llmtest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/bedrock"
)

// The server takes a plain request, and refuses what Bedrock refuses.
func TestBedrockRefuses(t *testing.T) {
	user := `{"role":"user","content":[{"text":"x"}]}`
	use := `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}`
	result := `{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"y"}]}}]}`
	tools := `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`
	document := `{"document":{"format":"pdf","name":"a b-(1)","source":{"bytes":"eA=="}}}`
	mark := `{"cachePoint":{"type":"default"}}`
	for _, c := range []struct{ model, list, more, want string }{
		{"anthropic.claude-x", user, "", ""},
		{"anthropic.claude-x", user + "," + use + "," + result, tools, ""},
		{"anthropic.claude-x", user + "," + use + "," + result, "", "toolConfig field must be defined"},
		{"anthropic.claude-x", user + "," + use + "," + user, tools, "Expected toolResult blocks"},
		{"anthropic.claude-x", user + "," + use, tools, "must end with a user message"},
		{"anthropic.claude-x", result, tools, "exceeds the number of toolUse"},
		{"anthropic.claude-x", user + "," + use + "," + strings.ReplaceAll(result, `[{"toolResult"`, `[{"text":"b"},{"toolResult"`), tools, "at the beginning"},
		{"anthropic.claude-x", user + "," + use + "," + strings.ReplaceAll(result, `[{"text":"y"}]`, `[]`), tools, "cannot be empty"},
		{"anthropic.claude-x", user + "," + strings.ReplaceAll(use, `"a"`, `"a b"`) + "," + result, tools, "not valid"},
		{"anthropic.claude-x", user + "," + user, "", "must alternate"},
		{"anthropic.claude-x", `{"role":"assistant","content":[{"text":"x"}]}`, "", "starts with a user message"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":" "}]}`, "", "is blank"},
		{"anthropic.claude-x", `{"role":"user","content":[]}`, "", "content field in the Message object is empty"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x","image":{}}]}`, "", "must have one"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x","kind":"text"}]}`, "", "Malformed input request"},
		{"anthropic.claude-x", `{"role":"user","content":[` + document + `]}`, "", "text block is required"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + document + `]}`, "", ""},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + document + `,` + document + `]}`, "", "duplicate document names"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + strings.ReplaceAll(document, "a b", "a  b") + `]}`, "", "consecutive whitespace"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + strings.ReplaceAll(document, "a b", "a.pdf") + `]}`, "", "document file name"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + document + `,` + mark + `]}`, "", "Field required"},
		{"anthropic.claude-x", `{"role":"user","content":[{"text":"x"},` + mark + `]}`, "", ""},
		{"anthropic.claude-3-haiku-x", `{"role":"user","content":[{"text":"x"},` + mark + `]}`, "", "prompt caching"},
		{"meta.llama-x", `{"role":"user","content":[{"text":"x"},` + mark + `]}`, "", "prompt caching"},
		{"amazon.nova-x", user, strings.ReplaceAll(tools, `{"tools":[`, `{"tools":[`+mark+`,`), "extraneous key [cachePoint]"},
		{"anthropic.claude-x", user, `,"system":[{"text":"a"},` + strings.Repeat(mark+",", 4) + mark + `]`, "maximum of 4"},
		{"meta.llama-x", user + "," + use + "," + strings.ReplaceAll(result, `}]}}]`, `}]}},{"text":"b"}]`), tools, "same turn"},
		{"anthropic.claude-x", user + "," + use + "," + strings.ReplaceAll(result, `}]}}]`, `}]}},{"text":"b"}]`), tools, ""},
		{"anthropic.claude-x", user + `,{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a","signature":"seal of a"}}}]},` + user, "", "prefill"},
		{"anthropic.claude-x", user + `,{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"b","signature":"seal of a"}}},{"text":"x"}]},` + user, "", "Invalid `signature`"},
		{"anthropic.claude-x", user, `,"inferenceConfig":{"temperature":0.5,"maxTokens":2000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}`, "may only be set to 1"},
		{"anthropic.claude-x", user, `,"inferenceConfig":{"maxTokens":1000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}`, "must be greater"},
		{"openai.gpt-oss-x", user, `,"additionalModelRequestFields":{"reasoning_effort":"none"}`, "unknown variant"},
	} {
		err := checkBedrock(c.model, []byte(`{"messages":[`+c.list+`]`+c.more+`}`))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s%s: %v, want %q", c.model, c.list, c.more, err, c.want)
		}
	}
}

// The server takes a signature only with the right credentials for the request that has arrived.
func TestBedrockChecksSignatures(t *testing.T) {
	own := bedrock.Credentials{KeyID: AWSKeyID, Secret: AWSSecret, Token: AWSToken}
	for name, c := range map[string]struct {
		keys   bedrock.Credentials
		region string
		change func(r *http.Request)
		want   string
	}{
		"good":             {keys: own},
		"without session":  {keys: bedrock.Credentials{KeyID: AWSKeyID, Secret: AWSSecret}},
		"other account":    {keys: bedrock.Credentials{KeyID: "AKIAOTHER", Secret: AWSSecret}, want: "security token included in the request is invalid"},
		"other secret":     {keys: bedrock.Credentials{KeyID: AWSKeyID, Secret: "other"}, want: "does not match"},
		"old session":      {keys: bedrock.Credentials{KeyID: AWSKeyID, Secret: AWSSecret, Token: AWSExpired}, want: "is expired"},
		"other region":     {keys: own, region: "us-west-2", want: "scoped to a valid region"},
		"changed path":     {keys: own, change: func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/model/other/converse-stream", "" }, want: "does not match"},
		"changed body":     {keys: own, change: func(r *http.Request) { r.Body = http.NoBody }, want: "does not match"},
		"changed header":   {keys: own, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, want: "does not match"},
		"no authorization": {keys: own, change: func(r *http.Request) { r.Header.Del("Authorization") }, want: "Missing Authentication Token"},
	} {
		t.Run(name, func(t *testing.T) {
			reason := "there was no request"
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body bytes.Buffer
				if c.change != nil {
					c.change(r)
				}
				body.ReadFrom(r.Body)
				reason = checkAuthorization(r, body.Bytes())
				w.WriteHeader(http.StatusBadRequest)
			}))
			defer s.Close()
			region := c.region
			if region == "" {
				region = AWSRegion
			}
			m, err := bedrock.New(bedrock.Config{
				Model:       "arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.claude-x:0",
				Region:      region,
				Endpoint:    llm.Endpoint{BaseURL: s.URL},
				Credentials: func(context.Context) (bedrock.Credentials, error) { return c.keys, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if (reason == "") != (c.want == "") || !strings.Contains(reason, c.want) {
				t.Errorf("%q, want %q", reason, c.want)
			}
		})
	}
}
