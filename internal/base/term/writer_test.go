//go:build unix

package term

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// writeTo returns what arrives at the other end of a stream: of a pseudo terminal, or of a pipe.
func writeTo(t *testing.T, terminal bool, texts ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if terminal {
		r, w, err = pty.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(r) // a terminal ends with an error
		read <- string(all)
	}()
	out := NewWriter(w)
	if out.IsTerminal() != terminal {
		t.Fatalf("IsTerminal: %v", out.IsTerminal())
	}
	for _, text := range texts {
		if n, err := out.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write: %d %v", n, err)
		}
	}
	_ = w.Close()
	got := <-read
	_ = r.Close()
	if terminal {
		got = strings.ReplaceAll(got, "\r\n", "\n") // added by the terminal driver
	}
	return got
}

// A terminal gets clean text, and a pipe every byte.
func TestWriter(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			if got := writeTo(t, true, test.text); got != test.clean {
				t.Errorf("a terminal gets %q, want %q", got, test.clean)
			}
			if got := writeTo(t, false, test.text); got != test.text {
				t.Errorf("a pipe gets %q, want %q", got, test.text)
			}
		})
	}
}

// What raddle paints arrives; imitations do not.
func TestOwnSequences(t *testing.T) {
	text := PaintText(Red, "a\x1b[32mb") + RewindRows(3) + RewindRows(1) + "\x1b<GUESS:[31m>c" + PaintText(Bold, "") + PaintText(Dim, "d"+PaintText(Cyan, "e"))
	const painted = "\x1b[31mab\x1b[0m"
	if got, want := writeTo(t, true, text), painted+"\r\x1b[2A\x1b[J"+"\r\x1b[J"+"GUESS:[31m>c"+"\x1b[2md\x1b[36me\x1b[0m\x1b[0m"; got != want {
		t.Errorf("a terminal gets %q, want %q", got, want)
	}
	if got, want := writeTo(t, false, text), "\x1b[31ma\x1b[32mb\x1b[0m"+"\x1b<GUESS:[31m>c"+"\x1b[2md\x1b[36me\x1b[0m\x1b[0m"; got != want {
		t.Errorf("a pipe gets %q, want %q", got, want)
	}
	if got := StripMarks(text); got != "a\x1b[32mb\x1b<GUESS:[31m>cde" {
		t.Errorf("Plain: %q", got)
	}
	own := []string{`'\r'`, "CSI 31m", "CSI 0m", "CSI 2m", "CSI 36m", "CSI 2A", "CSI J"}
	for n := range len(text) { // a text may be cut anywhere
		for _, found := range newJudge().read(renderMarks(text[:n], CleanText, expandMark)) {
			if !slices.Contains(own, found) {
				t.Errorf("of %q a terminal sees %s", text[:n], found)
			}
		}
	}
}

// Of anything that is written, a terminal gets only text and the sequences that were painted.
func FuzzWriter(f *testing.F) {
	for _, test := range hostile {
		f.Add(test.text, "x")
		f.Add("x", test.text)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		text := a + PaintText(Red, b+"-") + a
		got := renderMarks(text, CleanText, expandMark)
		if want := CleanText(a) + "\x1b[31m" + CleanText(b+"-") + "\x1b[0m" + CleanText(a); got != want {
			t.Errorf("of %q a terminal gets %q, want %q", text, got, want)
		}
		if found := newJudge().read(got); !slices.Equal(found, []string{"CSI 31m", "CSI 0m"}) {
			t.Errorf("of %q a terminal sees %q", text, found)
		}
		if got := renderMarks(text, func(s string) string { return s }, expandStyle); got != a+"\x1b[31m"+b+"-\x1b[0m"+a {
			t.Errorf("of %q a pipe gets %q", text, got)
		}
	})
}
