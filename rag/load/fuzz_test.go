package load

import (
	"context"
	"net/url"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzFormats looks for documents that stop the reader or come out as no text.
func FuzzFormats(f *testing.F) {
	f.Add(makePDF("one", "two"), uint8(0))
	f.Add([]byte("a,b\n1,2\n"), uint8(1))
	f.Add([]byte(`{"a":[1]}`), uint8(2))
	f.Add([]byte("<title>t</title><p>x<a href='y'>z</a>"), uint8(3))
	f.Add([]byte("PK\x03\x04"), uint8(4))
	f.Add([]byte("\xff\xfea\x00"), uint8(5))
	formats := []string{"pdf", "csv", "json", "html", "docx", "txt"}
	o := &Options{Env: []string{"PATH=" + f.TempDir()}, MaxBytes: 1 << 20}
	at := &url.URL{Scheme: "http", Host: "h", Path: "/"}
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		if len(data) > 1<<14 {
			return
		}
		file := File{entry: Entry{ext: formats[int(format)%len(formats)], o: o}, data: data}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		doc, err := file.Text(ctx)
		if err == nil && !utf8.ValidString(doc.Text) {
			t.Errorf("%q comes out as %q", data, doc.Text)
		}
		linksOf(data, at)
	})
}
