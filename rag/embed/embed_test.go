package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/rag"
)

// serve answers one path, and returns what was asked.
func serve(t *testing.T, path, reply string) (base string, asked *map[string]any, header *http.Header) {
	t.Helper()
	asked, header = &map[string]any{}, &http.Header{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != path || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "not here", http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			*asked = nil
			err = json.Unmarshal(body, asked)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*header = r.Header.Clone()
		io.WriteString(w, reply)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked, header
}

func TestWires(t *testing.T) {
	cases := []struct {
		name, path, base, reply string
		c                       Config
		purpose                 rag.Purpose
		body                    string
		key                     string // the header that carries it
		value                   string
	}{
		{name: "openai", path: "/v1/embeddings", base: "/v1/",
			reply: `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`,
			c:     Config{API: OpenAI, Model: "small", Key: "sk", Dimensions: 2},
			body:  `{"model":"small","input":["one","two"],"encoding_format":"float","dimensions":2}`,
			key:   "Authorization", value: "Bearer sk"},
		{name: "gemini", path: "/v1beta/models/e1:batchEmbedContents", base: "/v1beta", purpose: rag.ForQuery,
			reply: `{"embeddings":[{"values":[1,2]},{"values":[3,4]}]}`,
			c:     Config{API: Gemini, Model: "e1", Key: "gk"},
			body: `{"requests":[{"model":"models/e1","taskType":"RETRIEVAL_QUERY","content":{"parts":[{"text":"one"}]}},
				{"model":"models/e1","taskType":"RETRIEVAL_QUERY","content":{"parts":[{"text":"two"}]}}]}`,
			key: "X-Goog-Api-Key", value: "gk"},
		{name: "ollama", path: "/api/embed", reply: `{"embeddings":[[1,2],[3,4]]}`,
			c:    Config{API: Ollama, Model: "nomic"},
			body: `{"model":"nomic","input":["one","two"],"truncate":false}`, key: "Authorization"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			base, asked, header := serve(t, c.path, c.reply)
			c.c.BaseURL = base + c.base
			m, err := New(c.c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Embed(t.Context(), c.purpose, []string{"one", "two"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]float32{{1, 2}, {3, 4}}, got); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.body), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, *asked); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if got := header.Get(c.key); got != c.value {
				t.Errorf("%s: %q, want %q", c.key, got, c.value)
			}
		})
	}
}

func TestGeminiTakesHundredAtATime(t *testing.T) {
	var sizes []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Requests []any }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sizes = append(sizes, len(body.Requests))
		fmt.Fprintf(w, `{"embeddings":[%s{"values":[1]}]}`, strings.Repeat(`{"values":[1]},`, len(body.Requests)-1))
	}))
	defer s.Close()
	m, err := New(Config{API: Gemini, Model: "e", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Embed(t.Context(), rag.ForDocument, make([]string, 230))
	if err != nil || len(got) != 230 {
		t.Fatalf("%d vectors, %v", len(got), err)
	}
	if diff := cmp.Diff([]int{100, 100, 30}, sizes); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestReranker(t *testing.T) {
	base, asked, header := serve(t, "/v2/rerank", `{"results":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.1}]}`)
	m, err := NewReranker(Config{BaseURL: base + "/v2", Model: "r", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Rerank(t.Context(), "q", []string{"a", "b", "c"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2, 0}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	want := map[string]any{"model": "r", "query": "q", "documents": []any{"a", "b", "c"}, "top_n": 2.0}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if got := header.Get("Authorization"); got != "Bearer k" {
		t.Errorf("Authorization: %q", got)
	}
}

func TestFailures(t *testing.T) {
	const key = "sk-very-secret"
	for _, c := range []struct {
		name    string
		status  int
		header  string
		body    string
		class   llm.Class
		message string
		wait    time.Duration
	}{
		{name: "key", status: 401, body: `{"error":{"message":"wrong key ` + key + `"}}`, class: llm.Auth, message: "wrong key [redacted]. The key of client \"mine\" (MY_KEY) was refused."},
		{name: "limit", status: 429, header: "7", body: `{"error":"slow down"}`, class: llm.RateLimited, message: "slow down", wait: 7 * time.Second},
		{name: "overloaded", status: 503, body: "busy\nmore", class: llm.Overloaded, message: "busy"},
		{name: "server", status: 500, body: `{"detail":"oops"}`, class: llm.Server, message: "oops"},
		{name: "request", status: 400, body: `{"message":"no such model"}`, class: llm.BadRequest, message: "no such model"},
		{name: "redirect", status: 307, class: llm.BadRequest, message: "elsewhere"},
		{name: "garbage", status: 200, body: "<html>", class: llm.Server, message: "not the JSON"},
		{name: "wrong type", status: 200, body: `{"data":[{"embedding":"abc"}]}`, class: llm.Server, message: "not the JSON"},
		{name: "indexes", status: 200, body: `{"data":[{"index":4,"embedding":[1]}]}`, class: llm.Server, message: "indexes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.Header().Set("Location", "http://elsewhere.invalid/")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer s.Close()
			m, err := New(Config{API: OpenAI, BaseURL: s.URL, Model: "m", Key: key, KeyName: "MY_KEY", KeySource: `client "mine" (MY_KEY)`})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Embed(t.Context(), rag.ForDocument, []string{"x"})
			var f *llm.Error
			if !errors.As(err, &f) || f.Class != c.class || f.RetryAfter != c.wait || !strings.Contains(f.Message, c.message) {
				t.Errorf("error %#v", err)
			}
			if strings.Contains(fmt.Sprint(err), key) {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

func TestServerCannotBeReached(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	base := s.URL
	s.Close()
	m, err := New(Config{API: Ollama, BaseURL: base, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Embed(t.Context(), rag.ForDocument, []string{"x"})
	var f *llm.Error
	if !errors.As(err, &f) || f.Class != llm.Network || f.Code != llm.CodeRefused {
		t.Errorf("error %#v", err)
	}
}

func TestSilentServer(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer s.Close()
	defer close(done)
	m, err := New(Config{API: Ollama, BaseURL: s.URL, Model: "m", Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Embed(t.Context(), rag.ForDocument, []string{"x"})
	var f *llm.Error
	if !errors.As(err, &f) || f.Class != llm.Timeout {
		t.Errorf("error %#v", err)
	}
}

func TestConfigs(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{API: "x", BaseURL: "http://h", Model: "m"}, `API "x" is not known`},
		{Config{API: OpenAI, BaseURL: "h", Model: "m"}, "is not one"},
		{Config{API: OpenAI, BaseURL: "http://h"}, "name is empty"},
	} {
		if _, err := New(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c.c, err)
		}
	}
}
