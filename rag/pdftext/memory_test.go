package pdftext

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// manyObjects returns a file of 16 MB that describes objects of many times that size.
func manyObjects() []byte {
	return makeObjects(
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /X ["+strings.Repeat("[]", 8<<20)+"] >>",
	)
}

// TestFilesThatWantMuchMemory reads small files that announce much, and files of very many small objects. None makes the library allocate
// what it announces: the test would be ended by the system.
func TestFilesThatWantMuchMemory(t *testing.T) {
	plain := makePDF("BT /F1 12 Tf (one) Tj ET")
	replace := func(old, text string) []byte {
		if !bytes.Contains(plain, []byte(old)) {
			t.Fatal(old)
		}
		return bytes.Replace(plain, []byte(old), []byte(text), 1)
	}
	stream := func(fields string) []byte {
		head := "%PDF-1.5\n"
		rows := strings.Repeat("\x00", 64)
		return fmt.Appendf(nil, "%s1 0 obj\n<< /Type /XRef %s /Root 1 0 R /Length %d >>\nstream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n",
			head, fields, len(rows), rows, len(head))
	}
	for name, data := range map[string][]byte{
		"the size of a table":      replace("/Size 7", "/Size 100000000000"),
		"the start of a table":     replace("xref\n0 7", "xref\n100000000000 7"),
		"the size of a stream":     stream("/Size 30000000000 /W [1 2 1]"),
		"the index of a stream":    stream("/Size 4 /Index [30000000000 1] /W [1 2 1]"),
		"the width of a field":     stream("/Size 4 /W [30000000000 2 1]"),
		"the columns of a stream":  stream("/Size 4 /W [1 2 1] /DecodeParms << /Columns 30000000000 /Predictor 12 >>"),
		"the columns of an object": replace("/MediaBox", "/DecodeParms << /Columns 30000000000 >> /MediaBox"),
	} {
		if _, err := Read(t.Context(), data, 32<<20); err == nil || err.Error() != errManyObjects.Error() {
			t.Errorf("%s: error %v, want %v", name, err, errManyObjects)
		}
	}
	if garbage := bytes.Repeat([]byte("x"), 300<<20); garbage[0] != 'x' { // which must not hide what the file needs
		t.Fatal("no garbage")
	}
	if _, err := Read(t.Context(), manyObjects(), 32<<20); !errors.Is(err, errTooMuchMemory) {
		t.Errorf("many objects: error %v", err)
	}
	for name, content := range map[string]string{
		"lines":  "BT /F1 12 Tf " + strings.Repeat("(a) Tj 90 90 Td ", maxLines+10) + "ET",
		"arrays": "BT /F1 12 Tf [" + strings.Repeat("1 ", 4<<20) + "] TJ (one) Tj ET",
	} {
		text, err := Read(t.Context(), makePDF(content), 32<<20)
		if name == "lines" && (err == nil || !strings.Contains(err.Error(), errTooMuchWork.Error())) || name == "arrays" && strings.TrimSpace(text) != "one" {
			t.Errorf("%s: text %.40q, error %v", name, text, err)
		}
	}
}

// TestMemoryOfOthersDoesNotCount reads a good file while a file that needs too much memory is read, and while the heap grows elsewhere.
func TestMemoryOfOthersDoesNotCount(t *testing.T) {
	good := makePDF("BT /F1 12 Tf " + strings.Repeat("(one) Tj ", 2000) + "ET")
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		defer close(done)
		if _, err := Read(t.Context(), manyObjects(), 32<<20); !errors.Is(err, errTooMuchMemory) {
			t.Errorf("many objects: error %v", err)
		}
	})
	reads := 0
	for more := true; more; reads++ {
		select {
		case <-done:
			more = false
		default:
		}
		if text, err := Read(t.Context(), good, 32<<20); err != nil || !strings.HasPrefix(text, "oneone") {
			t.Fatalf("read %d of the good file: %.20q, error %v", reads, text, err)
		}
	}
	others.Wait()

	var held [][]byte
	grow := func() { held = append(held, bytes.Repeat([]byte("x"), maxGrowth+moreGrowth)) }
	elsewhere := newMemoryWatch()
	if grow(); !elsewhere.isExceeded() || elsewhere.isReleased() {
		t.Error("memory that stays is taken for the file's")
	}
	own := newMemoryWatch()
	grow()
	exceeded := own.isExceeded()
	if held[1] = nil; !exceeded || !own.isReleased() {
		t.Error("memory that is free when the file is let go is not taken for the file's")
	}
	others.Go(func() {
		for range 3 {
			grow()
		}
	})
	for range 100 {
		if _, err := Read(t.Context(), good, 32<<20); err != nil {
			t.Error(err)
		}
	}
	others.Wait()
	runtime.KeepAlive(held)
}
