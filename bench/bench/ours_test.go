//go:build !peers

package bench

import (
	"peers/floor"
	"peers/praddle"
	"peers/work"
)

// peers are raddle and the floor it is held against. The other engines are built
// with -tags peers: one of them registers a SQLite driver under the name of ours.
func peers() []work.Peer { return append(floor.Peers(), praddle.Peers()...) }
