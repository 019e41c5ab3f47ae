package graphtest

import (
	"context"
	"fmt"
	"testing"

	"raddle.dev/graph"
)

// TestDurable is the suite for stores that outlive their process and that several
// processes share. open opens the store at a place, an empty directory at first: calls
// with the same place return stores with the same content. A store that does not use
// files treats the place as a name. The suite closes what it opens.
func TestDurable(t *testing.T, open func(t *testing.T, place string) graph.Store) {
	for _, c := range durableCases {
		t.Run(c.name, func(t *testing.T) {
			place := t.TempDir()
			c.run(t, func() *harness { return newHarness(t, open(t, place)) })
		})
	}
	t.Run("SecretsStayOut", func(t *testing.T) {
		place := t.TempDir()
		durableSecrets(t, place, func() *harness { return newHarness(t, open(t, place)) })
	})
}

var durableCases = []struct {
	name string
	run  func(t *testing.T, open func() *harness)
}{
	{"ReopenFindsEverything", durableReopen},
	{"OthersSeeAtOnce", func(_ *testing.T, open func() *harness) {
		a, b := open(), open()
		a.mustAppend("t", 0, newRecords("t", 0, 3)...)
		b.expectRecords("t", newRecords("t", 0, 3))
		b.mustAppend("t", 3, newRecords("t", 3, 40)...)
		a.expectConflict("t", 3, newRecords("t", 3, 1)...)
		a.expectRecords("t", newRecords("t", 0, 43))
		a.mustPrune("t", 10)
		b.expectRecords("t", newRecords("t", 9, 34))
		a.mustAppend("t", 43, newRecords("t", 43, 1)...)
		b.expectRecords("t", newRecords("t", 9, 35))
	}},
	{"OneWinner", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open(), open()}
		raceAppends(hs[0], []graph.Store{hs[0].s, hs[1].s, hs[2].s, hs[3].s})
	}},
	{"OthersMayDelete", durableDelete},
	{"DeletedIsNotMistakenForAnother", func(_ *testing.T, open func() *harness) {
		a, b := open(), open()
		a.mustAppend("x", 0, newRecords("x", 0, 3)...)
		a.expectRecords("x", newRecords("x", 0, 3))
		b.mustPrune("x", 4)
		b.mustAppend("y", 0, newRecords("y", 0, 3)...)
		a.expectConflict("x", 3, newRecords("x", 3, 1)...)
		a.expectConflict("x", 3, newRecords("x", 3, 2)...)
		a.mustPrune("x", 4)
		a.expectRecords("x", nil)
		b.expectRecords("y", newRecords("y", 0, 3))
	}},
	{"OthersSeeLeases", durableLeases},
	{"WritersTakeTurns", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open()}
		const rounds = 40
		hs[0].runParallel(len(hs), func(ctx context.Context, i int) error {
			for k := range int64(rounds) {
				thread := fmt.Sprint("t", i)
				if err := hs[i].s.Append(ctx, thread, k, newRecords(thread, k, 1)); err != nil {
					return err
				}
				if _, err := collectAll(hs[i].s.Threads(ctx, "")); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range hs {
			thread := fmt.Sprint("t", i)
			hs[0].expectRecords(thread, newRecords(thread, 0, rounds))
		}
	}},
}

func durableReopen(t *testing.T, open func() *harness) {
	h := open()
	h.mustAppend("a", 0, newRecords("a", 0, 50)...)
	h.mustAppend("b", 0, newRecords("b", 0, 5)...)
	h.mustAppend("c", 0, newRecords("c", 0, 5)...)
	h.mustPrune("b", 3)
	h.mustPrune("c", 6)
	for range 3 {
		if err := h.s.Close(); err != nil {
			t.Fatal(err)
		}
		h = open()
		h.expectRecords("a", newRecords("a", 0, 50))
		h.expectRecords("b", newRecords("b", 2, 3))
		h.expectRecords("c", nil)
	}
	h.expectConflict("a", 49, newRecords("a", 49, 1)...)
	h.mustAppend("a", 50, newRecords("a", 50, 1)...)
	h.mustAppend("c", 0, newRecords("c", 0, 1)...)
	h.expectRecords("a", newRecords("a", 0, 51))
	h.expectRecords("c", newRecords("c", 0, 1))
}

// durableDelete deletes and creates a thread again while another store that has used it
// is open.
func durableDelete(_ *testing.T, open func() *harness) {
	a, b := open(), open()
	a.mustAppend("t", 0, newRecords("old", 0, 5)...)
	b.mustPrune("t", 6)
	a.expectRecords("t", nil)
	a.expectConflict("t", 5, newRecords("t", 5, 1)...)
	a.mustAppend("t", 0, newRecords("t", 0, 2)...)
	b.expectRecords("t", newRecords("t", 0, 2))
	b.mustPrune("t", 3)
	b.mustAppend("t", 0, newRecords("new", 0, 5)...)
	a.expectRecords("t", newRecords("new", 0, 5))
	a.expectConflict("t", 2, newRecords("t", 2, 1)...)
	a.mustAppend("t", 5, newRecords("new", 5, 1)...)
	b.expectRecords("t", newRecords("new", 0, 6))
}
