package proc

import (
	"fmt"
	"strings"
	"testing"
)

func TestCapture(t *testing.T) {
	const digits = "0123456789abcdefghij"
	cases := []struct {
		limit, write int
		want         string
		dropped      int64
	}{
		{limit: 20, write: 20, want: digits},
		{limit: 100, write: 20, want: digits},
		{limit: 20, write: 0, want: ""},
		{limit: 8, write: 20, want: "0123\n[... 12 bytes left out ...]\nghij", dropped: 12},
		{limit: 7, write: 20, want: "012\n[... 13 bytes left out ...]\nghij", dropped: 13},
		{limit: 7, write: 8, want: "012\n[... 1 bytes left out ...]\n4567", dropped: 1},
		{limit: 1, write: 20, want: "\n[... 19 bytes left out ...]\nj", dropped: 19},
	}
	for _, c := range cases {
		for _, chunk := range []int{1, 3, 5, 20} {
			t.Run(fmt.Sprintf("limit %d, %d bytes by %d", c.limit, c.write, chunk), func(t *testing.T) {
				kept := Capture{limit: c.limit}
				for rest := digits[:c.write]; rest != ""; {
					n := min(chunk, len(rest))
					if k, err := kept.Write([]byte(rest[:n])); k != n || err != nil {
						t.Fatalf("Write = %d, %v, want %d, nil", k, err, n)
					}
					rest = rest[n:]
				}
				if got := string(kept.KeptBytes()); got != c.want {
					t.Errorf("kept %q, want %q", got, c.want)
				}
				if got := kept.CountDropped(); got != c.dropped {
					t.Errorf("dropped %d, want %d", got, c.dropped)
				}
			})
		}
	}
}

func TestCaptureMemoryGrowsWithTheOutput(t *testing.T) {
	kept := Capture{limit: DefaultLimit}
	kept.Write([]byte(strings.Repeat("x", 1000)))
	if got := cap(kept.head) + cap(kept.tail); got > 10_000 {
		t.Errorf("%d bytes of memory for 1000 bytes of output", got)
	}
}
