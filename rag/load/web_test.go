package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// site is a small web of pages.
func site(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		})
	}
	page("/docs/{$}", "text/html; charset=utf-8", `<p>start <a href="a.html#x">a</a> <a href="b.html">b</a> <a href="/above">up</a> <a href="old">old</a>
		<a href="http://other.invalid/docs/">other</a> <a href="mailto:x@y">mail</a> <a href="slow">slow</a> <a href="pic">pic</a></p>`)
	page("/docs/a.html", "text/html", `<p>page a <a href="/docs/">start</a> <a href="deep/c.md">c</a></p>`)
	page("/docs/b.html", "text/html; charset=iso-8859-1", "<p>caf\xe9</p>")
	mux.HandleFunc("GET /docs/old", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/docs/a.html", http.StatusFound) })
	page("/docs/deep/c.md", "text/plain", "# C\n")
	page("/docs/pic", "image/png", "\x89PNG")
	page("/above", "text/html", "<p>above</p>")
	page("/data.json", "application/json", `{"a":1}`)
	page("/file.pdf", "application/pdf", string(makePDF("From the web.")))
	page("/large", "text/plain", strings.Repeat("x", 5000))
	mux.HandleFunc("GET /docs/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/above", http.StatusFound) })
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
	})
	mux.HandleFunc("GET /loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("GET /many/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for i := range 30 {
			fmt.Fprintf(w, `<a href="/many/%s%d">x</a>`, r.PathValue("n"), i)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		close(stop)
		s.Close()
	})
	return s.URL
}

func trimmed(texts map[string]string, base string) map[string]string {
	all := map[string]string{}
	for path, text := range texts {
		all[strings.TrimPrefix(path, base)] = strings.ReplaceAll(strings.TrimSpace(text), base, "")
	}
	return all
}

func TestCrawl(t *testing.T) {
	base := site(t)
	texts, problems := read(t, Options{Dir: t.TempDir(), Timeout: 200 * time.Millisecond}, base+"/docs/**")
	got := trimmed(texts, base)
	if !strings.HasPrefix(got["/docs/"], "start a b up") {
		t.Errorf("the start is %q", got["/docs/"])
	}
	delete(got, "/docs/")
	want := map[string]string{"/docs/a.html": "page a start c", "/docs/b.html": "café", "/docs/deep/c.md": "# C"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	wantProblems := map[string]string{"/docs/slow": "no answer within 200ms", "/docs/pic": "Unexpected media type image/png"}
	if diff := cmp.Diff(wantProblems, trimmed(problems, base)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCrawlStops(t *testing.T) {
	base := site(t)
	texts, problems := read(t, Options{Dir: t.TempDir(), MaxPages: 12}, base+"/many/1**")
	if problem := problems[base+"/many/1**"]; !strings.Contains(problem, "stopped after 12 pages") {
		t.Errorf("problems %v", problems)
	}
	if len(texts) != 12 {
		t.Errorf("%d pages", len(texts))
	}
}

func TestPages(t *testing.T) {
	base := site(t)
	sources := []string{"/above", "/data.json", "/file.pdf", "/large", "/moved", "/away", "/loop", "/none"}
	for i, s := range sources {
		sources[i] = base + s
	}
	texts, problems := read(t, Options{Dir: t.TempDir(), MaxBytes: 2000}, sources...)
	want := map[string]string{"/above": "above", "/data.json": "{\n \"a\": 1\n}", "/file.pdf": "From the web.", "/moved": "above"}
	if diff := cmp.Diff(want, trimmed(texts, base)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	for path, part := range map[string]string{"/large": "too large", "/away": "it redirects to http://other.invalid/", "/loop": "too many redirections",
		"/none": "404"} {
		if !strings.Contains(problems[base+path], part) {
			t.Errorf("%s: problem %q, want %q", path, problems[base+path], part)
		}
	}
}

func TestLoadersOfPages(t *testing.T) {
	o := Options{Dir: t.TempDir(), Loaders: map[string]string{
		"url":           "echo page $1",
		"recursive_url": `echo '[{"path":"p1","text":"crawled"}]'`,
	}}
	texts, problems := read(t, o, "http://h.invalid/a", "http://h.invalid/b/**")
	want := map[string]string{"http://h.invalid/a": "page http://h.invalid/a\n", "p1": "crawled"}
	if diff := cmp.Diff(want, texts); diff != "" || len(problems) > 0 {
		t.Errorf("texts (-want +got):\n%s\nproblems: %v", diff, problems)
	}
}
