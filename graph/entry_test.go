package graph_test

import (
	"testing"

	"raddle.dev/graph"
)

// TestDecodeEntryOfBrokenRecords reads records whose heads and data end early: each is an error or a line, and none a panic.
func TestDecodeEntryOfBrokenRecords(t *testing.T) {
	for kind := range graph.Kind(40) {
		for _, head := range [][]byte{nil, {0}, {1}, {0xff}, {1, 2, 3}, make([]byte, 30)} {
			r := graph.Record{Seq: 1, Kind: kind, Head: head, Data: head}
			_, _ = graph.DecodeEntry(r)
			_, _ = graph.DecodeContent(r)
			_, _ = graph.RewriteRecord("t", r, func(text []byte) []byte { return text })
		}
	}
}
