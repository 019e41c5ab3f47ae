package graphtest

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
)

// Values that the codecs of a graph keep out of its journal must not be found at the
// store's place, in any file.
const (
	openWord   = "in-the-open"         // of a key without a codec
	sealedWord = "sealed-for-its-eyes" // encrypted: it can be read back
	hiddenWord = "hidden-from-all"     // redacted: it cannot be read back
)

// newSealedCodec returns a codec that encrypts the JSON of a value. The nonce is computed from
// the text, so that equal values have equal bytes and Encode is pure.
func newSealedCodec[T any](c cipher.AEAD) graph.Codec[T] {
	return graph.Codec[T]{
		Tag: "sealed",
		Encode: func(dst []byte, v T) ([]byte, error) {
			text, err := json.Marshal(v)
			if err != nil {
				return dst, err
			}
			sum := sha256.Sum256(text)
			nonce := sum[:c.NonceSize()]
			return c.Seal(append(dst, nonce...), nonce, text, nil), nil
		},
		Decode: func(b []byte) (v T, err error) {
			if len(b) < c.NonceSize() {
				return v, errors.New("the value is cut short")
			}
			text, err := c.Open(nil, b[:c.NonceSize()], b[c.NonceSize():], nil)
			if err == nil {
				err = json.Unmarshal(text, &v)
			}
			return v, err
		},
	}
}

// newHiddenCodec returns a codec that stores nothing of a value.
func newHiddenCodec[T any]() graph.Codec[T] {
	return graph.Codec[T]{
		Tag:    "hidden",
		Encode: func(dst []byte, _ T) ([]byte, error) { return dst, nil },
		Decode: func([]byte) (v T, _ error) { return v, nil },
	}
}

// A secretGraph is a graph that passes secrets through every kind of record that holds
// values: the start, parallel tasks, overlays of a Send, a child, steps.
type secretGraph struct {
	known  graph.Key[string]
	sealed graph.Key[string]
	list   graph.Key[[]string]
	hidden graph.Key[string]
	g      *graph.Graph
}

func newSecretGraph(t *testing.T) *secretGraph {
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	v := &secretGraph{
		known:  graph.Last[string]("known"),
		sealed: graph.Last[string]("sealed").WithCodec(newSealedCodec[string](aead)),
		list:   graph.Append[string]("list").WithCodec(newSealedCodec[[]string](aead)),
		hidden: graph.Last[string]("hidden").WithCodec(newHiddenCodec[string]()),
	}
	inner := v.compileGraph(t, graph.Def{Name: "inner", Start: []string{"ask"}, Nodes: []graph.Node{{Name: "ask", Run: v.runAsk}},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}})
	v.g = v.compileGraph(t, graph.Def{Name: "vault", Start: []string{"split", "beside"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"work"}, Run: v.runSplit},
		{Name: "beside", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(v.list.Set([]string{sealedWord})), nil
		}},
		{Name: "work", Graph: inner, Inherit: true, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(v.list.Set(v.list.Get(c.State))), nil
		}},
	}, Edges: []graph.Edge{{From: []string{"beside"}, To: []string{graph.End}}, {From: []string{"work"}, To: []string{graph.End}}}})
	return v
}

func (v *secretGraph) compileGraph(t *testing.T, d graph.Def) *graph.Graph {
	d.Keys = []graph.AnyKey{v.known, v.sealed, v.list, v.hidden}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (v *secretGraph) secretWrites() []graph.Write {
	return []graph.Write{v.known.Set(openWord), v.sealed.Set(sealedWord), v.list.Set([]string{sealedWord}), v.hidden.Set(hiddenWord)}
}

func (v *secretGraph) runSplit(context.Context, graph.State) (u graph.Update, _ error) {
	u.Writes = v.secretWrites()
	for range 2 {
		u.Send = append(u.Send, graph.Send{To: "work", Overlay: v.secretWrites()})
	}
	return u, nil
}

func (v *secretGraph) runAsk(ctx context.Context, s graph.State) (graph.Update, error) {
	if v.sealed.Get(s) != sealedWord {
		return graph.Update{}, errors.New("what was sealed has not come back")
	}
	_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "continue?"})
	return graph.Put(v.list.Set([]string{sealedWord}), v.hidden.Set(hiddenWord)), err
}

// durableSecrets runs the secretGraph, continues it through another store, edits, forks and
// prunes it, and searches every byte.
func durableSecrets(t *testing.T, place string, open func() *harness) {
	v := newSecretGraph(t)
	h := open()
	r := &graph.Runner{Graph: v.g, Store: h.s}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: v.secretWrites()})
	if err != nil || len(res.Questions) != 2 || v.hidden.Get(res.State) != hiddenWord {
		t.Fatalf("%v with %d questions, hidden %q: %v", res.Status, len(res.Questions), v.hidden.Get(res.State), err)
	}
	if _, err := r.Edit(t.Context(), "t", v.secretWrites()...); err != nil {
		t.Fatal(err)
	}
	if err := graph.Fork(t.Context(), h.s, "t", 0, "copy"); err != nil {
		t.Fatal(err)
	}
	h.noSecret(place)

	h = open()
	r = &graph.Runner{Graph: v.g, Store: h.s}
	in := graph.Resume{Thread: "t"}
	for range 2 { // an edit asks again
		res, err = r.InvokeResume(t.Context(), in)
		for _, q := range res.Questions {
			in.Answers = append(in.Answers, graph.Answer{ID: q.ID, Value: true})
		}
	}
	if err != nil || res.Status != graph.Done || v.sealed.Get(res.State) != sealedWord || v.hidden.Get(res.State) != "" {
		t.Errorf("%v, sealed %q, hidden %q: %v", res.Status, v.sealed.Get(res.State), v.hidden.Get(res.State), err)
	}
	if _, err := graph.Prune(t.Context(), h.s, "t", graph.Keep{}); err != nil {
		t.Fatal(err)
	}
	h.noSecret(place)
}

// noSecret searches for the secrets in what the store returns, and in every file below
// its place.
func (h *harness) noSecret(place string) {
	h.Helper()
	var all []byte
	for _, i := range h.mustListThreads("") {
		for _, rec := range h.mustRead(i.Name, graph.Range{}) {
			all = append(append(all, rec.Head...), rec.Data...)
		}
	}
	if !bytes.Contains(all, []byte(openWord)) {
		h.Error("the journal does not hold what is not secret: nothing is proved")
	}
	err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, b...)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	for _, word := range []string{sealedWord, hiddenWord} {
		if bytes.Contains(all, []byte(word)) {
			h.Errorf("%q is stored in plain text", word)
		}
	}
}
