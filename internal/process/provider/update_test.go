package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/storage/config"
)

const smallCatalogue = `{"openai":{"models":{"gpt-5.6-sol":{"cost":{"input":7,"output":35},"limit":{"context":5}}}}}`

// A newer catalogue is read over loopback or https, without redirects, and stored without the password of its address. What is no catalogue
// changes nothing.
func TestUpdate(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api.json":
			fmt.Fprint(w, smallCatalogue)
		case "/moved":
			http.Redirect(w, r, "/api.json", http.StatusFound)
		case "/page":
			fmt.Fprint(w, "<html>")
		case "/large":
			_, _ = w.Write(make([]byte, 33<<20))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer web.Close()
	secret := strings.Replace(web.URL, "http://", "http://me:sesame@", 1)
	for path, want := range map[string]string{
		"/moved": "it moved to", "/page": "not a catalogue", "/large": "more than", "/none": "404", "/api.json": "",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, CatalogueName)
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		about, err := NewResolver(&config.Config{}, config.Dirs{Config: dir}, nil).Catalogue().Update(t.Context(), secret+path)
		content, readErr := os.ReadFile(file)
		if readErr != nil || strings.Contains(fmt.Sprint(string(content), err), "sesame") {
			t.Errorf("%s: %s, %v, %v", path, content, err, readErr)
		}
		if want == "" {
			if err != nil || about.Models != 1 || !strings.Contains(string(content), "gpt-5.6-sol") {
				t.Errorf("%s: %+v, %v: %s", path, about, err, content)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || string(content) != "before" {
			t.Errorf("%s: %v, want %q; the file is %.40q", path, err, want, content)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, source := range []string{"http://192.0.2.1/api.json", "http://me:sesame@example.com/x", "ftp://example.com/x", strings.Replace(closed.URL, "//", "//me:sesame@", 1)} {
		_, err := NewResolver(&config.Config{}, config.Dirs{Config: t.TempDir()}, nil).Catalogue().Update(t.Context(), source)
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
