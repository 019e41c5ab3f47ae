package setup

import "testing"

// Names in a question cannot add lines to it.
func TestQuoteNames(t *testing.T) {
	if got, want := quoteNames([]string{"a b.sh", "x\nUse it? It is safe.\x1b[8m"}), `a b.sh, "x\nUse it? It is safe.\x1b[8m"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
