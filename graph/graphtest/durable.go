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
		a.append("t", 0, records("t", 0, 3)...)
		b.holds("t", records("t", 0, 3))
		b.append("t", 3, records("t", 3, 40)...)
		a.conflict("t", 3, records("t", 3, 1)...)
		a.holds("t", records("t", 0, 43))
		a.prune("t", 10)
		b.holds("t", records("t", 9, 34))
		a.append("t", 43, records("t", 43, 1)...)
		b.holds("t", records("t", 9, 35))
	}},
	{"OneWinner", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open(), open()}
		race(hs[0], []graph.Store{hs[0].s, hs[1].s, hs[2].s, hs[3].s})
	}},
	{"OthersMayDelete", durableDelete},
	{"DeletedIsNotMistakenForAnother", func(_ *testing.T, open func() *harness) {
		a, b := open(), open()
		a.append("x", 0, records("x", 0, 3)...)
		a.holds("x", records("x", 0, 3))
		b.prune("x", 4)
		b.append("y", 0, records("y", 0, 3)...)
		a.conflict("x", 3, records("x", 3, 1)...)
		a.conflict("x", 3, records("x", 3, 2)...)
		a.prune("x", 4)
		a.holds("x", nil)
		b.holds("y", records("y", 0, 3))
	}},
	{"OthersSeeLeases", durableLeases},
	{"WritersTakeTurns", func(_ *testing.T, open func() *harness) {
		hs := []*harness{open(), open(), open()}
		const rounds = 40
		hs[0].parallel(len(hs), func(ctx context.Context, i int) error {
			for k := range int64(rounds) {
				thread := fmt.Sprint("t", i)
				if err := hs[i].s.Append(ctx, thread, k, records(thread, k, 1)); err != nil {
					return err
				}
				if _, err := collect(hs[i].s.Threads(ctx, "")); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range hs {
			thread := fmt.Sprint("t", i)
			hs[0].holds(thread, records(thread, 0, rounds))
		}
	}},
}

func durableReopen(t *testing.T, open func() *harness) {
	h := open()
	h.append("a", 0, records("a", 0, 50)...)
	h.append("b", 0, records("b", 0, 5)...)
	h.append("c", 0, records("c", 0, 5)...)
	h.prune("b", 3)
	h.prune("c", 6)
	for range 3 {
		if err := h.s.Close(); err != nil {
			t.Fatal(err)
		}
		h = open()
		h.holds("a", records("a", 0, 50))
		h.holds("b", records("b", 2, 3))
		h.holds("c", nil)
	}
	h.conflict("a", 49, records("a", 49, 1)...)
	h.append("a", 50, records("a", 50, 1)...)
	h.append("c", 0, records("c", 0, 1)...)
	h.holds("a", records("a", 0, 51))
	h.holds("c", records("c", 0, 1))
}

// durableDelete deletes and creates a thread again while another store that has used it
// is open.
func durableDelete(_ *testing.T, open func() *harness) {
	a, b := open(), open()
	a.append("t", 0, records("old", 0, 5)...)
	b.prune("t", 6)
	a.holds("t", nil)
	a.conflict("t", 5, records("t", 5, 1)...)
	a.append("t", 0, records("t", 0, 2)...)
	b.holds("t", records("t", 0, 2))
	b.prune("t", 3)
	b.append("t", 0, records("new", 0, 5)...)
	a.holds("t", records("new", 0, 5))
	a.conflict("t", 2, records("t", 2, 1)...)
	a.append("t", 5, records("new", 5, 1)...)
	b.holds("t", records("new", 0, 6))
}
