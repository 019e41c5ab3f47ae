package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// A filler sets everything in a value: each text is a word with another number, lists have two elements, maps one.
type filler struct {
	word string
	n    int
}

func (f *filler) text() string {
	f.n++
	return fmt.Sprint(f.word, f.n)
}

func (f *filler) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *[]byte:
		*p = []byte(`"` + f.text() + `"`)
		return
	case *time.Time:
		*p = time.UnixMicro(1234567).UTC()
		return
	case *record.Mode:
		*p = record.Merge
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		f.n++
		v.SetInt(int64(f.n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		elem := reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(elem)
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	}
}

// filledParts returns parts of a kind in which everything is set, with a word in each text.
func filledParts(kind journal.Kind, word string) *record.Parts {
	f := &filler{word: word}
	b := &record.Parts{}
	f.fill(reflect.ValueOf(b).Elem())
	b.Streamed = false
	b.Question.Integer = "uint8"
	update := record.TaskUpdate{}
	f.fill(reflect.ValueOf(&update).Elem())
	if kind == journal.KindTask {
		b.Value = update.Encode()
	}
	for _, frame := range b.State.Frames {
		frame.Order = slices.Collect(maps.Keys(frame.Asks))
		for _, q := range frame.Asks {
			q.Question.Integer = "uint8"
		}
		for id := range frame.Done {
			frame.Done[id] = update.Encode()
		}
	}
	return b
}

// Every field of Parts is one that some kind records. All kinds with all their parts are read as they were
// written, also cut off anywhere.
func TestKindsWithAllTheirParts(t *testing.T) {
	recorded := map[string]bool{"Streamed": true} // it is for writers
	for kind := journal.KindStart; kind.IsKnown(); kind++ {
		head, data := filledParts(kind, "a").Append(uint8(kind), nil, nil)
		for i := range head {
			checkRecord(t, uint8(kind), head[:i], data)
		}
		for i := range data {
			checkRecord(t, uint8(kind), head, data[:i])
		}
		checkRecord(t, uint8(kind), head, data)
		var b record.Parts
		if err := b.Read(uint8(kind), head, data); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		again, body := b.Append(uint8(kind), []byte("before"), []byte("before"))
		if string(again) != "before"+string(head) || string(body) != "before"+string(data) {
			t.Errorf("%s: %q %q is written again as %q %q", kind, head, data, again, body)
		}
		for i := range reflect.TypeFor[record.Parts]().NumField() {
			if name := reflect.TypeFor[record.Parts]().Field(i).Name; !reflect.ValueOf(b).Field(i).IsZero() {
				recorded[name] = true
			}
		}
	}
	for i := range reflect.TypeFor[record.Parts]().NumField() {
		if name := reflect.TypeFor[record.Parts]().Field(i).Name; !recorded[name] {
			t.Errorf("no kind records %s", name)
		}
	}
}

// A rewritten record has the other texts everywhere, and the same numbers and flags.
func TestRewriteReachesEveryText(t *testing.T) {
	change := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("a"), []byte("other ")) }
	for kind := journal.KindStart; kind.IsKnown(); kind++ {
		head, data := filledParts(kind, "a").Append(uint8(kind), nil, nil)
		newHead, newData, err := record.Rewrite(uint8(kind), head, data, change)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		wantHead, wantData := filledParts(kind, "other ").Append(uint8(kind), nil, nil)
		if !bytes.Equal(newHead, wantHead) || !bytes.Equal(newData, wantData) {
			t.Errorf("%s: %q %q is rewritten as %q %q", kind, head, data, newHead, newData)
		}
	}
}

// What cannot be rewritten is refused: a damaged record, one that continues, a value of a form that is not known.
func TestRewriteRefuses(t *testing.T) {
	kind := uint8(journal.KindVoid)
	head, _ := (&record.Parts{Path: "p/", Void: []string{"1.a.0"}}).Append(kind, nil, nil)
	change := func(b []byte) []byte { return append([]byte("x"), b...) }
	_, _, err := record.Rewrite(kind, append(slices.Clone(head), 1), nil, change)
	if !errors.Is(err, record.ErrMoreParts) {
		t.Errorf("a longer head: %v", err)
	}
	if _, _, err := record.Rewrite(kind, head, []byte{1}, change); !errors.Is(err, record.ErrMoreParts) {
		t.Errorf("data where there is none: %v", err)
	}
	_, _, err = record.Rewrite(kind, head[:len(head)-1], nil, change)
	if err == nil || errors.Is(err, record.ErrMoreParts) {
		t.Errorf("a shorter head: %v", err)
	}
	opaque := []byte{1, 2, 3} // a list with an interface inside, whose type only its program knows
	for _, b := range []*record.Parts{{ID: "e", Value: opaque}, {ID: "e", Path: "p/", Value: opaque}} {
		head, data := b.Append(uint8(journal.KindEffect), nil, nil)
		if got, _, err := record.Rewrite(uint8(journal.KindEffect), head, data, change); err == nil || got != nil {
			t.Errorf("a value of an unknown form: %q, %v", got, err)
		}
		same, body, err := record.Rewrite(uint8(journal.KindEffect), head, data, bytes.Clone)
		if err != nil || !bytes.Equal(same, head) || !bytes.Equal(body, data) {
			t.Errorf("a value of an unknown form that does not change: %q %q, %v", same, body, err)
		}
	}
	frame := &record.Frame{Effects: map[string][]byte{"e": opaque}}
	state := record.Parts{State: &record.ThreadState{Frames: map[string]*record.Frame{"": frame}}}
	head, data := state.Append(uint8(journal.KindSnapshot), nil, nil)
	if _, _, err := record.Rewrite(uint8(journal.KindSnapshot), head, data, change); err == nil {
		t.Error("a snapshot with a value of an unknown form is rewritten")
	}
}

// Patches that are put into the data one by one are those of the parts.
func TestStreamedPatches(t *testing.T) {
	whole := filledParts(journal.KindStep, "a")
	head, data := whole.Append(uint8(journal.KindStep), nil, nil)
	streamed := *whole
	streamed.Streamed = true
	streamed.Patches = nil
	put := record.PutPatchCount(nil, len(whole.Patches))
	for _, p := range whole.Patches {
		put = record.PutPatch(put, p)
	}
	gotHead, gotData := streamed.Append(uint8(journal.KindStep), nil, put)
	if !bytes.Equal(gotHead, head) || !bytes.Equal(gotData, data) {
		t.Errorf("%q %q, want %q %q", gotHead, gotData, head, data)
	}
}

// An update is read as it was written; what only newer versions write may be missing.
func TestTaskUpdates(t *testing.T) {
	halted := record.TaskUpdate{}
	(&filler{word: "a"}).fill(reflect.ValueOf(&halted).Elem())
	halted.Reason = "" // a task that has failed is not halted
	failed := halted
	failed.Halted = false
	failed.Value = nil
	failed.Reason = "why"
	for _, u := range []record.TaskUpdate{{}, halted, failed, {Goes: true}, {Sends: true}} {
		var got record.TaskUpdate
		b := u.Encode()
		if err := got.Decode(b); err != nil || !reflect.DeepEqual(got, u) {
			t.Errorf("%+v is read as %+v, %v", u, got, err)
		}
		if u.Halted {
			continue // its value is the rest
		}
		complete := len(b)
		if u.Failed != "" {
			complete -= len("\x03why")
		}
		for i := range complete {
			if err := got.Decode(b[:i]); err == nil {
				t.Errorf("%+v is read from %d of %d bytes", u, i, len(b))
			}
		}
	}
	var older record.TaskUpdate
	b := failed.Encode()
	if err := older.Decode(b[:len(b)-len("\x03why")]); err != nil || older.Failed != failed.Failed || older.Reason != "" {
		t.Errorf("an update without a reason is read as %+v, %v", older, err)
	}
}
