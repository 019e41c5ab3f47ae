package rag

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/rag/load"
)

// A document is read through one of the loaders. Each function makes it readable, or not.
type loaderCase struct {
	name   string
	source string
	path   string // of the document, as problems name it; empty: that of the source
	put    func(kind string)
	remote bool
}

// The kinds of documents that cannot be read.
var unreadKinds = []string{"unreadable", "corrupt", "too large", "vanished"}

// page serves one document, which may be anything.
type page struct {
	url string

	mu    sync.Mutex
	kind  string
	looks map[string]int // by the path
}

func newPage(t *testing.T) *page {
	p := &page{looks: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.looks[r.URL.Path]++
		if r.URL.Path == "/docs/" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<p>start <a href="d.txt">d</a> <a href="other.txt">other</a></p>`)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		switch {
		case r.URL.Path == "/docs/other.txt" || p.kind == "good":
			fmt.Fprint(w, "text of "+r.URL.Path)
		case p.kind == "corrupt":
			w.Header().Set("Content-Type", "application/pdf")
			fmt.Fprint(w, "no pdf")
		case p.kind == "too large":
			fmt.Fprint(w, strings.Repeat("x", 3000))
		case p.kind == "vanished":
			http.NotFound(w, r)
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *page) put(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind = kind
}

// takeLooks returns how often each page was fetched since the last call.
func (p *page) takeLooks() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	looks := p.looks
	p.looks = map[string]int{}
	return looks
}

// loaderCases returns every way to read a document, with a function that puts the document there in each kind.
func loaderCases(t *testing.T, dir string) []loaderCase {
	put := func(name string) func(string) {
		path := filepath.Join(dir, name)
		return func(kind string) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			switch kind {
			case "good":
				testfile.WriteFile(t, path, "text of "+name)
			case "corrupt":
				testfile.WriteFile(t, path, "\x00\x01\x02\xff\x00binary")
			case "too large":
				testfile.WriteFile(t, path, strings.Repeat("x", 3000))
			case "unreadable": // also for the user who may read everything
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(name+".missing", path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	web := newPage(t)
	site := newPage(t)
	return []loaderCase{
		{name: "a file", source: "one.txt", put: put("one.txt")},
		{name: "a folder", source: "folder", path: filepath.Join(dir, "folder", "a.txt"), put: put("folder/a.txt")},
		{name: "a pattern", source: "files/*.txt", path: filepath.Join(dir, "files", "a.txt"), put: put("files/a.txt")},
		{name: "a command", source: "up:made.txt", path: filepath.Join(dir, "made.txt"), put: put("made.txt")},
		{name: "a page", source: web.url + "/docs/d.txt", put: web.put, remote: true},
		{name: "a page of a crawl", source: site.url + "/docs/**", path: site.url + "/docs/d.txt", put: site.put, remote: true},
	}
}

// A document that a build could not read is recorded, whatever reads it and whatever is wrong with it. Status names it, the next look tries it again, and the record
// goes when it can be read.
func TestUnreadDocumentsAreRecorded(t *testing.T) {
	if runtime.GOOS != "windows" {
		testneed.RequirePrograms(t, "bash")
	}
	for _, kind := range unreadKinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			testfile.WriteFile(t, filepath.Join(dir, "good.md"), "good")
			for _, c := range loaderCases(t, dir) {
				o := Options{Load: load.Options{Dir: dir, MaxBytes: 2000, Env: os.Environ(), Loaders: map[string]string{"up": "cat $1"}}}
				b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), o)
				c.put(kind)
				build(t, b, "good.md", c.source)
				check := func(when string, looks int) {
					t.Helper()
					s, err := b.Status(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if looks == 0 {
						if len(s.Unread) > 0 {
							t.Errorf("%s, %s: %v", c.name, when, s.Unread)
						}
						return
					}
					if len(s.Unread) != 1 || s.Unread[0].Source != c.source || s.Unread[0].Reason == "" || s.Unread[0].Looks != looks || time.Since(s.Unread[0].Last) > time.Minute || s.Unread[0].Since.After(s.Unread[0].Last) {
						t.Errorf("%s, %s: %+v", c.name, when, s.Unread)
					}
				}
				check("after the build", 1)
				for i, look := range []func() (Report, error){func() (Report, error) { return b.Retry(t.Context(), nil) }, func() (Report, error) { return b.Refresh(t.Context(), nil) }} {
					r, err := look()
					if err != nil || len(r.Problems) != 1 || r.Changed {
						t.Errorf("%s: look %d: %+v, %v", c.name, i+2, r, err)
					}
					check("after another look", i+2)
				}
				c.put("good")
				r, err := b.Retry(t.Context(), nil)
				if err != nil || len(r.Problems) > 0 || r.Added != 1 {
					t.Errorf("%s: when it can be read: %+v, %v", c.name, r, err)
				}
				check("when it can be read", 0)
				if r, err := b.Retry(t.Context(), nil); err != nil || r.Changed {
					t.Errorf("%s: with nothing unread: %+v, %v", c.name, r, err)
				}
				if again, err := b.Refresh(t.Context(), nil); err != nil || again.Added > 0 || again.Removed > 0 || again.Documents != r.Documents {
					t.Errorf("%s: a refresh finds other documents than the retry: %+v after %+v, %v", c.name, again, r, err)
				}
				// A version that the base has stays while the document cannot be read.
				if c.put(kind); kind != "vanished" || c.remote {
					if _, err := b.Refresh(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					check("when it cannot be read any more", 1)
					if s, err := b.Status(t.Context()); err != nil || s.Documents != r.Documents {
						t.Errorf("%s: %d documents are left of %d, %v", c.name, s.Documents, r.Documents, err)
					}
				}
			}
		})
	}
}

// A retry reads again what failed, and fetches nothing else.
func TestRetriesFetchOnlyWhatFailed(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a.md": "first", "b.md": "second"})
	site, other := newPage(t), newPage(t)
	site.put("unreadable")
	other.put("good")
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Load: load.Options{Dir: dir}})
	build(t, b, "a.md", site.url+"/docs/**", other.url+"/docs/**", "b.md")
	site.takeLooks()
	other.takeLooks()
	testfile.WriteFile(t, filepath.Join(dir, "a.md"), "changed")
	before := dump(t, b)
	for range 2 {
		if _, err := b.Retry(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if s, o := site.takeLooks(), other.takeLooks(); len(s) != 1 || s["/docs/d.txt"] != 2 || len(o) > 0 {
		t.Errorf("fetched %v and %v", s, o)
	}
	if after := dump(t, b); !slices.Equal(after, before) {
		t.Errorf("without success the base changes:\n%q\n%q", before, after)
	}
	site.put("good")
	if r, err := b.Retry(t.Context(), nil); err != nil || r.Added != 1 || r.Documents != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := b.Refresh(t.Context(), nil); err != nil || r.Added != 1 || r.Documents != 8 { // the one that has changed
		t.Errorf("%+v, %v", r, err)
	}
}

// A crawl that was stopped by a limit is recorded as such, and not tried again.
func TestStoppedCrawlsAreNotTriedAgain(t *testing.T) {
	site := newPage(t)
	site.put("unreadable")
	b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), Options{Load: load.Options{MaxPages: 1}})
	build(t, b, site.url+"/docs/**")
	site.takeLooks()
	s, err := b.Status(t.Context())
	if err != nil || len(s.Unread) != 1 || !s.Unread[0].Lasts || s.Unread[0].IsDue(time.Now().Add(time.Hour)) || !strings.Contains(s.Unread[0].String(), "stopped after 1 pages") {
		t.Errorf("%+v, %v", s.Unread, err)
	}
	if _, err := b.Retry(t.Context(), nil); err != nil || len(site.takeLooks()) > 0 {
		t.Errorf("it is fetched again: %v", err)
	}
	if left, err := b.Unread(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}

// What could not be read is due at once, and then less and less often.
func TestWhenUnreadDocumentsAreDue(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		looks int
		ago   time.Duration
		want  bool
	}{
		{1, 0, true}, {2, 59 * time.Second, false}, {2, time.Minute, true}, {3, time.Minute, false}, {3, 2 * time.Minute, true}, {7, 31 * time.Minute, false}, {7, 32 * time.Minute, true},
		{8, 59 * time.Minute, false}, {8, time.Hour, true}, {1000, 59 * time.Minute, false}, {1000, time.Hour, true}, {5, -time.Minute, true},
	} {
		if got := (Unread{Looks: c.looks, Last: now.Add(-c.ago)}).IsDue(now); got != c.want {
			t.Errorf("%d looks, the last one %v ago: %v", c.looks, c.ago, got)
		}
	}
}

// Bases of older versions have no record yet, and get one with their next build.
func TestOlderBasesGetARecord(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFile(t, filepath.Join(dir, "a.md"), "text")
	path := filepath.Join(dir, "kb.db")
	old, err := openDatabase(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=3;", application) + schema + schema2 + schema3); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	b := openBase(t, path, Options{Load: load.Options{Dir: dir}})
	build(t, b, "a.md", "none.md")
	unread, err := b.Unread(t.Context())
	if err != nil || len(unread) != 1 || unread[0].Source != "none.md" {
		t.Errorf("%+v, %v", unread, err)
	}
	text, err := json.Marshal(unread)
	if err != nil || !strings.Contains(string(text), `"reason":"`) || strings.Contains(string(text), `"path"`) {
		t.Errorf("%s, %v", text, err)
	}
}
