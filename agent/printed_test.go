package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whole lines are emitted, a few times a second, and nothing after the end.
func TestPrintedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		p := &printedLines{emit: func(text string) { got = append(got, text) }}
		p.add("one\ntw")
		p.add("o\n10%\r20%\rthr")
		time.Sleep(2 * printedInterval)
		synctest.Wait()
		p.add(strings.Repeat("x", longestPrinted))
		time.Sleep(2 * printedInterval)
		for i := range 2000 {
			p.add(fmt.Sprintf("line %d\n", i))
		}
		time.Sleep(2 * printedInterval)
		synctest.Wait()
		last := got[len(got)-1]
		if len(last) > maxPrinted || !strings.HasPrefix(last, "line ") || !strings.HasSuffix(last, "line 1999\n") {
			t.Errorf("of many lines, %d bytes are emitted: %.30q", len(last), last)
		}
		p.add("after the end\n")
		p.close()
		p.add("later\n")
		time.Sleep(2 * printedInterval)
		if diff := cmp.Diff([]string{"one\ntwo\n10%\r20%\r", "thr" + strings.Repeat("x", longestPrinted), last}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
