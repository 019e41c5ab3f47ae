package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ledongthuc/pdf"
)

// pdfText takes the text out of a PDF: with pdftotext where that is installed, since it knows more fonts, else with a library.
func (f *File) pdfText(ctx context.Context) (string, error) {
	if !bytes.Contains(f.data[:min(len(f.data), 1024)], []byte("%PDF-")) {
		return "", errors.New("a broken PDF: it does not begin as one")
	}
	var text string
	var err error
	if path := f.entry.o.program("pdftotext"); path != "" {
		text, err = f.convert(ctx, path+" -q $1 -")
	} else {
		text, err = pdfLibrary(f.data, f.entry.o.maxBytes())
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("a broken PDF: %w", err)
	}
	text = strings.ReplaceAll(text, "\f", "\n\n")
	if strings.TrimSpace(text) == "" {
		return "", errors.New("a PDF without text, perhaps a scan: turn its pictures into text first")
	}
	return text, nil
}

// program finds a program in the PATH of the commands' environment, with a path that needs no quotes; empty: it is not there.
func (o *Options) program(name string) string {
	list := os.Getenv("PATH")
	for _, e := range o.Env {
		if own, ok := strings.CutPrefix(e, "PATH="); ok {
			list = own
		}
	}
	for _, dir := range filepath.SplitList(list) {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil && filepath.IsAbs(path) && !strings.ContainsAny(path, " '\"\\$`") {
			return path
		}
	}
	return ""
}

// pdfLibrary reads at most so many bytes of text. The library panics on some broken files.
func pdfLibrary(data []byte, most int64) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for n := 1; n <= r.NumPage(); n++ {
		page := r.Page(n)
		if page.V.IsNull() {
			continue
		}
		rows, err := page.GetTextByRow()
		if err != nil {
			return "", fmt.Errorf("page %d: %w", n, err)
		}
		for _, row := range rows {
			for _, word := range row.Content {
				b.WriteString(word.S)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
		if int64(b.Len()) > most {
			return "", tooLarge(int64(b.Len()), most)
		}
	}
	return strings.ToValidUTF8(b.String(), "�"), nil
}
