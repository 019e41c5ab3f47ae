package graph_test

import (
	"testing"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// TestDecodeEntryOfBrokenRecords reads records whose heads and data end early: each is an error or a line, and none a panic.
func TestDecodeEntryOfBrokenRecords(t *testing.T) {
	for kind := range journal.Kind(40) {
		for _, head := range [][]byte{nil, {0}, {1}, {0xff}, {1, 2, 3}, make([]byte, 30)} {
			r := journal.Record{Seq: 1, Kind: kind, Head: head, Data: head}
			_, _ = history.DecodeEntry(r)
			_, _ = history.DecodeContent(r)
			_, _ = journal.RewriteRecord("t", r, func(text []byte) []byte { return text })
		}
	}
}
