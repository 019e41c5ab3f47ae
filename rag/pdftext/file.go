package pdftext

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/ledongthuc/pdf"
)

// openFile opens a file with the library, and protects it from endless loops and recursion.
func openFile(ctx context.Context, data []byte, watch *memoryWatch) (*pdf.Reader, error) {
	if err := checkTables(data); err != nil {
		return nil, err
	}
	s := &source{ctx: ctx, data: data, reads: map[int64]int{}, memory: watch}
	r, err := pdf.NewReader(s, int64(len(data)))
	if err != nil {
		return nil, err
	}
	offsets := s.reads
	s.reads = nil
	packed := map[int64]bool{}
	containers := map[int64]bool{}
	for at := range offsets {
		if err := readTable(ctx, data, at, packed, containers); err != nil {
			return nil, err
		}
	}
	for id := range containers {
		if packed[id] { // the library would search for the object in the object itself, until the stack overflows
			return nil, errTableLoop
		}
	}
	return r, nil
}

// readTable records the entries of a compressed table of objects at an offset of the file: which objects are packed
// into others, and into which ones. It ignores other data at this offset.
func readTable(ctx context.Context, data []byte, at int64, packed, containers map[int64]bool) error {
	if at < 0 || at >= int64(len(data)) {
		return nil
	}
	l := lexer{data: data[:min(int64(len(data)), at+64)], at: int(at)}
	id, _, _ := l.nextToken()
	generation, _, _ := l.nextToken()
	_, operator, _ := l.nextToken()
	if operator != "obj" || id.kind != numberOperand || generation.kind != numberOperand || id.number < 1 || id.number > maxObjects {
		return nil
	}
	// The library does not return the table. For a file in which the table is the catalog, it does.
	tail := fmt.Appendf(nil, "\nxref\n%.0f 1\n%010d %05.0f n \ntrailer\n<< /Size %.0f /Root %.0f %.0f R >>\nstartxref\n%d\n%%%%EOF\n",
		id.number, at, generation.number, id.number+1, id.number, generation.number, len(data)+1)
	r, err := pdf.NewReader(&source{ctx: ctx, data: data, tail: tail}, int64(len(data)+len(tail)))
	if err != nil {
		return err
	}
	v := r.Trailer().Key("Root")
	if v.Kind() != pdf.Stream || v.Key("Type").Name() != "XRef" {
		return nil
	}
	return readEntries(v, packed, containers)
}

// readEntries reads the entries of a compressed table as the library does.
func readEntries(v pdf.Value, packed, containers map[int64]bool) error {
	var widths [3]int64
	row := int64(0)
	for i := range v.Key("W").Len() {
		width := v.Key("W").Index(i).Int64()
		if width < 0 || width > 8 {
			return errTableLoop
		}
		if i < len(widths) {
			widths[i] = width
		}
		row += width
	}
	sections := []int64{0, v.Key("Size").Int64()}
	if index := v.Key("Index"); index.Kind() == pdf.Array {
		sections = nil
		for i := range index.Len() {
			sections = append(sections, index.Index(i).Int64())
		}
	}
	r := v.Reader()
	defer r.Close()
	entry := make([]byte, row)
	for ; len(sections) >= 2; sections = sections[2:] {
		if sections[0] < 0 || sections[1] > maxObjects {
			return errManyObjects
		}
		for i := range sections[1] {
			if _, err := io.ReadFull(r, entry); err != nil {
				return fmt.Errorf("its table of objects is cut off: %w", err)
			}
			if kind := bigEndian(entry[:widths[0]]); widths[0] > 0 && kind == 2 {
				packed[sections[0]+i] = true
				containers[bigEndian(entry[widths[0]:widths[0]+widths[1]])] = true
			}
		}
	}
	return nil
}

func bigEndian(b []byte) int64 {
	n := int64(0)
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}

// A source is the file as the library reads it. It stops loops of the library with a panic, from which the library or
// Read recovers.
type source struct {
	ctx   context.Context
	data  []byte
	tail  []byte        // bytes after the end of data
	reads map[int64]int // number of reads by offset while the tables of objects are read; nil: the tables were read

	memory *memoryWatch // nil: memory is not watched
}

const (
	maxReads  = 16   // most reads of one offset while the tables of objects are read
	maxFrames = 3000 // on the stack
)

// ReadAt implements [io.ReaderAt].
func (s *source) ReadAt(p []byte, at int64) (int, error) {
	if s.ctx.Err() != nil {
		panic(errTooLong)
	}
	if at < 0 {
		return 0, io.EOF
	}
	if s.memory.isExceeded() {
		panic(errTooMuchMemory)
	}
	if s.reads != nil {
		if s.reads[at]++; s.reads[at] > maxReads {
			panic(errTableLoop)
		}
	}
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		panic(errNested)
	}
	n := 0
	if at < int64(len(s.data)) {
		n = copy(p, s.data[at:])
	}
	if at+int64(n) >= int64(len(s.data)) {
		n += copy(p[n:], s.tail[min(at+int64(n)-int64(len(s.data)), int64(len(s.tail))):])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
