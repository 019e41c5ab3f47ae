package rag

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
	"raddle.dev/rag/load"
)

// A reader is a server in the shape of OpenAI's that finds the capitalised words of a passage, each related to the next one.
type reader struct {
	url string

	mu       sync.Mutex
	passages []string
	answer   func(passage string) (text string, status int) // nil: as described
}

func newReader(t testing.TB) *reader {
	t.Helper()
	r := &reader{}
	s := httptest.NewServer(llmtest.OpenAI().NewHandler(func(body []byte) (llmtest.Turn, int) {
		var request struct {
			Temperature *float64
			Messages    []struct{ Content string }
		}
		if err := json.Unmarshal(body, &request); err != nil || request.Temperature == nil || *request.Temperature != 0 {
			return llmtest.Turn{Text: "temperature 0 is wanted"}, http.StatusBadRequest
		}
		_, passage, _ := strings.Cut(request.Messages[0].Content, "Passage:\n")
		r.mu.Lock()
		r.passages = append(r.passages, passage)
		answer := r.answer
		r.mu.Unlock()
		if answer == nil {
			answer = capitals
		}
		text, status := answer(passage)
		return llmtest.Turn{Text: text}, status
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

var capital = regexp.MustCompile(`[A-Z][a-z]+(?: [A-Z][a-z]+)*`)

// capitals is the answer to a passage.
func capitals(passage string) (string, int) {
	said := map[string]any{"entities": []any{}, "relationships": []any{}}
	var entities, relations []any
	names := capital.FindAllString(passage, -1)
	for i, name := range names {
		entities = append(entities, map[string]any{"name": name, "type": "thing", "description": "It is in: " + passage})
		if i > 0 {
			relations = append(relations, map[string]any{"from": names[i-1], "to": name, "type": "next", "weight": 0.5})
		}
	}
	if len(names) > 0 {
		said["entities"], said["relationships"] = entities, relations
	}
	text, _ := json.Marshal(said)
	return "```json\n" + string(text) + "\n```", http.StatusOK
}

// asked returns the passages since the last call, sorted.
func (r *reader) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	passages := r.passages
	r.passages = nil
	slices.Sort(passages)
	return passages
}

func (r *reader) answers(answer func(passage string) (string, int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func openAt(url string) func(context.Context, string) (llm.Model, error) {
	return func(_ context.Context, model string) (llm.Model, error) {
		return openai.New(openai.Config{Model: model, Endpoint: llm.Endpoint{BaseURL: url, APIKey: "key"}})
	}
}

func (r *reader) options(dir string) Options {
	return Options{ChunkSize: 60, Attempts: 1, Load: load.Options{Dir: dir},
		Extraction: Extraction{Model: "reader", Open: openAt(r.url)}}
}

var people = map[string]string{
	"docs/a.txt": "Ada wrote to Charles.\n\nCharles built the Analytical Engine in London.",
	"docs/b.txt": "London has a Science Museum where it stands.",
	"docs/c.txt": "nothing of note is here",
}

// graphOf is what a base knows of entities, without row ids.
func graphOf(t *testing.T, b *Base) (all []string) {
	t.Helper()
	names, places := map[int64]string{}, map[int64]string{}
	each(t, b, "SELECT id, name, '' FROM entity", func(id int64, name string, _ []byte) { names[id] = name })
	each(t, b, "SELECT c.id, d.path || ' ' || c.place, '' FROM chunk c JOIN document d ON d.id = c.document",
		func(id int64, place string, _ []byte) { places[id] = place })
	each(t, b, "SELECT relations, name || ' ' || type || ' ' || description, '' FROM entity ORDER BY id", func(n int64, text string, _ []byte) {
		all = append(all, fmt.Sprint(text, n))
	})
	each(t, b, "SELECT id, name, neighbours FROM entity ORDER BY id", func(_ int64, name string, data []byte) {
		near, err := unpackNeighbours(data)
		if err != nil {
			t.Error(err)
		}
		for _, n := range near {
			all = append(all, fmt.Sprint(name, " next to ", names[n.id], n.weight))
		}
	})
	each(t, b, "SELECT id, name, chunks FROM entity ORDER BY id", func(_ int64, name string, data []byte) {
		ids, err := unpackIDs(data)
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			all = append(all, name+" in "+places[id])
		}
	})
	var mentions []string
	each(t, b, "SELECT chunk, '', entities FROM mention", func(chunk int64, _ string, data []byte) {
		ids, err := unpackIDs(data)
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			mentions = append(mentions, places[chunk]+" mentions "+names[id])
		}
	})
	slices.Sort(mentions)
	return append(all, mentions...)
}

// each visits the rows of a query.
func each(t *testing.T, b *Base, query string, visit func(int64, string, []byte)) {
	t.Helper()
	rows, err := b.db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var text string
		var data []byte
		if err := rows.Scan(&id, &text, &data); err != nil {
			t.Fatal(err)
		}
		visit(id, text, data)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
