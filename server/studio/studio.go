// Package studio serves the page on which people see, answer and fork runs. The page is made from the sources in the
// folder page, uses the HTTP API, and requests nothing from elsewhere.
package studio

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// types are the media types of the files of the page.
var types = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8"}

// packed are the files of the page as they are sent to browsers that take gzip.
var packed = sync.OnceValue(func() map[string][]byte {
	files := map[string][]byte{}
	entries, _ := fs.ReadDir(dist, "dist")
	for _, e := range entries {
		text, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			continue
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
		files[e.Name()] = b.Bytes()
	}
	return files
})

// Pages are the patterns of the addresses of the page: each of its views has one.
var Pages = []string{"GET /{$}", "GET /inbox", "GET /agents/{name}", "GET /runs", "GET /runs/{run}", "GET /chat/{agent}", "GET /chat/{agent}/{session}"}

// Files is the pattern of the files that the page loads.
const Files = "GET /studio/{file}"

// NewHandler returns the handler of [Pages] and [Files]. root is the path at which browsers reach the server, with a
// slash at its end. Nothing that it sends is secret: what the page shows comes from the API.
func NewHandler(root string) http.Handler {
	index, err := dist.ReadFile("dist/index.html")
	page := []byte(strings.ReplaceAll(string(index), "{{base}}", html.EscapeString(root)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, "/studio/"); ok {
			serveFile(w, r, name)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", types[".html"])
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(page)
	})
}

// serveFile sends a file of the page.
func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	zipped, ok := packed()[name]
	if !ok || name == "index.html" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped)
		return
	}
	text, err := dist.ReadFile("dist/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(text)
}
