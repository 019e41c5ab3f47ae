package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
		text, err = f.convert(ctx, path+" $1 -")
	} else {
		text, err = pdfLibrary(ctx, f.data, f.entry.o.maxBytes())
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

// pdfTime bounds the reading of one PDF by the library.
const pdfTime = 30 * time.Second

// A limited file ends the library where it goes round in circles: in the tree of pages it reads the same objects again and again.
type limited struct {
	ctx  context.Context
	data *bytes.Reader
}

func (l limited) ReadAt(p []byte, at int64) (int, error) {
	if l.ctx.Err() != nil {
		panic(errTooLong)
	}
	return l.data.ReadAt(p, at)
}

var errTooLong = errors.New("it takes too long to read")

// pdfLibrary reads at most so many bytes of text. The library panics on some broken files.
func pdfLibrary(ctx context.Context, data []byte, most int64) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pdfTime)
	defer cancel()
	r, err := pdf.NewReader(limited{ctx, bytes.NewReader(data)}, int64(len(data)))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for n := 1; n <= r.NumPage(); n++ {
		page := r.Page(n)
		if ctx.Err() != nil {
			return "", errTooLong
		}
		if page.V.IsNull() {
			continue
		}
		if err := writePage(&b, page, most); err != nil {
			return "", fmt.Errorf("page %d: %w", n, err)
		}
		if int64(b.Len()) > most {
			return "", tooLarge(int64(b.Len()), most)
		}
	}
	return strings.ToValidUTF8(b.String(), "�"), nil
}

func writePage(b *strings.Builder, page pdf.Page, most int64) error {
	if err := checkStreams(page, most); err != nil {
		return err
	}
	rows, err := page.GetTextByRow()
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, word := range row.Content {
			b.WriteString(word.S)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return nil
}

// checkStreams reads what the library will interpret of a page: it never ends where a string has no end.
func checkStreams(page pdf.Page, most int64) error {
	streams := []pdf.Value{page.V.Key("Contents")}
	if c := streams[0]; c.Kind() == pdf.Array {
		streams = nil
		for i := range c.Len() {
			streams = append(streams, c.Index(i))
		}
	}
	var all []byte
	for _, v := range streams {
		if v.Kind() != pdf.Stream {
			continue
		}
		data, err := readStream(v, most)
		if err != nil {
			return err
		}
		all = append(all, data...)
	}
	if !stringsEnd(all) {
		return errors.New("a string has no end")
	}
	for _, name := range page.Fonts() {
		if v := page.Font(name).V.Key("ToUnicode"); v.Kind() == pdf.Stream {
			if data, err := readStream(v, most); err != nil || !stringsEnd(data) {
				return errors.Join(errors.New("the table of a font is broken"), err)
			}
		}
	}
	return nil
}

func readStream(v pdf.Value, most int64) ([]byte, error) {
	r := v.Reader()
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = tooLarge(int64(len(data)), most)
	}
	return data, err
}

// stringsEnd tells whether every string of a content stream has its end.
func stringsEnd(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '%':
			for i < len(data) && data[i] != '\n' && data[i] != '\r' {
				i++
			}
		case '(':
			depth := 1
			for i++; i < len(data) && depth > 0; i++ {
				switch data[i] {
				case '\\':
					i++
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			if depth > 0 {
				return false
			}
			i--
		case '<':
			if i+1 < len(data) && data[i+1] == '<' {
				i++
				continue
			}
			end := bytes.IndexByte(data[i:], '>')
			if end < 0 {
				return false
			}
			i += end
		}
	}
	return true
}
