package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/memory"
	"raddle.dev/memory/memorytest"
)

func TestProcess(t *testing.T) {
	memorytest.TestStore(t, func(*testing.T) memory.Store { return memory.New() })
}

func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		if err := st.PutEntry(t.Context(), memory.Entry{Namespace: "a", Key: "k", Value: json.RawMessage("1")}, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		if _, err := st.GetEntry(t.Context(), "a", "k"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		if e, err := st.GetEntry(t.Context(), "a", "k"); err == nil {
			t.Errorf("it still has %s", e.Value)
		}
	})
}

func TestJoin(t *testing.T) {
	for _, parts := range [][]string{{"user", "ada"}, {"user", "a/b"}, {"user", "%2F"}, {"user", "spiffe://x/y z"}, {"user", "a\x1b\xff"}} {
		joined := memory.JoinPath(parts...)
		if got := memory.SplitPath(joined); fmt.Sprint(got) != fmt.Sprint(parts) || strings.Count(joined, "/") != 1 {
			t.Errorf("%q: %q, then %q", parts, joined, got)
		}
		if err := memory.CheckPlace(joined, "k"); err != nil {
			t.Error(err)
		}
	}
}

// meanings is an Embedder that knows two subjects.
type meanings struct{ texts int }

func (m *meanings) Model() string { return "meanings" }

func (m *meanings) Embed(_ context.Context, _ bool, texts []string) ([][]float32, error) {
	var vectors [][]float32
	for _, text := range texts {
		m.texts++
		v := []float32{0, 0}
		for _, w := range []string{"dog", "cat", "pet"} {
			v[0] += float32(strings.Count(text, w))
		}
		for _, w := range []string{"car", "bus"} {
			v[1] += float32(strings.Count(text, w))
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}

func TestSearchByMeaning(t *testing.T) {
	st, m := memory.New(), &meanings{}
	for key, value := range map[string]string{"a": `"a dog"`, "b": `"a bus"`, "c": `"tea"`} {
		e := memory.Entry{Namespace: "user/ada", Key: key, Value: json.RawMessage(value)}
		if key != "b" { // b was written without a model
			if err := memory.SetVector(t.Context(), &e, m); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.PutEntry(t.Context(), e, 0); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{"pet": "a", "car": "b", "tea": "c"} {
		m.texts = 0
		hits, err := memory.Search(t.Context(), st, "user/ada", query, memory.SearchOptions{Embedder: m})
		if err != nil || len(hits) != 1 || hits[0].Key != want {
			t.Errorf("%q: %+v, %v, want %s", query, hits, err, want)
		}
		if m.texts != 2 {
			t.Errorf("%q: %d texts were embedded, want the query and b", query, m.texts)
		}
	}
}

func TestCopyEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		put := func(st memory.Store, key, value string, ttl time.Duration) {
			if err := st.PutEntry(t.Context(), memory.Entry{Namespace: "a", Key: key, Value: json.RawMessage(value)}, ttl); err != nil {
				t.Fatal(err)
			}
		}
		put(from, "new", "1", 0)
		put(from, "changed", "1", 0)
		put(to, "old", "0", 0)
		put(to, "replaced", "0", 0)
		time.Sleep(time.Second)
		put(to, "changed", "2", 0)
		put(from, "replaced", "1", time.Minute)
		time.Sleep(20 * time.Second)
		for _, want := range []int{2, 0} {
			if n, err := memory.CopyEntries(t.Context(), from, to); err != nil || n != want {
				t.Errorf("%d entries were written, %v, want %d", n, err, want)
			}
		}
		got := ""
		for e, err := range to.ListEntries(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			got += e.Key + "=" + string(e.Value) + " "
		}
		if want := "changed=2 new=1 old=0 replaced=1 "; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if e, err := to.GetEntry(t.Context(), "a", "replaced"); err != nil || time.Until(e.Expires) != 40*time.Second {
			t.Errorf("%+v, %v, want an end in 40 seconds", e, err)
		}
	})
}
