//go:build unix

package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestBuildOnATerminal expects one live line instead of a line for each document, and nothing of it in the end.
func TestBuildOnATerminal(t *testing.T) {
	s := newEmbeddings(t)
	w := s.shelf(t, "docs")
	const documents = 100
	for i := range documents {
		w.write(fmt.Sprintf("agent/docs/%03d.md", i), fmt.Sprintf("Document %d.", i))
	}
	w.write("agent/docs/broken.pdf", "no")
	reached, goOn, asked := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	s.set(func(http.ResponseWriter, *http.Request) bool {
		if asked.Add(1) == 9 { // the last batches, when the others are there
			close(reached)
			<-goOn
		}
		return false
	})
	screen := w.screen(nil, "rag", "build", "./agent")
	<-reached
	screen.await("… find: ")
	screen.await(" of 101 documents")
	close(goOn)
	screen.ends(0, "Saved RAG")
	out := screen.seen.String()
	if strings.Contains(out, "Load ") || !strings.Contains(out, "broken.pdf: a broken PDF") {
		t.Errorf("output\n%q", out)
	}
	if draws := strings.Count(out, "… find: "); draws > 2*documents/3 {
		t.Errorf("%d redraws\n%q", draws, out)
	}
	if i := strings.LastIndex(out, "… find: "); !strings.Contains(out[i:], "\r\x1b[J") {
		t.Errorf("the line stays\n%q", out[i:])
	}
}
