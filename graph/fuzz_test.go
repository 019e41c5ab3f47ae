package graph_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// pack and unpack are a journal as one text for the fuzzer: records that do not
// fit are left out.
func pack(recs []graph.Record) (b []byte) {
	for _, r := range recs {
		b = append(b, byte(r.Kind))
		b = binary.AppendUvarint(b, uint64(r.Time))
		for _, part := range [][]byte{r.Head, r.Data} {
			b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
		}
	}
	return b
}

func unpack(b []byte) (recs []graph.Record) {
	part := func() []byte {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			b = nil
			return nil
		}
		p := b[k : k+int(n)]
		b = b[k+int(n):]
		return p
	}
	for len(b) > 0 {
		r := graph.Record{Kind: graph.Kind(b[0])}
		at, k := binary.Uvarint(b[1:])
		if k <= 0 {
			break
		}
		b = b[1+k:]
		r.Time = int64(at)
		r.Head, r.Data = part(), part()
		recs = append(recs, r)
	}
	return recs
}

// realJournals are journals with every kind of record, cut in different places.
func realJournals(t testing.TB) (all [][]graph.Record) {
	e := newEverything(t)
	mem := graph.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}
	e.finish(t, r, true)
	recs := journalOf(t, mem, "t")
	for n := 1; n < len(recs); n += 6 {
		all = append(all, recs[:n])
	}
	fork(t, mem, "t", int64(len(recs)/2), "fork")
	forked := journalOf(t, mem, "fork")
	if _, err := graph.Prune(t.Context(), mem, "t", graph.Keep{}); err != nil {
		t.Fatal(err)
	}
	return append(all, recs, forked, journalOf(t, mem, "t"), faultyJournal(t), chosenJournal(t, e.g, recs))
}

// faultyJournal is one of effects that fail and of steps that cannot be applied.
func faultyJournal(t testing.TB) []graph.Record {
	tries := 0
	pay := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		n, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(context.Context) (int, error) {
			if tries++; tries < 3 {
				return 0, errors.New("not yet")
			}
			return tries, nil
		})
		return graph.Put(only.Reset(fmt.Sprint(n))), err
	}
	g := compile(t, graph.Def{Name: "faulty", Keys: all, Start: []string{"a", "b"}, Nodes: []graph.Node{{Name: "a", Run: pay, Retry: graph.Retry{Attempts: 2}}, {Name: "b", Run: writes(only.Reset("b"))}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
	r := kept(g)
	_, _ = start(t, r)
	_, _ = resume(t, r)
	return journalOf(t, r.Store, thread)
}

// chosenJournal is a part of one, with an edit that says what runs next.
func chosenJournal(t testing.TB, g *graph.Graph, recs []graph.Record) []graph.Record {
	mem := graph.NewMemory()
	if err := mem.Append(t.Context(), "t", 0, recs[:len(recs)/2]); err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g, Store: mem}).EditNext(t.Context(), "t", g.Structure().Start); err != nil {
		t.Fatal(err)
	}
	return journalOf(t, mem, "t")
}

// The journals that damage is tried on have every kind of record.
func TestRealJournalsHaveEveryKind(t *testing.T) {
	found := map[graph.Kind]bool{}
	for _, recs := range realJournals(t) {
		for _, r := range recs {
			found[r.Kind] = true
		}
	}
	for k := graph.KindStart; !strings.Contains(k.String(), "unknown"); k++ {
		if !found[k] {
			t.Errorf("none of them has a %s record", k)
		}
	}
}

// judge gives a journal to everything that reads one. Errors are welcome; panics,
// endless work and memory beyond all proportion are not.
func judge(t *testing.T, g *graph.Graph, recs []graph.Record) {
	ctx, size := t.Context(), 0
	for _, r := range recs {
		size += len(r.Head) + len(r.Data) + 256
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	mem := graph.NewMemory()
	if err := mem.Append(ctx, "t", 0, recs); err != nil {
		t.Fatal(err)
	}
	for _, err := range graph.History(ctx, mem, "t") {
		if err != nil {
			break
		}
	}
	for info := range mem.Threads(ctx, "") {
		_, _ = graph.Describe(info)
	}
	for _, err := range graph.Checkpoints(ctx, mem, "t") {
		if err != nil {
			break
		}
	}
	half := int64(len(recs)/2 + 1)
	_, _ = graph.Blame(ctx, mem, "t", "notes")
	_, _ = graph.Diff(ctx, mem, graph.Point{Thread: "t", Seq: half}, graph.Point{Thread: "t"})
	_ = graph.Fork(ctx, mem, "t", half, "fork")
	_, _ = graph.Lineage(ctx, mem, "")
	var answers []graph.Answer
	if s, err := graph.Inspect(ctx, mem, "t", 0); err == nil {
		for _, q := range s.Questions {
			answers = append(answers, answer(q))
		}
	}
	_, _ = graph.Inspect(ctx, mem, "t", half)
	for _, as := range [][]graph.Answer{nil, answers} {
		r := &graph.Runner{Graph: g, Store: &dying{Store: mem, left: 200}, Executor: sequential{}}
		if res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: as, AcceptChanges: true}); err == nil && res.Status == 0 {
			t.Errorf("no error, and status %v", res.Status)
		}
	}
	_, _ = (&graph.Runner{Graph: g, Store: &dying{Store: mem, left: 200}, Executor: sequential{}}).Invoke(ctx, graph.Input{Thread: "t"})
	runtime.ReadMemStats(&is)
	if used := is.TotalAlloc - was.TotalAlloc; used > 64<<20+uint64(2000*size) {
		t.Errorf("%d MB were allocated for a journal of %d bytes", used>>20, size)
	}
}

// mangle damages a journal in one of the ways that disks, programs and people do.
func mangle(r *rand.Rand, recs []graph.Record) []graph.Record {
	recs = slices.Clone(recs)
	i := r.IntN(len(recs))
	rec := &recs[i]
	rec.Head, rec.Data = bytes.Clone(rec.Head), bytes.Clone(rec.Data)
	part := &rec.Head
	if r.IntN(2) == 0 && len(rec.Data) > 0 {
		part = &rec.Data
	}
	at := r.IntN(len(*part) + 1)
	switch r.IntN(9) {
	case 0:
		*part = (*part)[:at]
	case 1:
		*part = append(*part, (*part)[at:]...)
	case 2, 3, 4:
		if at < len(*part) {
			(*part)[at] = byte(r.Uint32())
		}
	case 5: // a large number
		*part = slices.Insert(*part, at, binary.AppendUvarint(nil, r.Uint64()>>r.IntN(64))...)
	case 6:
		rec.Kind = graph.Kind(r.IntN(18))
	case 7:
		recs = append(slices.Clone(recs[:i]), recs[min(i+1+r.IntN(3), len(recs)):]...)
	case 8:
		j := r.IntN(len(recs))
		recs[i], recs[j] = recs[j], recs[i]
	}
	return recs
}

// A damaged journal is an error, or is read as something else that is well formed.
func TestDamagedJournalsAreErrors(t *testing.T) {
	e := newEverything(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, recs := range realJournals(t) {
		for range 40 {
			bad := recs
			for range 1 + r.IntN(3) {
				if bad = mangle(r, bad); len(bad) == 0 {
					break
				}
			}
			judge(t, e.g, bad)
		}
	}
}

// The name of no node is END, whatever a journal says.
func TestAJournalThatWouldRunEND(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"AND"}, Nodes: []graph.Node{{Name: "AND", Run: asks(nil)}}, Edges: []graph.Edge{edge("AND", graph.End)}})
	r := kept(g)
	_, _ = start(t, r)
	recs := journalOf(t, r.Store, thread)
	for i := range recs {
		recs[i].Head, recs[i].Data = bytes.ReplaceAll(recs[i].Head, []byte("AND"), []byte("END")), bytes.ReplaceAll(recs[i].Data, []byte("AND"), []byte("END"))
	}
	r.Store = graph.NewMemory()
	if err := r.Store.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r); err == nil || !strings.Contains(err.Error(), `"END"`) {
		t.Error(err)
	}
}

// A list that claims to be long takes no memory for it, however deep it lies.
func TestADamagedValueTakesNoMemory(t *testing.T) {
	const size = 50_000
	bag := graph.Dyn("bag")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	length := binary.AppendUvarint(nil, size)
	for _, nested := range []string{"l\x80\xa0\x01", "m\x80\xa0\x01\x00"} {
		r := kept(g)
		res, err := start(t, r, bag.Set(strings.Repeat(nested, size/4+1)[:size]))
		is(t, graph.Waiting, res, err)
		recs := journalOf(t, r.Store, thread)
		text := append([]byte{'s'}, length...)
		i := bytes.Index(recs[0].Data, text)
		if i < 0 {
			t.Fatal("the value is not where it was thought to be")
		}
		recs[0].Data[i] = 'l' // the text becomes a list of lists of lists
		judge(t, g, recs)
	}
}

func FuzzJournal(f *testing.F) {
	for _, recs := range realJournals(f) {
		f.Add(pack(recs))
	}
	e := newEverything(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if recs := unpack(b); len(b) < 1<<16 && len(recs) > 0 {
			judge(t, e.g, recs)
		}
	})
}
