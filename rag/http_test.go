package rag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/rag/embed"
	"raddle.dev/rag/load"
)

// TestEmbeddingServer builds and searches over a real connection, with a server that the test configures.
func TestEmbeddingServer(t *testing.T) {
	var behave, texts atomic.Value
	behave.Store("")
	texts.Store([]string(nil))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch mode := behave.Load(); mode {
		case "limit once":
			behave.Store("")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case "garbage":
			fmt.Fprint(w, "<html>")
			return
		case "refuse":
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		texts.Store(append(texts.Load().([]string), body.Input...))
		dims := 3
		if behave.Load() == "dimensions" {
			dims = 5
		}
		reply := struct {
			Embeddings [][]float32 `json:"embeddings"`
		}{}
		for _, text := range body.Input {
			v := make([]float32, dims)
			v[0], v[1], v[2] = float32(strings.Count(text, "a")), float32(strings.Count(text, "b")), 1
			reply.Embeddings = append(reply.Embeddings, v)
		}
		if err := json.NewEncoder(w).Encode(reply); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	dir := t.TempDir()
	file := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "one.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file("aaaa aaaa\n\nbbbb bbbb")
	base, err := rag.Open(filepath.Join(dir, "kb"), rag.Options{Model: "ollama:m", ChunkSize: 12, Load: load.Options{Dir: dir},
		Embedder: func(model string) (rag.Embedder, error) {
			return embed.New(embed.Config{API: embed.Ollama, BaseURL: s.URL, Model: strings.TrimPrefix(model, "ollama:")})
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()

	behave.Store("limit once")
	if r, err := base.Build(t.Context(), []string{"one.txt"}, nil); err != nil || r.Embedded != 2 {
		t.Fatalf("after a rate limit: %+v, %v", r, err)
	}
	search := func(want string) {
		t.Helper()
		hits, err := base.Search(t.Context(), "abbb", rag.SearchOptions{TopK: 1})
		if err != nil || len(hits) != 1 || hits[0].Text != want {
			t.Errorf("hits %v, %v", hits, err)
		}
	}
	search("bbbb bbbb")

	file("aaaa aaaa\n\nbbbb bbab")
	for mode, want := range map[string]string{
		"garbage":    "Failed to create embedding after 2 attempts: server error",
		"dimensions": "5 dimensions came back where 3 are expected",
		"refuse":     "Failed to create embedding after 1 attempts: authentication failed (401)",
	} {
		behave.Store(mode)
		_, err := base.Build(t.Context(), []string{"one.txt"}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", mode, err, want)
		}
		if mode == "refuse" {
			if f := (*llm.Error)(nil); !errors.As(err, &f) || f.Class != llm.Auth {
				t.Errorf("error %v has no class", err)
			}
		}
		behave.Store("")
		search("bbbb bbbb")
	}
	texts.Store([]string(nil))
	if r, err := base.Build(t.Context(), []string{"one.txt"}, nil); err != nil || r.Embedded != 1 {
		t.Errorf("the last build: %+v, %v", r, err)
	}
	if got := texts.Load().([]string); len(got) != 1 || got[0] != "bbbb bbab" {
		t.Errorf("sent %q", got)
	}
	search("bbbb bbab")
}
