//go:build peers

package bench

import (
	"peers/floor"
	"peers/padk"
	"peers/peino"
	"peers/ptrpc"
	"peers/work"
)

// peers are the other engines and the floor they are held against.
func peers() []work.Peer {
	all := append(floor.Peers(), ptrpc.Peers()...)
	all = append(all, peino.Peers()...)
	return append(all, padk.Peers()...)
}
