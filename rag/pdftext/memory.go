package pdftext

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
)

const (
	maxObjects = 500_000 // of one file: the library makes a table of so many entries
	maxColumns = 1 << 16 // of a row of a compressed table
	maxWidth   = 8       // bytes of a field of a compressed table
	maxTables  = 1000    // of objects, one for each change of the file
)

var (
	errManyObjects   = fmt.Errorf("too large: its tables name more than %d objects", maxObjects)
	errTooMuchMemory = errors.New("its objects need too much memory")
)

// checkTables refuses a file whose tables of objects would make the library allocate more than they hold. It follows
// the tables as the library does, and leaves broken ones to the library.
func checkTables(data []byte) error {
	for rest := data; ; {
		i := bytes.Index(rest, []byte("/Columns"))
		if i < 0 {
			break
		}
		rest = rest[i+len("/Columns"):]
		l := lexer{data: rest[:min(len(rest), 64)]}
		if v, _, ok := l.nextToken(); ok && v.kind == numberOperand && (v.number < 0 || v.number > maxColumns) {
			return errManyObjects
		}
	}
	i := bytes.LastIndex(data, []byte("startxref"))
	if i < 0 {
		return nil
	}
	l := lexer{data: data, at: i + len("startxref")}
	start, _, _ := l.nextToken()
	at := start.number
	for range maxTables {
		if !(at >= 0 && at < float64(len(data))) { // this may not be a number
			return nil
		}
		previous, err := checkTable(data, int(at))
		if err != nil || len(previous) == 0 {
			return err
		}
		at = previous[0]
	}
	return errTableLoop
}

// checkTable checks one table, and returns where the previous one begins.
func checkTable(data []byte, at int) (previous []float64, err error) {
	l := lexer{data: data, at: at}
	first, word, _ := l.nextToken()
	if word == "xref" {
		for {
			start, word, ok := l.nextToken()
			if !ok || word != "" && word != "trailer" {
				return nil, nil
			}
			if word == "trailer" {
				break
			}
			n, _, _ := l.nextToken()
			if start.number < 0 || n.number < 0 || start.number+n.number > maxObjects {
				return nil, errManyObjects
			}
			for range 3 * int(n.number) {
				if _, _, ok := l.nextToken(); !ok {
					return nil, nil
				}
			}
		}
	} else if first.kind != numberOperand {
		return nil, nil
	} else {
		l.nextToken() // the generation
		l.nextToken() // obj
	}
	numbers := l.readNumbers()
	for name, most := range map[string]float64{"Size": maxObjects, "Index": maxObjects, "W": maxWidth, "Columns": maxColumns} {
		for _, n := range numbers[name] {
			if n < 0 || n > most {
				return nil, errManyObjects
			}
		}
	}
	return numbers["Prev"], nil
}

// readNumbers reads a dictionary, and the dictionaries in it, and returns the numbers after each name.
func (l *lexer) readNumbers() map[string][]float64 {
	all := map[string][]float64{}
	name := ""
	depth := 0
	for {
		l.skipSpace()
		switch rest := l.data[min(l.at, len(l.data)):]; {
		case len(rest) == 0:
			return all
		case bytes.HasPrefix(rest, []byte("<<")):
			depth++
			l.at += 2
			continue
		case bytes.HasPrefix(rest, []byte(">>")):
			l.at += 2
			if depth--; depth <= 0 {
				return all
			}
			continue
		}
		v, _, ok := l.nextToken()
		switch {
		case !ok || depth == 0:
			return all
		case v.kind == nameOperand:
			name = v.text
		case v.kind == numberOperand:
			all[name] = append(all[name], v.number)
		}
		for _, item := range v.list {
			if item.kind == numberOperand {
				all[name] = append(all[name], item.number)
			}
		}
	}
}

// A memoryWatch detects that the objects of a file may need too much memory: a short text can describe many objects. It
// measures the whole process, after a garbage collection. So it also counts memory of other goroutines: [Read] finds
// out which part belongs to the file.
type memoryWatch struct {
	sample []metrics.Sample
	start  uint64
	next   uint64 // bytes in use at which to measure without garbage
	most   uint64 // bytes in use when the watch stopped the reading
}

const (
	maxGrowth  = 64 << 20 // the most bytes by which the memory in use may grow
	moreGrowth = 32 << 20 // bytes of new garbage before the watch collects again
	largeHeap  = 64 << 20 // bytes of a heap that is collected before the start is measured
)

// newMemoryWatch starts a watch with the memory that is in use now. Garbage would hide the growth, so it collects a
// large heap first.
func newMemoryWatch() *memoryWatch {
	w := &memoryWatch{sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	if w.start = w.usedBytes(); w.start > largeHeap {
		w.start = w.countCollected()
	}
	w.next = w.start + maxGrowth
	return w
}

// usedBytes returns the bytes in use, with garbage.
func (w *memoryWatch) usedBytes() uint64 {
	metrics.Read(w.sample)
	return w.sample[0].Value.Uint64()
}

// countCollected returns the bytes in use, without garbage.
func (w *memoryWatch) countCollected() uint64 {
	runtime.GC()
	return w.usedBytes()
}

// isExceeded reports whether the memory of the process has grown too much since the watch began.
func (w *memoryWatch) isExceeded() bool {
	if w == nil || w.usedBytes() <= w.next {
		return false
	}
	used := w.countCollected()
	w.next = max(used+moreGrowth, w.start+maxGrowth)
	if used <= w.start+maxGrowth {
		return false
	}
	w.most = used
	return true
}

// isReleased reports whether the memory is free again after the file was released. If so, the file had used it.
func (w *memoryWatch) isReleased() bool {
	return w.most > 0 && w.countCollected()+maxGrowth/2 < w.most
}
