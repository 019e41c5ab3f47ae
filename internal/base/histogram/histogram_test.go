package histogram

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, took := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, 40 * time.Second, time.Hour} {
		h.AddTime(took)
	}
	var b strings.Builder
	h.WriteText(&b, "x_seconds", "")
	for _, want := range []string{
		`x_seconds_bucket{le="0.001"} 3`, `x_seconds_bucket{le="0.0025"} 4`, `x_seconds_bucket{le="30"} 4`, `x_seconds_bucket{le="60"} 5`,
		`x_seconds_bucket{le="300"} 5`, `x_seconds_bucket{le="+Inf"} 6`, "x_seconds_sum 3640.002000001", "x_seconds_count 6",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
}

// A family has no more histograms than it may have, whatever the values are.
func TestFamily(t *testing.T) {
	var f Family
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 200 {
				f.AddTime(fmt.Sprint("m", i+n), time.Second)
			}
		})
	}
	wg.Wait()
	var b strings.Builder
	f.WriteText(&b, "x", "model")
	text := b.String()
	if n := strings.Count(text, "x_count{"); n != mostValues+1 {
		t.Errorf("there are %d histograms", n)
	}
	if !strings.Contains(text, `",le="0.5"} 0`) || !strings.Contains(text, `x_count{model="other"} `) {
		t.Error(text[:1000])
	}
}
