package pdftext

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ledongthuc/pdf"
)

// maxTime limits the time to read one file. Loops that can be recognized end earlier.
const maxTime = 30 * time.Second

// ErrNoCharacters is the error of a file that is intact, but whose fonts do not say which characters they draw.
var ErrNoCharacters = errors.New("the fonts of this PDF do not say which characters they draw: make a new PDF of its pages with text recognition (OCR)")

var (
	errTooLong     = errors.New("it takes too long to read")
	errTooMuchWork = errors.New("its pages draw the same things too often")
	errPageLoop    = errors.New("its tree of pages is a loop")
	errTableLoop   = errors.New("its tables of objects are a loop")
	errNested      = errors.New("its objects are nested too deeply")
)

func tooLarge(what string, limit int64) error {
	return fmt.Errorf("too large: %s has more than %.1f MB", what, float64(limit)/(1<<20))
}

// ErrBusy is the error of a file that could not be read because other work of the process used too much memory at the
// same time. A later attempt may succeed.
var ErrBusy = errors.New("the process needs too much memory for other work while this PDF is read: try again later")

// reading is locked for writing while a file that may need too much memory is read alone, and for reading by all other
// calls.
var reading sync.RWMutex

// maxAttempts is how often a file is read alone before [ErrBusy] is returned.
const maxAttempts = 4

// A Text is the text of a PDF file.
type Text struct {
	Text  string
	Pages []int // where each page begins in Text, in bytes; two begin at the same byte if the first has no text
}

// Read returns the text of a PDF file, page after page, each followed by an empty line. It refuses a file with more
// than maxBytes of text or with a larger stream on the way to it, and, with [ErrNoCharacters], one whose fonts do not
// say what most glyphs are. A broken file is an error and never a panic. Read takes at most 30 seconds, and returns
// ctx's error when ctx ends. It is safe for concurrent use: memory that other work uses never counts as the file's, but
// may lead to [ErrBusy].
func Read(ctx context.Context, data []byte, maxBytes int64) (string, error) {
	text, err := ReadPages(ctx, data, maxBytes)
	return text.Text, err
}

// ReadPages is Read with the places of the pages.
func ReadPages(ctx context.Context, data []byte, maxBytes int64) (Text, error) {
	reading.RLock()
	text, _, err := readWatched(ctx, data, maxBytes)
	reading.RUnlock()
	if !errors.Is(err, errTooMuchMemory) {
		return text, err
	}
	reading.Lock()
	defer reading.Unlock()
	for range maxAttempts {
		text, watch, err := readWatched(ctx, data, maxBytes)
		if !errors.Is(err, errTooMuchMemory) || watch.isReleased() {
			return text, err
		}
	}
	return Text{}, ErrBusy
}

// readWatched reads a file once. When it returns, the memory that the file needed can be collected.
func readWatched(ctx context.Context, data []byte, maxBytes int64) (text Text, watch *memoryWatch, err error) {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	watch = newMemoryWatch()
	defer func() {
		if p := recover(); p != nil { // the library panics on broken files
			text = Text{}
			err = fmt.Errorf("it cannot be read: %v", p)
			if watch.most > 0 {
				err = errTooMuchMemory
			}
		}
		if err != nil && limited.Err() != nil {
			text = Text{}
			err = errTooLong
		}
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	text, err = readPages(limited, data, maxBytes, watch)
	return text, watch, err
}

func readPages(ctx context.Context, data []byte, maxBytes int64, watch *memoryWatch) (Text, error) {
	r, err := openFile(ctx, data, watch)
	if err != nil && watch.most > 0 {
		return Text{}, errTooMuchMemory // the library turned it into an error
	}
	if err != nil {
		return Text{}, err
	}
	const most = 16 << 20 // bytes of one stream
	d := document{ctx: ctx, maxBytes: min(maxBytes, most), work: 8 * maxBytes, fonts: map[string]*font{}}
	pages := pageWalk{doc: &d, most: maxBytes, left: r.Trailer().Key("Size").Int64()}
	if err := pages.walkPages(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0); err != nil {
		return Text{}, err
	}
	if d.unknown > d.drawn/2 {
		return Text{}, ErrNoCharacters
	}
	return Text{Text: pages.text.String(), Pages: pages.starts}, nil
}

// A pageWalk reads the pages of a tree in their order.
type pageWalk struct {
	doc    *document
	left   int64 // remaining objects that the file can have
	read   int
	text   strings.Builder
	starts []int
	most   int64 // bytes of text
}

// maxTreeDepth is the greatest depth of a tree of pages.
const maxTreeDepth = 64

// walkPages reads the pages below node, which inherit the resources.
func (w *pageWalk) walkPages(node, resources pdf.Value, depth int) error {
	if w.left--; w.left < 0 || depth > maxTreeDepth {
		return errPageLoop
	}
	if err := w.doc.ctx.Err(); err != nil {
		return err
	}
	if own := node.Key("Resources"); own.Kind() == pdf.Dict {
		resources = own
	}
	if kids := node.Key("Kids"); kids.Kind() == pdf.Array {
		for i := range kids.Len() {
			if err := w.walkPages(kids.Index(i), resources, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if node.Kind() != pdf.Dict {
		return nil
	}
	w.read++
	text, err := w.doc.readPage(node, resources)
	if err != nil {
		return fmt.Errorf("page %d: %w", w.read, err)
	}
	w.starts = append(w.starts, w.text.Len())
	w.text.WriteString(strings.ToValidUTF8(text, "\ufffd"))
	if int64(w.text.Len()) > w.most {
		return tooLarge("its text", w.most)
	}
	return nil
}
