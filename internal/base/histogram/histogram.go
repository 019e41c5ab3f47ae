// Package histogram counts how long things took, and writes the counts in the text format of Prometheus.
package histogram

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// bounds are the upper ends of the buckets, in ascending order. What took longer than the last is in one more.
var bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// A Histogram has counted nothing in its zero value. It is safe for concurrent use.
type Histogram struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// AddTime counts something that took so long; less than 0 is 0.
func (h *Histogram) AddTime(took time.Duration) {
	took = max(took, 0)
	at, _ := slices.BinarySearch(bounds[:], took)
	h.counts[at].Add(1)
	h.sum.Add(int64(took))
}

// WriteText writes the counts of a metric with a name. labels is empty, or pairs such as `model="x"`.
func (h *Histogram) WriteText(w io.Writer, name, labels string) {
	comma := ""
	braced := ""
	if labels != "" {
		comma = ","
		braced = "{" + labels + "}"
	}
	n := int64(0)
	for i, bound := range bounds {
		n += h.counts[i].Load()
		fmt.Fprintf(w, "%s_bucket{%s%sle=\"%g\"} %d\n", name, labels, comma, bound.Seconds(), n)
	}
	n += h.counts[len(bounds)].Load()
	fmt.Fprintf(w, "%s_bucket{%s%sle=\"+Inf\"} %d\n", name, labels, comma, n)
	fmt.Fprintf(w, "%s_sum%s %g\n%s_count%s %d\n", name, braced, time.Duration(h.sum.Load()).Seconds(), name, braced, n)
}

// mostValues is how many values of its label a Family tells apart; Others is the value of all further ones.
const (
	mostValues = 50
	Others     = "other"
)

// A Family has a histogram for each value of one label. The zero Family has none. It is safe for concurrent use.
type Family struct {
	mu      sync.Mutex
	byValue map[string]*Histogram
}

// AddTime counts something with a value of the label that took so long.
func (f *Family) AddTime(value string, took time.Duration) {
	f.mu.Lock()
	h := f.byValue[value]
	if h == nil && len(f.byValue) >= mostValues {
		value = Others
		h = f.byValue[value]
	}
	if h == nil {
		h = &Histogram{}
		if f.byValue == nil {
			f.byValue = map[string]*Histogram{}
		}
		f.byValue[value] = h
	}
	f.mu.Unlock()
	h.AddTime(took)
}

// WriteText writes the counts of a metric with a name and a label, sorted by the values of the label.
func (f *Family) WriteText(w io.Writer, name, label string) {
	f.mu.Lock()
	all := maps.Clone(f.byValue)
	f.mu.Unlock()
	for _, value := range slices.Sorted(maps.Keys(all)) {
		all[value].WriteText(w, name, fmt.Sprintf("%s=%q", label, value))
	}
}
