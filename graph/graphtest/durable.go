package graphtest

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// TestDurable is the suite for stores that outlive their process and that several
// processes share. open opens the store at a place, an empty directory at first: calls
// with the same place return stores with the same content. A store that does not use
// files treats the place as a name. The suite closes what it opens.
func TestDurable(t *testing.T, open func(t *testing.T, place string) journal.Store) {
	for _, c := range durableCases {
		t.Run(c.name, func(t *testing.T) {
			place := t.TempDir()
			c.run(t, func() *harness { return newHarness(t, open(t, place)) })
		})
	}
	t.Run("SecretsStayOut", func(t *testing.T) {
		place := t.TempDir()
		durableSecrets(t, place, func() *harness { return newHarness(t, open(t, place)) })
	})
}

var durableCases = []struct {
	name string
	run  func(t *testing.T, open func() *harness)
}{
	{"ReopenFindsEverything", durableReopen},
	{"OthersSeeAtOnce", func(_ *testing.T, open func() *harness) {
		a := open()
		b := open()
		a.mustAppend("t", 0, newRecords("t", 0, 3)...)
		b.expectRecords("t", newRecords("t", 0, 3))
		b.mustAppend("t", 3, newRecords("t", 3, 40)...)
		a.expectConflict("t", 3, newRecords("t", 3, 1)...)
		a.expectRecords("t", newRecords("t", 0, 43))
		a.mustPrune("t", 10)
		b.expectRecords("t", newRecords("t", 9, 34))
		a.mustAppend("t", 43, newRecords("t", 43, 1)...)
		b.expectRecords("t", newRecords("t", 9, 35))
	}},
	{"OneWinner", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open(), open()}
		raceAppends(hs[0], []journal.Store{hs[0].s, hs[1].s, hs[2].s, hs[3].s})
	}},
	{"OthersMayDelete", durableDelete},
	{"DeletedIsNotMistakenForAnother", func(_ *testing.T, open func() *harness) {
		a := open()
		b := open()
		a.mustAppend("x", 0, newRecords("x", 0, 3)...)
		a.expectRecords("x", newRecords("x", 0, 3))
		b.mustPrune("x", 4)
		b.mustAppend("y", 0, newRecords("y", 0, 3)...)
		a.expectConflict("x", 3, newRecords("x", 3, 1)...)
		a.expectConflict("x", 3, newRecords("x", 3, 2)...)
		a.mustPrune("x", 4)
		a.expectRecords("x", nil)
		b.expectRecords("y", newRecords("y", 0, 3))
	}},
	{"OthersSeeLeases", durableLeases},
	{"WritersTakeTurns", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open()}
		const rounds = 40
		hs[0].runParallel(len(hs), func(ctx context.Context, i int) error {
			for k := range int64(rounds) {
				thread := fmt.Sprint("t", i)
				if err := hs[i].s.Append(ctx, thread, k, newRecords(thread, k, 1)); err != nil {
					return err
				}
				if _, err := collectAll(hs[i].s.Threads(ctx, "")); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range hs {
			thread := fmt.Sprint("t", i)
			hs[0].expectRecords(thread, newRecords(thread, 0, rounds))
		}
	}},
}

func durableReopen(t *testing.T, open func() *harness) {
	h := open()
	h.mustAppend("a", 0, newRecords("a", 0, 50)...)
	h.mustAppend("b", 0, newRecords("b", 0, 5)...)
	h.mustAppend("c", 0, newRecords("c", 0, 5)...)
	h.mustPrune("b", 3)
	h.mustPrune("c", 6)
	for range 3 {
		if err := h.s.Close(); err != nil {
			t.Fatal(err)
		}
		h = open()
		h.expectRecords("a", newRecords("a", 0, 50))
		h.expectRecords("b", newRecords("b", 2, 3))
		h.expectRecords("c", nil)
	}
	h.expectConflict("a", 49, newRecords("a", 49, 1)...)
	h.mustAppend("a", 50, newRecords("a", 50, 1)...)
	h.mustAppend("c", 0, newRecords("c", 0, 1)...)
	h.expectRecords("a", newRecords("a", 0, 51))
	h.expectRecords("c", newRecords("c", 0, 1))
}

// durableDelete deletes and creates a thread again while another store that has used it
// is open.
func durableDelete(_ *testing.T, open func() *harness) {
	a := open()
	b := open()
	a.mustAppend("t", 0, newRecords("old", 0, 5)...)
	b.mustPrune("t", 6)
	a.expectRecords("t", nil)
	a.expectConflict("t", 5, newRecords("t", 5, 1)...)
	a.mustAppend("t", 0, newRecords("t", 0, 2)...)
	b.expectRecords("t", newRecords("t", 0, 2))
	b.mustPrune("t", 3)
	b.mustAppend("t", 0, newRecords("new", 0, 5)...)
	a.expectRecords("t", newRecords("new", 0, 5))
	a.expectConflict("t", 2, newRecords("t", 2, 1)...)
	a.mustAppend("t", 5, newRecords("new", 5, 1)...)
	b.expectRecords("t", newRecords("new", 0, 6))
}

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
	v.g = v.compileGraph(t, graph.Def{Name: "vault", Start: []string{"split", "aside"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"work"}, Run: v.runSplit},
		{Name: "aside", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(v.list.Set([]string{sealedWord})), nil
		}},
		{Name: "work", Graph: inner, Inherit: true, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(v.list.Set(v.list.Get(c.State))), nil
		}},
	}, Edges: []graph.Edge{{From: []string{"aside"}, To: []string{graph.End}}, {From: []string{"work"}, To: []string{graph.End}}}})
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
	if err := history.Fork(t.Context(), h.s, "t", 0, "copy"); err != nil {
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
	if _, err := history.Prune(t.Context(), h.s, "t", history.Keep{}); err != nil {
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
		for _, rec := range h.mustRead(i.Name, journal.Range{}) {
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
