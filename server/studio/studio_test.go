package studio_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"raddle.dev/server/studio"
)

// serve returns the answer to a request.
func serve(t *testing.T, root, path, encoding string) *http.Response {
	t.Helper()
	mux, page := http.NewServeMux(), studio.NewHandler(root)
	for _, pattern := range append([]string{studio.Files}, studio.Pages...) {
		mux.Handle(pattern, page)
	}
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Result()
}

// Every view has an address, below the path of a proxy too; unknown ones are not found.
func TestPages(t *testing.T) {
	for _, path := range []string{"/", "/inbox", "/runs", "/runs?status=done", "/agents/triage", "/runs/1m83@12?record=4", "/chat/assistant", "/chat/assistant/main"} {
		res := serve(t, "/tools/\"raddle\"/", path, "")
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 || !strings.Contains(string(text), `<base href="/tools/&#34;raddle&#34;/" />`) || strings.Contains(string(text), "<script>") {
			t.Errorf("%s: %d %v\n%s", path, res.StatusCode, err, text)
		}
	}
	for _, path := range []string{"/studio/index.html", "/studio/none.js", "/elsewhere", "/studio/..%2fstudio.go"} {
		if res := serve(t, "/", path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// maxBundle is the size of the files of the page, compressed, in bytes.
const maxBundle = 120 << 10

// The files are small when they are compressed, have their types, and are the same without compression.
func TestFiles(t *testing.T) {
	total := 0
	for name, media := range map[string]string{"studio.js": "text/javascript", "studio.css": "text/css", "icon.svg": "image/svg+xml"} {
		res := serve(t, "/", "/studio/"+name, "gzip, br")
		packed, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(res.Header.Get("Content-Type"), media) {
			t.Fatalf("%s: %v %v", name, err, res.Header)
		}
		total += len(packed)
		unzipped, err := gzip.NewReader(strings.NewReader(string(packed)))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(unzipped)
		plain, _ := io.ReadAll(serve(t, "/", "/studio/"+name, "").Body)
		if len(text) == 0 || string(text) != string(plain) {
			t.Errorf("%s has %d bytes compressed and %d without", name, len(text), len(plain))
		}
	}
	if total > maxBundle {
		t.Errorf("the page has %d bytes compressed, the limit is %d", total, maxBundle)
	}
}
