package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// However often the metrics are read, listing the store takes a tenth of the time at most.
func TestCountRunsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts runCounts
		lists := 0
		slow := func(context.Context) (map[string]int, error) {
			lists++
			time.Sleep(2 * time.Second)
			return map[string]int{"done": lists}, nil
		}
		for range 100 {
			byStatus, took, err := counts.countRuns(t.Context(), slow)
			if err != nil || took != 2*time.Second || byStatus["done"] != lists {
				t.Fatalf("%v, %s, %v after %d lists", byStatus, took, err, lists)
			}
			time.Sleep(time.Second)
		}
		if lists != 6 {
			t.Errorf("the store was listed %d times in 112 seconds", lists)
		}
	})
}

// A count that failed is not used again.
func TestCountRunsAfterError(t *testing.T) {
	var counts runCounts
	failing := func(context.Context) (map[string]int, error) { return nil, context.Canceled }
	if _, _, err := counts.countRuns(t.Context(), failing); err == nil {
		t.Error("no error")
	}
	list := func(context.Context) (map[string]int, error) { return map[string]int{"done": 1}, nil }
	if byStatus, _, err := counts.countRuns(t.Context(), list); err != nil || byStatus["done"] != 1 {
		t.Errorf("%v %v", byStatus, err)
	}
}
