package graph

import (
	"context"
	"errors"
	"testing"
	"time"

	"raddle.dev/graph/journal"
)

func TestWhichGraphsEndTheContextOfANode(t *testing.T) {
	t.Parallel()
	ends := &Graph{ends: true}
	run := Node{Run: nothing}
	for name, c := range map[string]struct {
		def   Def
		nodes []Node
		want  bool
	}{
		"nothing does":                {def: Def{}, nodes: []Node{run}, want: false},
		"a time for the graph":        {def: Def{Timeout: 1}, nodes: []Node{run}, want: true},
		"a time for each step":        {def: Def{StepTimeout: 1}, nodes: []Node{run}, want: true},
		"the first failure":           {def: Def{FailFast: true}, nodes: []Node{run}, want: true},
		"a time for a node":           {nodes: []Node{run, {Timeout: 1}}, want: true},
		"named children":              {nodes: []Node{run, {Run: nothing, Children: map[string]ChildGraph{}}}, want: true},
		"a child that a node calls":   {nodes: []Node{{Run: nothing, Graph: &Graph{}}}, want: true},
		"a child alone":               {nodes: []Node{{Graph: &Graph{}}}, want: false},
		"a child alone that does so":  {nodes: []Node{{Graph: ends}}, want: true},
		"a node without a child, too": {nodes: []Node{{}}, want: false},
	} {
		g := &Graph{def: c.def}
		for _, n := range c.nodes {
			g.nodes = append(g.nodes, compiledNode{Node: n})
		}
		if got := canEndNodeContext(g); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTextsOfErrors(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := journal.Lease{Owner: "me", Until: until}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&ChangedError{Thread: "t", Was: "a", Is: "b"}, "thread t was started with graph a, which is now b; set AcceptChanges to continue with what there is now"},
		{&ChangedError{Thread: "t", Was: "a", Is: "b", Missing: []string{"n"}}, "thread t was started with graph a, which is now b; it no longer has n"},
		{&ChangedError{Thread: "t", Was: "a", Is: "b", Missing: []string{"n", "m"}}, "thread t was started with graph a, which is now b; it no longer has n, m"},
		{&ChangedError{Thread: "t", Was: "a", Child: "n/x"}, "thread t: its child n/x was started with graph a, which no longer exists; set AcceptChanges to continue with what there is now"},
		{&BusyError{Thread: "t", Run: "r", Status: Paused}, "thread t has an unfinished run r (paused): resume it"},
		{&BusyError{Thread: "t", Run: "r", Lease: lease}, "thread t: " + lease.String() + " drives run r, with a lease until 2026-01-02T03:04:05Z: wait for it, or take the run over (Resume.Takeover)"},
		{&BusyError{Thread: "t", Lease: journal.Lease{Owner: "me"}}, "thread t: " + journal.Lease{Owner: "me"}.String() + " drives a run: wait for it, or take the run over (Resume.Takeover)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	ended := errors.New("ended")
	failed := errors.New("failed")
	if list := (&EndingError{Err: ended}).Unwrap(); len(list) != 1 || list[0] != ended {
		t.Errorf("%v", list)
	}
	if list := (&EndingError{Err: ended, Failure: failed}).Unwrap(); len(list) != 2 || list[1] != failed {
		t.Errorf("%v", list)
	}
}

// nothing is a node that does nothing.
func nothing(context.Context, State) (Update, error) { return Update{}, nil }

func TestWhatCanEndTheContextsOfADrive(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	defer end()
	pause := make(chan struct{})
	for name, c := range map[string]struct {
		ctx  context.Context
		d    *drive
		ends bool
		want bool
	}{
		"nothing":                    {ctx: context.Background(), d: &drive{}},
		"its context":                {ctx: ended, d: &drive{}, want: true},
		"a pause without a time":     {ctx: context.Background(), d: &drive{pause: pause}},
		"a time without a pause":     {ctx: context.Background(), d: &drive{grace: 1}},
		"a pause with a time":        {ctx: context.Background(), d: &drive{pause: pause, grace: 1}, want: true},
		"a graph that ends contexts": {ctx: context.Background(), d: &drive{}, ends: true, want: true},
	} {
		c.d.settings = &Runner{Graph: &Graph{ends: c.ends}}
		if got := c.d.hasEndableContext(c.ctx); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A codec that writes into what it reads does not change what the journal holds.
func TestACodecReadsACopy(t *testing.T) {
	t.Parallel()
	k := Last[string]("k").WithCodec(Codec[string]{
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func(b []byte) (string, error) {
			text := string(b)
			clear(b)
			return text, nil
		},
	})
	stored := []byte("text")
	for range 2 {
		if v, err := k.def().decodeStored(stored); err != nil || v != "text" {
			t.Fatalf("%q, %v", v, err)
		}
	}
}
