package overview

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Items of a map are one branch for each status that many of them have; a few of a status, other nodes, and nodes whose names look like items stay.
func TestFoldItems(t *testing.T) {
	start := time.Unix(1000, 0)
	cost := 0.5
	var n Branch
	for i := 1; i <= 3000; i++ {
		began := start.Add(time.Duration(i) * time.Second)
		ended := began.Add(2 * time.Second)
		c := Branch{Path: fmt.Sprintf("each/one[%d]", i), Status: "done", Started: &began, Ended: &ended, Seconds: 2, Tools: 1, Usage: Usage{Calls: 1, Input: 10, Cost: &cost, Models: []string{"m"}}}
		switch {
		case i <= 2:
			c.Status, c.Error = "failed", fmt.Sprint("no ", i)
		case i <= 12:
			c.Status, c.Ended, c.Questions = "waiting", nil, []string{fmt.Sprintf("each/one[%d]/ask", i)}
		case i == 13:
			c.Children = []Branch{{Path: c.Path + "/deep", Usage: Usage{Calls: 2, Cost: &cost, Models: []string{"n", "m"}}}}
		}
		n.Children = append(n.Children, c)
	}
	n.Children = append(n.Children, Branch{Path: "each/other", Status: "done"}, Branch{Path: "each/odd[x]", Status: "done"})
	var got []string
	for _, c := range n.FoldItems() {
		u, price := c.Usage, 0.0
		if u.Cost != nil {
			price = *u.Cost
		}
		got = append(got, fmt.Sprintf("%s %s %q %v, %d calls of %v for %.1f, %d tools, %.0f s", c.Path, c.Status, c.Error, c.Questions, u.Calls, u.Models, price, c.Tools, c.Seconds))
	}
	want := []string{
		`each/one[1] failed "no 1" [], 1 calls of [m] for 0.5, 1 tools, 2 s`,
		`each/one[2] failed "no 2" [], 1 calls of [m] for 0.5, 1 tools, 2 s`,
		`each/one[10 items] waiting "" [each/one[3]/ask and 9 more], 10 calls of [m] for 5.0, 10 tools, 2 s`,
		`each/one[2988 items] done "" [], 2990 calls of [m n] for 1494.5, 2988 tools, 2989 s`,
		`each/other done "" [], 0 calls of [] for 0.0, 0 tools, 0 s`,
		`each/odd[x] done "" [], 0 calls of [] for 0.0, 0 tools, 0 s`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(n.Children) != 3002 || n.Children[2].Questions[0] != "each/one[3]/ask" {
		t.Error("the tree itself has changed")
	}
}
