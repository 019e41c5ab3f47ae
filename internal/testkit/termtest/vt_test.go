package termtest

import "testing"

// A sequence about keys is not one about style.
func TestKeyModes(t *testing.T) {
	r := &Recording{Cols: 10, Rows: 1}
	r.AddFrame("\x1b[>4;2mplain\x1b[>4m", 1)
	want := &Recording{Cols: 10, Rows: 1}
	want.AddFrame("plain", 1)
	if r.SVG() != want.SVG() {
		t.Errorf("the picture has styles:\n%s", r.SVG())
	}
}
