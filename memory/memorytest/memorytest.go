// Package memorytest checks what a memory.Store must do.
package memorytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/memory"
)

// TestStore checks a Store. open returns one without entries; several subtests call it.
func TestStore(t *testing.T, open func(t *testing.T) memory.Store) {
	for name, test := range map[string]func(h *harness){
		"values":     testValues,
		"adding":     testAdding,
		"namespaces": testNamespaces,
		"expiry":     testExpiry,
		"refusals":   testRefusals,
		"writers":    testWriters,
		"search":     testSearch,
		"cancelled":  testCancelled,
		"many":       testMany,
	} {
		t.Run(name, func(t *testing.T) { test(&harness{t, open(t)}) })
	}
}

// TestDurable checks that entries outlive the Store: open opens the same place again, and the
// test closes each Store by its own end.
func TestDurable(t *testing.T, open func(t *testing.T) memory.Store) {
	t.Run("first", func(t *testing.T) {
		h := &harness{t, open(t)}
		h.put("user/ada", "colour", `"blue"`, 0)
		h.put("user/ada", "city", `"Kyiv"`, time.Hour)
	})
	t.Run("second", func(t *testing.T) {
		h := &harness{t, open(t)}
		h.wantList("user", `user/ada city "Kyiv"`, `user/ada colour "blue"`)
		e, err := h.GetEntry(t.Context(), "user/ada", "city")
		if err != nil || time.Until(e.Expires) > time.Hour+time.Minute || time.Until(e.Expires) < 50*time.Minute {
			t.Errorf("city: %+v, %v, want an end in an hour", e, err)
		}
	})
}

// A harness is a Store with what its tests need.
type harness struct {
	*testing.T
	memory.Store
}

func (h *harness) put(namespace, key, value string, ttl time.Duration) {
	h.Helper()
	e := memory.Entry{Namespace: namespace, Key: key, Value: json.RawMessage(value)}
	if err := h.PutEntry(h.Context(), e, ttl); err != nil {
		h.Fatalf("PutEntry(%q, %q): %v", namespace, key, err)
	}
}

// wantValue checks the value of an entry; "": there is none.
func (h *harness) wantValue(namespace, key, want string) {
	h.Helper()
	e, err := h.GetEntry(h.Context(), namespace, key)
	switch {
	case want == "" && !errors.Is(err, memory.ErrNotFound):
		h.Errorf("GetEntry(%q, %q): %s, %v, want ErrNotFound", namespace, key, e.Value, err)
	case want != "" && (err != nil || string(e.Value) != want || e.Namespace != namespace || e.Key != key):
		h.Errorf("GetEntry(%q, %q): %+v, %v, want %s", namespace, key, e, err, want)
	}
}

// list returns the entries of a namespace as "NAMESPACE KEY VALUE".
func (h *harness) list(namespace string) []string {
	h.Helper()
	var all []string
	for e, err := range h.ListEntries(h.Context(), namespace) {
		if err != nil {
			h.Fatalf("ListEntries(%q): %v", namespace, err)
		}
		all = append(all, fmt.Sprintf("%s %s %s", e.Namespace, e.Key, e.Value))
	}
	return all
}

func (h *harness) wantList(namespace string, want ...string) {
	h.Helper()
	if got := h.list(namespace); !slices.Equal(got, want) {
		h.Errorf("ListEntries(%q):\n%s\nwant\n%s", namespace, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func testValues(h *harness) {
	h.wantValue("user/ada", "colour", "")
	h.put("user/ada", "colour", `"blue"`, 0)
	h.wantValue("user/ada", "colour", `"blue"`)
	h.put("user/ada", "colour", ` { "b" : 1, "a" : "ключ \u0000 <&>" } `, 0)
	h.wantValue("user/ada", "colour", `{"b":1,"a":"ключ \u0000 <&>"}`)
	for _, key := range []string{"a/b", "%", "_", `\`, "'", "ключ", "A", "a", " ", "*", "[x]"} {
		text, _ := json.Marshal(key)
		h.put("user/ada", key, string(text), 0)
		h.wantValue("user/ada", key, string(text))
	}
	if err := h.DeleteEntry(h.Context(), "user/ada", "colour"); err != nil {
		h.Error(err)
	}
	h.wantValue("user/ada", "colour", "")
	if err := h.DeleteEntry(h.Context(), "user/ada", "colour"); !errors.Is(err, memory.ErrNotFound) {
		h.Errorf("the second DeleteEntry: %v", err)
	}
	vector := []float32{1, -2.5, 0}
	e := memory.Entry{Namespace: "user/ada", Key: "v", Value: json.RawMessage("1"), Model: "m", Vector: vector}
	if err := h.PutEntry(h.Context(), e, 0); err != nil {
		h.Fatal(err)
	}
	got, err := h.GetEntry(h.Context(), "user/ada", "v")
	if err != nil || got.Model != "m" || !slices.Equal(got.Vector, vector) || !got.Expires.IsZero() {
		h.Errorf("with a vector: %+v, %v", got, err)
	}
	if age := time.Since(got.Updated); age < -time.Minute || age > time.Minute {
		h.Errorf("the entry was written %v ago", age)
	}
	got.Value[0], got.Vector[0] = '9', 9 // what was returned belongs to the caller
	h.wantValue("user/ada", "v", "1")
}

// testAdding lets several callers add one entry: all get the one that was added. After its end it can be added again.
func testAdding(h *harness) {
	adder, ok := h.Store.(memory.Adder)
	if !ok {
		h.Skip("this store adds no entries")
	}
	add := func(value string, ttl time.Duration) string {
		h.Helper()
		if err := adder.AddEntry(h.Context(), memory.Entry{Namespace: "keys", Key: "k", Value: json.RawMessage(value)}, ttl); err != nil {
			h.Error(err)
		}
		e, err := h.GetEntry(h.Context(), "keys", "k")
		if err != nil || e.Updated.IsZero() || e.Expires.IsZero() != (ttl == 0) {
			h.Errorf("after AddEntry: %+v, %v", e, err)
		}
		return string(e.Value)
	}
	var all sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		all.Go(func() { got[i] = add(fmt.Sprint(i), time.Hour) })
	}
	all.Wait()
	if first := got[0]; slices.ContainsFunc(got, func(s string) bool { return s != first }) {
		h.Errorf("eight callers have added %q", got)
	}
	h.wantValue("keys", "k", got[0])
	if err := h.DeleteEntry(h.Context(), "keys", "k"); err != nil {
		h.Error(err)
	}
	if got := add(`"second"`, 0); got != `"second"` {
		h.Errorf("after the end of the first one: %s", got)
	}
	if err := adder.AddEntry(h.Context(), memory.Entry{Namespace: "/", Key: "k"}, 0); err == nil {
		h.Error("an entry that cannot be written was added")
	}
	h.put("keys", "short", "1", 20*time.Millisecond)
	short := memory.Entry{Namespace: "keys", Key: "short", Value: json.RawMessage("2")}
	for end := time.Now().Add(10 * time.Second); ; { // the clock of the store counts
		if err := adder.AddEntry(h.Context(), short, 0); err != nil || time.Now().After(end) {
			h.Fatalf("an entry that has expired was not replaced: %v", err)
		}
		if e, err := h.GetEntry(h.Context(), "keys", "short"); err == nil && string(e.Value) == "2" {
			break
		}
	}
	h.wantValue("keys", "short", "2")
}

func testNamespaces(h *harness) {
	ada := memory.JoinPath("user", "ada")
	odd := memory.JoinPath("user", "ada/notes%_*")
	for i, namespace := range []string{ada, memory.JoinPath("user", "adam"), memory.JoinPath("user", "ad"), memory.JoinPath("user", "ada", "notes"), odd, memory.JoinPath("app", "x"), "user/ada-2", "user/ada0", "User/ada"} {
		h.put(namespace, "k", fmt.Sprint(i), 0)
	}
	h.put(ada, "a", `"first"`, 0)
	h.wantList(ada, `user/ada a "first"`, "user/ada k 0", "user/ada/notes k 3")
	h.wantList(odd, odd+" k 4")
	h.wantList("user/a")
	h.wantList("user/%")
	h.wantList("user/ad_")
	h.wantList("app", "app/x k 5")
	all := h.list("")
	if len(all) != 10 || !slices.IsSortedFunc(all, func(a, b string) int {
		aa, _, _ := strings.Cut(a, " ")
		bb, _, _ := strings.Cut(b, " ")
		return strings.Compare(aa, bb)
	}) {
		h.Errorf("all entries:\n%s", strings.Join(all, "\n"))
	}
	if err := h.DeleteEntry(h.Context(), ada, "k"); err != nil {
		h.Error(err)
	}
	h.wantList(ada, `user/ada a "first"`, "user/ada/notes k 3")
}

func testExpiry(h *harness) {
	h.put("user/ada", "short", "1", time.Millisecond)
	h.put("user/ada", "renewed", "1", time.Millisecond)
	h.put("user/ada", "renewed", "2", 0)
	h.put("user/ada", "long", "3", time.Hour)
	waitFor(h.T, func() bool {
		_, err := h.GetEntry(h.Context(), "user/ada", "short")
		return errors.Is(err, memory.ErrNotFound)
	})
	h.wantList("user/ada", "user/ada long 3", "user/ada renewed 2")
	if err := h.DeleteEntry(h.Context(), "user/ada", "short"); !errors.Is(err, memory.ErrNotFound) {
		h.Errorf("DeleteEntry of what has expired: %v", err)
	}
	e, err := h.GetEntry(h.Context(), "user/ada", "long")
	if left := e.Expires.Sub(e.Updated); err != nil || left < time.Hour-time.Second || left > time.Hour+time.Second {
		h.Errorf("long: %+v, %v, ends after %v", e, err, left)
	}
	h.put("user/ada", "short", "4", 0)
	h.wantValue("user/ada", "short", "4")
}

// waitFor returns when a condition holds, and fails the test if that takes ten seconds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it does not happen")
		}
	}
}

func testRefusals(h *harness) {
	long := strings.Repeat("x", memory.MaxNamespace+1)
	for name, e := range map[string]memory.Entry{
		"no namespace":   {Key: "k", Value: json.RawMessage("1")},
		"no key":         {Namespace: "a", Value: json.RawMessage("1")},
		"long namespace": {Namespace: long, Key: "k", Value: json.RawMessage("1")},
		"long key":       {Namespace: "a", Key: long, Value: json.RawMessage("1")},
		"empty part":     {Namespace: "a//b", Key: "k", Value: json.RawMessage("1")},
		"slash":          {Namespace: "a/", Key: "k", Value: json.RawMessage("1")},
		"control":        {Namespace: "a", Key: "k\x1b[2J", Value: json.RawMessage("1")},
		"not UTF-8":      {Namespace: "a\xff", Key: "k", Value: json.RawMessage("1")},
		"no value":       {Namespace: "a", Key: "k"},
		"not JSON":       {Namespace: "a", Key: "k", Value: json.RawMessage("{")},
		"two values":     {Namespace: "a", Key: "k", Value: json.RawMessage("1 2")},
		"large":          {Namespace: "a", Key: "k", Value: json.RawMessage(`"` + strings.Repeat("x", memory.MaxValue) + `"`)},
		"no model":       {Namespace: "a", Key: "k", Value: json.RawMessage("1"), Vector: []float32{1}},
	} {
		if err := h.PutEntry(h.Context(), e, 0); err == nil || !strings.Contains(err.Error(), "memory: ") {
			h.Errorf("%s: %v", name, err)
		}
	}
	for _, ttl := range []time.Duration{-1, memory.MaxTTL + 1, time.Microsecond} {
		if err := h.PutEntry(h.Context(), memory.Entry{Namespace: "a", Key: "k", Value: json.RawMessage("1")}, ttl); err == nil {
			h.Errorf("time to live %v: no error", ttl)
		}
	}
	h.wantList("")
	largest := `"` + strings.Repeat("x", memory.MaxValue-2) + `"`
	h.put(long[1:], long[:memory.MaxKey], largest, memory.MaxTTL)
	h.wantValue(long[1:], long[:memory.MaxKey], largest)
}

// testWriters writes one key and many keys from several goroutines.
func testWriters(h *harness) {
	const writers, each = 4, 10
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				value := json.RawMessage(fmt.Sprintf(`{"writer":%d,"text":%q}`, w, strings.Repeat(fmt.Sprint(w), 1000)))
				for _, key := range []string{"one", fmt.Sprintf("%d-%d", w, i)} {
					if err := h.PutEntry(h.Context(), memory.Entry{Namespace: "app/x", Key: key, Value: value}, 0); err != nil {
						h.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	if n := len(h.list("app")); n != writers*each+1 {
		h.Errorf("%d entries", n)
	}
	e, err := h.GetEntry(h.Context(), "app/x", "one")
	var one struct {
		Writer int
		Text   string
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &one)
	}
	if err != nil || one.Text != strings.Repeat(fmt.Sprint(one.Writer), 1000) {
		h.Errorf("the key that all wrote: %s, %v", e.Value, err)
	}
}

func testSearch(h *harness) {
	h.put("user/ada", "holiday", `"The summer holidays begin on the first of July."`, 0)
	h.put("user/ada", "allergy", `{"food":"peanuts","since":2019}`, 0)
	h.put("user/ada", "gone", `"holiday"`, time.Millisecond)
	h.put("user/bob", "holiday", `"Holidays are in winter."`, 0)
	waitFor(h.T, func() bool { return len(h.list("user/ada")) == 2 })
	for query, want := range map[string]string{"when is my holiday": "holiday", "peanut": "allergy", "2019": "allergy", "nothing of it": "", "": ""} {
		hits, err := memory.Search(h.Context(), h.Store, "user/ada", query, memory.SearchOptions{})
		got := ""
		for _, hit := range hits {
			got += hit.Key
			if hit.Namespace != "user/ada" {
				h.Errorf("%q finds an entry of %s", query, hit.Namespace)
			}
		}
		if err != nil || got != want {
			h.Errorf("%q finds %q, %v, want %q", query, got, err, want)
		}
	}
}

func testCancelled(h *harness) {
	h.put("a", "k", "1", 0)
	ctx, cancel := context.WithCancel(h.Context())
	cancel()
	if err := h.PutEntry(ctx, memory.Entry{Namespace: "a", Key: "k", Value: json.RawMessage("2")}, 0); !errors.Is(err, context.Canceled) {
		h.Errorf("PutEntry: %v", err)
	}
	if _, err := h.GetEntry(ctx, "a", "k"); !errors.Is(err, context.Canceled) {
		h.Errorf("GetEntry: %v", err)
	}
	if err := h.DeleteEntry(ctx, "a", "k"); !errors.Is(err, context.Canceled) {
		h.Errorf("DeleteEntry: %v", err)
	}
	for _, err := range h.ListEntries(ctx, "a") {
		if !errors.Is(err, context.Canceled) {
			h.Errorf("ListEntries: %v", err)
		}
	}
	h.wantValue("a", "k", "1")
}

// testMany lists more entries than a page holds, and changes them meanwhile.
func testMany(h *harness) {
	const n = 700
	for i := range n {
		h.put("app/many", fmt.Sprintf("%04d", i), fmt.Sprint(i), 0)
	}
	seen := 0
	for e, err := range h.ListEntries(h.Context(), "app") {
		if err != nil {
			h.Fatal(err)
		}
		if want := fmt.Sprintf("%04d", seen); e.Key != want || !bytes.Equal(e.Value, []byte(fmt.Sprint(seen))) {
			h.Fatalf("entry %s = %s, want %s", e.Key, e.Value, want)
		}
		if seen++; seen%100 == 0 {
			if err := h.DeleteEntry(h.Context(), "app/many", e.Key); err != nil {
				h.Fatal(err)
			}
		}
	}
	if seen != n {
		h.Errorf("%d entries, want %d", seen, n)
	}
}
