package record_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// earlierRecords are records that earlier versions have written.
func earlierRecords(t testing.TB) (list []journal.Record) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "earlier", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no journals of earlier versions: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, len(b)+1)
		for lines.Scan() {
			var r journal.Record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list = append(list, r)
		}
	}
	return list
}

// checkRecord reads a record. What can be read can be written, and is then read as the same; what can be rewritten
// without a change has the same parts.
func checkRecord(t *testing.T, kind uint8, head, data []byte) {
	var read, headOnly record.Parts
	err := read.Read(kind, head, data)
	headErr := headOnly.ReadHead(kind, head)
	if err == nil && headErr != nil {
		t.Fatalf("kind %d: the head alone: %v", kind, headErr)
	}
	newHead, newData, rewriteErr := record.Rewrite(kind, head, data, bytes.Clone)
	if rewriteErr == nil && err != nil {
		t.Fatalf("kind %d: it is rewritten and not read: %v", kind, err)
	}
	if err != nil {
		return
	}
	if rewriteErr == nil && (len(newHead) > len(head) || len(newData) > len(data)) {
		t.Fatalf("kind %d: %q %q is rewritten as %q %q", kind, head, data, newHead, newData)
	}
	wrote, body := read.Append(kind, nil, nil)
	var again record.Parts
	if err := again.Read(kind, wrote, body); err != nil {
		t.Fatalf("kind %d: what is written as %q %q cannot be read: %v", kind, wrote, body, err)
	}
	read.Named = again.Named // older records lack the parts that are always written
	if a, b := show(&read), show(&again); a != b {
		t.Fatalf("kind %d is read as\n%s\nand then as\n%s", kind, a, b)
	}
	sameHead, sameData := again.Append(kind, nil, nil)
	if !bytes.Equal(sameHead, wrote) || !bytes.Equal(sameData, body) {
		t.Fatalf("kind %d is written as %q %q, and then as %q %q", kind, wrote, body, sameHead, sameData)
	}
}

// show writes down a body; empty lists and nil are the same.
func show(b *record.Parts) string {
	text, err := json.Marshal(b)
	if err != nil {
		return err.Error()
	}
	return strings.NewReplacer("null", `""`, "[]", `""`, "{}", `""`).Replace(string(text))
}

// Records of all versions are read, written and rewritten, also with a flipped bit and cut off anywhere.
func TestRecordsOfEarlierVersions(t *testing.T) {
	for _, r := range earlierRecords(t) {
		kind := uint8(r.Kind)
		head, data, err := record.Rewrite(kind, r.Head, r.Data, bytes.Clone)
		if err != nil || !bytes.Equal(head, r.Head) || !bytes.Equal(data, r.Data) {
			t.Fatalf("%s: %q %q is rewritten as %q %q: %v", r.Kind, r.Head, r.Data, head, data, err)
		}
		checkRecord(t, kind, r.Head, r.Data)
		for i := range r.Head {
			checkRecord(t, kind, r.Head[:i], r.Data)
			flipped := bytes.Clone(r.Head)
			flipped[i] ^= 1 << (i % 8)
			checkRecord(t, kind, flipped, r.Data)
		}
		for i := range r.Data {
			checkRecord(t, kind, r.Head, r.Data[:i])
			flipped := bytes.Clone(r.Data)
			flipped[i] ^= 1 << (i % 8)
			checkRecord(t, kind, r.Head, flipped)
		}
		for other := range uint8(20) {
			checkRecord(t, other, r.Head, r.Data)
		}
	}
}

// A kind that is not known has no fields, and the kinds that have some are those of package journal.
func TestEveryKindIsDescribed(t *testing.T) {
	for kind := range uint8(40) {
		text := bytes.Repeat([]byte{1}, 60)
		var b record.Parts
		_ = b.Read(kind, text, text)
		if described := !reflect.DeepEqual(b, record.Parts{}); described != journal.Kind(kind).IsKnown() {
			t.Errorf("kind %d (%s) is described: %v", kind, journal.Kind(kind), described)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range earlierRecords(f) {
		f.Add(uint8(r.Kind), r.Head, r.Data)
	}
	f.Fuzz(func(t *testing.T, kind uint8, head, data []byte) {
		checkRecord(t, kind, head, data)
	})
}
