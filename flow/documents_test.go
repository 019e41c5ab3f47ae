package flow

import (
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/tool"
)

// The tool that searches the documents is offered only where they are used.
func TestDocumentsThatAreNotUsedOfferNoSearch(t *testing.T) {
	offers := func(model string, h Host) bool {
		dir := filepath.Join(t.TempDir(), "agent")
		writeCaseFile(t, dir, "config.yaml", "name: a\ndocuments: [a.txt]\n"+model)
		writeCaseFile(t, dir, "a.txt", "hi")
		h.Model = "m:x"
		a, err := Load(dir, h)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(a.AvailableTools(), func(t tool.Tool) bool { return t.Name == "rag__query" })
	}
	if offers("", Host{}) {
		t.Error("no embedding model is set, and the search is offered")
	}
	confirm := func(string) (bool, error) { return true, nil }
	if !offers("embedding_model: keyword\n", Host{}) || !offers("", Host{Retrieval: Retrieval{Model: "m:e"}}) || !offers("", Host{Retrieval: Retrieval{Confirm: confirm}}) {
		t.Error("the documents are used, and the search is not offered")
	}
}
