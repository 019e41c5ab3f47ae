package attach_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/llm"
)

// These are beginnings of files that are long enough to be recognized.
const (
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
	jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF"
	gif  = "GIF89a\xff\xff\xff\xff\x00\x00\x00"
	webp = "RIFF\x1a\x00\x00\x00WEBPVP8L"
	pdf  = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
)

// What a file is, its bytes decide; a name that promises a picture must not be another thing.
func TestNew(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          llm.Part // nil: a text
		wrong         string
	}{
		{"a.png", png, llm.Image{MIME: "image/png", Data: []byte(png)}, ""},
		{"without", png, llm.Image{MIME: "image/png", Data: []byte(png)}, ""},
		{"a.png", jpeg, llm.Image{MIME: "image/jpeg", Data: []byte(jpeg)}, ""},
		{"bomb.gif", gif, llm.Image{MIME: "image/gif", Data: []byte(gif)}, ""}, // 65,535 pixels wide and high: nothing decodes it
		{"a.webp", webp, llm.Image{MIME: "image/webp", Data: []byte(webp)}, ""},
		{"dir/a.pdf", pdf + "PK\x03\x04", llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte(pdf + "PK\x03\x04")}, ""}, // a polyglot is what its first bytes are
		{"a.txt", "text", nil, ""},
		{"a.svg", "<svg/>", nil, ""},
		{"a.txt", "", nil, ""},
		{"a.png", "version https://git-lfs.github.com/spec/v1\n", nil, "named like a picture"},
		{"a.PDF", "text", nil, "named like a picture"},
		{"a.png", "", nil, "is empty"},
		{"a.png", png[:12], nil, "named like a picture"},
		{"a.zip", "PK\x03\x04\xff\xfe", nil, "not UTF-8 text"},
		{"a.bmp", "BM\xff\xff", nil, "not UTF-8 text"},
		{"a.png", png + strings.Repeat("x", attach.MaxMedia), nil, "10.0 MB, and may have 10 MB"},
	} {
		f, err := attach.New(c.name, []byte(c.content))
		switch {
		case c.wrong != "":
			if e := (*failure.Error)(nil); !errors.As(err, &e) || e.Kind != failure.Usage || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == nil && (f.Text != c.content || f.Media != nil), c.want != nil && !equalPart(f.Media, c.want):
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func equalPart(a, b llm.Part) bool {
	data := func(p llm.Part) []byte {
		out, _ := llm.Message{Parts: []llm.Part{p}}.Parts[0].(interface{ MarshalJSON() ([]byte, error) }).MarshalJSON()
		return out
	}
	return a != nil && bytes.Equal(data(a), data(b))
}

// What a client declares must not contradict the content, and sizes are known before anything is decoded.
func TestNewBase64(t *testing.T) {
	code := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, c := range []struct{ declared, data, wrong string }{
		{"image/png", code(png), ""},
		{"image/png", code(jpeg), ""}, // what it is decides, and it is sent as that
		{"", code(png), ""},
		{"application/octet-stream", code(png), ""},
		{"text/plain", code("text"), ""},
		{"image/png", code("<html>"), "its content is something else"},
		{"application/pdf", code("text"), "its content is something else"},
		{"text/plain", code(png), "its content is image/png"},
		{"", "no base64!", "base64"},
		{"image/png", strings.Repeat("A", attach.MaxMedia/3*4+400), "may have 10 MB"},
		{"", strings.Repeat("A", attach.MaxMedia/3*4+400), "may have 10 MB"},
		{"", code(strings.Repeat("x", attach.MaxText+1)), "may have 1 MB"},
		{strings.Repeat("image/x", 1000), code("x"), "something else"},
	} {
		f, err := attach.NewBase64("it", c.declared, c.data, attach.MaxText)
		if (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || len(err.Error()) > 300) {
			t.Errorf("%.20s %.20s: %v %v, want %q", c.declared, c.data, f.Name, err, c.wrong)
		}
	}
	for address, wrong := range map[string]string{
		"data:image/png;base64," + code(png):              "",
		"data:IMAGE/PNG;base64," + code(png):              "",
		"data:image/jpeg;name=x;base64," + code(jpeg):     "",
		"data:;base64," + code(png):                       "",
		"data:text/html;base64," + code(png):              "its content is image/png",
		"data:image/png," + png:                           "no data: address",
		"data:image/png;base64":                           "no data: address",
		"https://example.com/a.png":                       "nothing is fetched",
		"file:///etc/passwd":                              "nothing is fetched",
		"data:image/svg+xml;base64," + code("<svg/>"):     "",
		"data:image/png;base64," + code(png)[:20] + "%3D": "no data: address",
	} {
		if _, err := attach.NewDataURL("it", address); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%.40s: %v, want %q", address, err, wrong)
		}
	}
}

// A file is read no further than its limit, and nothing waits for a pipe.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.png", []byte(png))
	write("large.png", append([]byte(png), make([]byte, 30<<20)...))
	write("large.txt", bytes.Repeat([]byte("x"), attach.MaxText+1))
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, []byte(png), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.png")); err != nil {
		t.Skip(err)
	}
	for name, wrong := range map[string]string{"a.png": "", "large.png": "larger than 10 MB", "large.txt": "larger than 1 MB", "none.png": "no such file", ".": "is a directory", "link.png": "leads out of"} {
		began := time.Now()
		_, err := attach.ReadBeneath(dir, name, name, attach.MaxText)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", name, err, wrong)
		}
		if time.Since(began) > 5*time.Second {
			t.Errorf("%s took %v", name, time.Since(began))
		}
	}
	if f, err := attach.Read(filepath.Join(dir, "a.png"), "pictures/a.png", attach.MaxText, false); err != nil || f.String() != "a.png · 29 bytes · pictures/a.png" {
		t.Errorf("%s %v", f, err)
	}
}

// Texts go into the prompt, and pictures into parts of the message; both are named there.
func TestJoin(t *testing.T) {
	picture := attach.File{Name: "a.png", Media: llm.Image{MIME: "image/png", Data: []byte(png)}}
	text := attach.File{Name: `b.txt`, Text: "text\n"}
	for want, got := range map[string]func() (string, []llm.Part, error){
		"Look\n\nFile a.png is attached.\n\nFile b.txt:\ntext": func() (string, []llm.Part, error) { return attach.Join("Look", []attach.File{picture, text}) },
		"File a.png is attached.":                              func() (string, []llm.Part, error) { return attach.Join("", []attach.File{picture}) },
		"text":                                                 func() (string, []llm.Part, error) { return attach.Join("", []attach.File{text}) },
	} {
		if said, media, err := got(); said != want || err != nil || (len(media) == 1) != strings.Contains(want, "attached") {
			t.Errorf("%q %d %v, want %q", said, len(media), err, want)
		}
	}
	if _, _, err := attach.Join("x", make([]attach.File, 1)); err != nil {
		t.Error(err)
	}
	many := make([]attach.File, attach.MaxCount+1)
	for i := range many {
		many[i] = picture
	}
	if _, _, err := attach.Join("x", many); err == nil || !strings.Contains(err.Error(), "may have 20") {
		t.Error(err)
	}
	large := attach.File{Name: "l.png", Media: llm.Image{MIME: "image/png", Data: make([]byte, 9<<20)}}
	if _, _, err := attach.Join("x", []attach.File{large, large, large}); err == nil || !strings.Contains(err.Error(), "27 MB together, and may have 20 MB") {
		t.Error(err)
	}
}
