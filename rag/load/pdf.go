package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/rag/pdftext"
)

// pdfReader is part of the hash of PDF files: a change of it makes the next build read them again.
const pdfReader = "\x00pdf 2"

// pdfText returns the text of a PDF file.
func (f *File) pdfText(ctx context.Context) (text pdftext.Text, err error) {
	if !bytes.Contains(f.data[:min(len(f.data), 1024)], []byte("%PDF-")) {
		return text, errors.New("a broken PDF: it does not begin as one")
	}
	text, err = pdftext.ReadPages(ctx, f.data, f.entry.o.maxBytes())
	if ctx.Err() != nil {
		return text, ctx.Err()
	}
	if errors.Is(err, pdftext.ErrNoCharacters) || errors.Is(err, pdftext.ErrBusy) {
		return text, err
	}
	if err != nil {
		return text, fmt.Errorf("a broken PDF: %w", err)
	}
	if strings.TrimSpace(text.Text) == "" {
		return text, errors.New("a PDF without text, perhaps a scan: turn its pictures into text first")
	}
	return text, nil
}
