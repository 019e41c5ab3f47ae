package api

import (
	"net/http"
	"testing"
	"time"
)

// A body may take as long as a slow line needs: the default of the library, 5 seconds, cuts off files.
func TestBodyTimeouts(t *testing.T) {
	n := 0
	for path, item := range newAPI(http.NewServeMux(), nil).api.OpenAPI().Paths {
		if item.Post == nil || item.Post.RequestBody == nil {
			continue
		}
		n++
		want := time.Minute
		if path == StartPath {
			want = 10 * time.Minute
		}
		if item.Post.BodyReadTimeout < want {
			t.Errorf("POST %s: %v, want %v", path, item.Post.BodyReadTimeout, want)
		}
	}
	if n < 3 {
		t.Errorf("only %d operations take a body", n)
	}
}
