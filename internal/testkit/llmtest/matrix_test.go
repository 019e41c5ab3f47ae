package llmtest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/terminal/modeltest"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/bedrock"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/ollama"
	"raddle.dev/llm/openai"
)

var update = flag.Bool("update", false, "write the table of the guide again")

// matrixPage is the page of the guide with the table.
const matrixPage = "../../../docs/guide/matrix.md"

// TestMatrix plays the steps of raddle models test against each vendor, and compares what they find with the page of the guide.
func TestMatrix(t *testing.T) {
	page, err := os.ReadFile(matrixPage)
	if err != nil {
		t.Fatal(err)
	}
	const heading = "\n## What the steps find\n"
	head, old, _ := strings.Cut(string(page), heading)
	got := "\n" + makeMatrix(t)
	if d := cmp.Diff(strings.Split(old, "\n"), strings.Split(got, "\n")); d != "" && *update {
		if err := os.WriteFile(matrixPage, []byte(head+heading+got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d != "" {
		t.Errorf("docs/guide/matrix.md says something else than the steps find; write it again with\n\tgo test ./internal/testkit/llmtest -run TestMatrix -update\n(-page +found):\n%s", d)
	}
}

// makeMatrix returns the table and the reasons below it.
func makeMatrix(t *testing.T) string {
	var notes, rows []string
	for _, v := range Vendors() {
		report := playSteps(t, v.WithLacks())
		name := v.Name
		if name == "OpenAI" {
			name = "any other" // with the rules for servers that raddle does not know
		}
		rows = append(rows, modeltest.FormatRow(name, "test server", "", report.Steps, func(r modeltest.Result) string {
			note := r.Error
			for i, known := range notes {
				if known == note {
					return fmt.Sprintf("(%d)", i+1)
				}
			}
			notes = append(notes, note)
			return fmt.Sprintf("(%d)", len(notes))
		}))
	}
	table := modeltest.FormatHeading() + "\n" + strings.Join(rows, "\n") + "\n"
	for i, note := range notes {
		table += fmt.Sprintf("\n%d. %s", i+1, note)
	}
	return table + "\n"
}

// playSteps plays the steps against a vendor, in the wire and with the profile that it has.
func playSteps(t *testing.T, v Vendor) modeltest.Report {
	t.Helper()
	requests, size := 0, 0
	server := httptest.NewServer(v.NewHandler(func(body []byte) (Turn, int) {
		requests++
		size += len(attached.ReplaceAll(body, nil))
		return Obey(body), http.StatusOK
	}))
	defer server.Close()
	trial := &provider.Trial{ID: "x:x", Model: "x", Server: v.Name, Facts: flow.ModelFacts{Efforts: effortsOf(v)}}
	report, err := modeltest.Run(t.Context(), modeltest.Target{Trial: trial, Open: func(_ context.Context, _ string, watch func(http.RoundTripper) http.RoundTripper) (llm.Model, error) {
		return openThrough(v, server.URL, &http.Client{Transport: watch(http.DefaultTransport)})
	}}, func(modeltest.Result) {})
	if err != nil {
		t.Errorf("%s: %v", v.Name, err)
	}
	if requests > report.Most.Requests || size > report.Most.Input {
		t.Errorf("%s: %d requests with %d bytes, more than %+v", v.Name, requests, size, report.Most)
	}
	return report
}

// attached matches the bytes of pictures and documents.
var attached = regexp.MustCompile(`[A-Za-z0-9+/]{100,}=*`)

// effortsOf returns the efforts of a vendor's models; those of xAI and Llama take none.
func effortsOf(v Vendor) []string {
	if v.Name == "xai" || v.Name == "Bedrock Llama" {
		return []string{}
	}
	return []string{"none", "low", "high"}
}

// openThrough returns the model of a vendor whose connections go through an HTTP client.
func openThrough(v Vendor, url string, through *http.Client) (llm.Model, error) {
	switch v.Name {
	case "OpenAI":
		return openai.New(openai.Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}})
	case "OpenAI responses":
		return openai.NewResponses(openai.Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}})
	case "Anthropic":
		return anthropic.New(anthropic.Config{Model: "claude-x", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}})
	case "Ollama":
		return ollama.New(ollama.Config{Model: "qwen3:8b", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}})
	case "Gemini":
		return gemini.New(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}})
	case "Vertex Anthropic":
		return anthropic.New(anthropic.Config{Model: "claude-x@20260101", Endpoint: llm.Endpoint{BaseURL: url + vertexPath, HTTPClient: through}, Vertex: true, Authorize: authorizeVertex})
	case "Vertex Gemini":
		return gemini.New(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: url + vertexPath, HTTPClient: through}, Vertex: true, Authorize: authorizeVertex})
	case "Azure":
		return openai.NewResponses(openai.Config{Model: AzureDeployment, Endpoint: llm.Endpoint{BaseURL: "http://example.openai.azure.com/openai/v1", APIKey: AzureKey, HTTPClient: throughTo(url, through)}})
	case "Bedrock", "Bedrock Llama":
		name := "eu.anthropic.claude-x-20260101-v1:0"
		if v.Name != "Bedrock" {
			name = "meta.llama-x:0"
		}
		return bedrock.New(bedrock.Config{
			Model:  name,
			Region: AWSRegion,
			Endpoint: llm.Endpoint{
				BaseURL:    url,
				HTTPClient: through,
			},
			Credentials: func(context.Context) (bedrock.Credentials, error) {
				return bedrock.Credentials{KeyID: AWSKeyID, Secret: AWSSecret, Token: AWSToken}, nil
			},
		})
	}
	c := openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url, HTTPClient: through}}
	if _, known := openai.FindProfile(v.Name); known {
		c.Profile = v.Name
	}
	return openai.New(c)
}
