package overview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// foldedFrom is how many items of one map with the same status are shown as one branch.
const foldedFrom = 6

// FoldItems returns the children of a branch for people: items of one map that have the same status are one branch if
// they are many, in the place of the first one, with what all of them have used and the first question and error of
// them. It does not change n.
func (n *Branch) FoldItems() []*Branch {
	type group struct{ node, status string }
	groups := map[group][]*Branch{}
	groupOf := func(c *Branch) group { return group{itemNode(c.Path), c.Status} }
	for i := range n.Children {
		c := &n.Children[i]
		groups[groupOf(c)] = append(groups[groupOf(c)], c)
	}
	var list []*Branch
	for i := range n.Children {
		c := &n.Children[i]
		items := groups[groupOf(c)]
		switch {
		case itemNode(c.Path) == "" || len(items) < foldedFrom:
			list = append(list, c)
		case items[0] == c:
			list = append(list, foldBranches(items))
		}
	}
	return list
}

// itemNode returns the path of the node whose item a path is: "fan/each" of "fan/each[2]"; "" if it is no item.
func itemNode(path string) string {
	begin := strings.LastIndexByte(path, '[')
	if begin < 0 || !strings.HasSuffix(path, "]") {
		return ""
	}
	if _, err := strconv.Atoi(path[begin+1 : len(path)-1]); err != nil {
		return ""
	}
	return path[:begin]
}

// foldBranches returns one branch in place of several of the same status. Its children are left out.
func foldBranches(items []*Branch) *Branch {
	sum := *items[0]
	sum.Path = fmt.Sprintf("%s[%d items]", itemNode(sum.Path), len(items))
	sum.Usage = Usage{}
	sum.Tools = 0
	sum.Failed = 0
	sum.Children = nil
	sum.Questions = nil
	ended := sum.Ended
	for _, c := range items {
		sum.Usage.add(c.sumUsage())
		sum.Tools += c.Tools
		sum.Failed += c.Failed
		if sum.Error == "" {
			sum.Error = c.Error
		}
		if len(sum.Questions) == 0 && len(c.Questions) > 0 {
			sum.Questions = []string{c.Questions[0]}
		}
		if c.Started != nil && (sum.Started == nil || c.Started.Before(*sum.Started)) {
			sum.Started = c.Started
		}
		if c.Ended != nil && (ended == nil || c.Ended.After(*ended)) {
			ended = c.Ended
		}
		sum.Seconds = max(sum.Seconds, c.Seconds)
	}
	if sum.Ended = ended; ended != nil && sum.Started != nil {
		sum.Seconds = ended.Sub(*sum.Started).Seconds()
	}
	if more := len(items) - 1; len(sum.Questions) > 0 && more > 0 {
		sum.Questions[0] += fmt.Sprintf(" and %d more", more)
	}
	return &sum
}

// sumUsage returns what a branch and everything below it have used.
func (n *Branch) sumUsage() Usage {
	u := Usage{}
	u.add(n.Usage)
	for i := range n.Children {
		u.add(n.Children[i].sumUsage())
	}
	return u
}

// add adds what others have used.
func (u *Usage) add(other Usage) {
	u.Calls += other.Calls
	u.Input += other.Input
	u.Output += other.Output
	u.Cached += other.Cached
	u.Written += other.Written
	u.Reasoning += other.Reasoning
	u.Unpriced += other.Unpriced
	if other.Cost != nil {
		cost := *other.Cost
		if u.Cost != nil {
			cost += *u.Cost
		}
		u.Cost = &cost
	}
	for _, m := range other.Models {
		if !slices.Contains(u.Models, m) {
			u.Models = append(u.Models, m)
		}
	}
}
