package graph

import (
	"cmp"
	"time"
)

// Defaults are values of fields of nodes. A node that sets a field has its own; Retry.Attempts of 1 is no retry, and a
// negative Timeout no limit.
type Defaults struct {
	// Retry is for nodes without a child: the failure of another has been retried inside the child.
	Retry Retry

	// Timeout is the longest time of one attempt.
	Timeout time.Duration

	// OnError names the node that runs after a failure of any other; that of Finally has none.
	OnError string

	// Cache lets nodes without a child be skipped.
	Cache *CachePolicy
}

// applyTo sets the fields that a node of a graph does not set.
func (d *Defaults) applyTo(n *Node, finally string) {
	if n.Graph == nil && n.Children == nil {
		if n.Retry.Attempts == 0 {
			n.Retry = d.Retry
		}
		n.Cache = cmp.Or(n.Cache, d.Cache)
	}
	n.Timeout = max(0, cmp.Or(n.Timeout, d.Timeout))
	if n.OnError == "" && n.Name != d.OnError && n.Name != finally {
		n.OnError = d.OnError
	}
}
