package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"raddle.dev/internal/jsonvalue"
	"raddle.dev/rag"
)

// retrieval plays the embedding model of a case, its person before the run, and
// the bases that it scripts.
func (r *caseRun) retrieval() Retrieval {
	t := Retrieval{
		Embedder: func(string) (rag.Embedder, error) { return caseEmbedder{r}, nil },
		Base: func(_, node string) (Searcher, bool) {
			if r.c.RAG == nil {
				return nil, false
			}
			script, ok := r.c.RAG.Get(node)
			if !ok {
				return nil, false
			}
			return &scriptedBase{run: r, node: node, script: script.(*jsonvalue.Object)}, true
		},
	}
	if flagOf(r.c.Host, "tty", true) {
		t.Confirm = r.confirm
	}
	return t
}

// confirm is what the person says before the run.
func (r *caseRun) confirm(question string) (bool, error) {
	if len(r.people) == 0 {
		r.t.Fatalf("nobody answers %q", question)
	}
	p := r.people[0]
	r.people = r.people[1:]
	if kind := textOf(p, "kind"); kind != "confirm" {
		r.t.Errorf("%s is asked as confirm, want %s", question, kind)
	}
	r.sameText(p, "question", question)
	if flagOf(p, "cancel", false) {
		return false, errors.New("cancelled")
	}
	return flagOf(p, "answer", true), nil
}

// caseEmbedder gives the vectors of a case, or some that only depend on the words.
type caseEmbedder struct{ run *caseRun }

func (e caseEmbedder) Embed(_ context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	given, _ := e.run.c.Host.Get("embeddings")
	table, _ := given.(*jsonvalue.Object)
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, ok := table.Get(text)
		if !ok {
			vectors[i] = wordVector(text)
			continue
		}
		for _, x := range v.([]any) {
			f, _ := jsonvalue.AsFloat(x)
			vectors[i] = append(vectors[i], float32(f))
		}
	}
	if purpose == rag.ForDocument {
		e.run.embedded += len(texts)
	}
	return vectors, nil
}

func wordVector(text string) []float32 {
	v := make([]float32, 64)
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.Trim(word, ".,!?")))
		v[h.Sum32()%64]++
	}
	return v
}

// scriptedBase is a base whose two searches a case has written down.
type scriptedBase struct {
	run    *caseRun
	node   string
	script *jsonvalue.Object
}

func (b *scriptedBase) Search(ctx context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error) {
	top := o.TopK
	if top == 0 {
		top = intOf(b.script, "top_k")
	}
	if top == 0 {
		top = rag.DefaultTopK
	}
	b.run.mu.Lock()
	b.run.searches = append(b.run.searches, jsonvalue.NewObject(jsonvalue.Member{Key: "node", Value: b.node}, jsonvalue.Member{Key: "query", Value: query}, jsonvalue.Member{Key: "top_k", Value: int64(top)}))
	b.run.mu.Unlock()
	delay := jsonvalue.NewObject(jsonvalue.Member{Key: "delay_ms", Value: int64(intOf(b.script, "search_delay_ms"))})
	if err := pause(ctx, delay); err != nil {
		return nil, err
	}
	if text := textOf(b.script, "search_error"); text != "" {
		return nil, errors.New(text)
	}
	return b.rank(query, top)
}

func (b *scriptedBase) rank(query string, top int) ([]rag.Hit, error) {
	ranked := func(key string) []string {
		lists, _ := b.script.Get(key)
		o, _ := lists.(*jsonvalue.Object)
		list := texts(o, query)
		return list[:min(top, len(list))]
	}
	scores := map[string]float64{}
	var ids []string
	for _, l := range []struct {
		ids    []string
		weight float64
	}{{ranked("vector"), 1.125}, {ranked("keyword"), 1}} {
		for i, id := range l.ids {
			if _, seen := scores[id]; !seen {
				ids = append(ids, id)
			}
			scores[id] += l.weight / float64(2*top+i+1)
		}
	}
	if reorder, ok := b.script.Get("rerank"); ok {
		return b.reranked(reorder.(*jsonvalue.Object), query, ids, top)
	}
	slices.SortStableFunc(ids, func(x, y string) int { return cmp.Compare(scores[y], scores[x]) })
	return b.hits(ids[:min(top, len(ids))]), nil
}

func (b *scriptedBase) reranked(reorder *jsonvalue.Object, query string, ids []string, top int) ([]rag.Hit, error) {
	v, ok := reorder.Get(query)
	if !ok {
		return nil, fmt.Errorf("no scripted order for %q", query)
	}
	order := v.(*jsonvalue.Object)
	hits := b.hits(ids)
	var sent []string
	for _, h := range hits {
		sent = append(sent, h.Text)
	}
	if want := texts(order, "documents"); want != nil {
		if diff := gocmp.Diff(want, sent); diff != "" {
			b.run.t.Errorf("the reranker receives (-want +got):\n%s", diff)
		}
	}
	var out []rag.Hit
	for _, i := range list(order, "order") {
		if n := int(i.(int64)); n < len(hits) && len(out) < top {
			out = append(out, hits[n])
		}
	}
	return out, nil
}

func (b *scriptedBase) hits(ids []string) []rag.Hit {
	var hits []rag.Hit
	files := list(b.script, "files")
	for _, id := range ids {
		var file, chunk int
		if _, err := fmt.Sscanf(id, "%d-%d", &file, &chunk); err != nil || file >= len(files) {
			b.run.t.Errorf("no chunk %s", id)
			continue
		}
		f := files[file].(*jsonvalue.Object)
		hits = append(hits, rag.Hit{Path: textOf(f, "path"), Text: texts(f, "chunks")[chunk], Chunk: chunk})
	}
	return hits
}

// checkRetrieval compares the searches, and runs the case again where it says so.
func (r *caseRun) checkRetrieval() {
	if want := list(r.c.Expect, "rag_searches"); want != nil {
		var got []any
		for _, s := range r.searches {
			got = append(got, s)
		}
		if !jsonvalue.Equal(want, got) {
			r.t.Errorf("searches %s, want %s", jsonvalue.Compact(got), jsonvalue.Compact(want))
		}
	}
	again, _ := r.c.Expect.Get("second_run")
	o, ok := again.(*jsonvalue.Object)
	if !ok {
		return
	}
	before := r.embedded
	if _, err := r.run(); err != nil {
		r.t.Errorf("the second run: %v", err)
	}
	if rebuilds := flagOf(o, "rebuilds", false); rebuilds != (r.embedded > before) {
		r.t.Errorf("the second run embeds %d chunks", r.embedded-before)
	}
}
