package graph_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// This file has the examples of events, questions, threads and storage, and of what a key
// keeps out of its journal; see example_from_test.go.

// steps is a graph of nodes in a chain, each of which adds its name to story.
func steps(names ...string) *graph.Graph {
	d := graph.Def{Name: "steps", Keys: []graph.AnyKey{story}, Start: names[:1]}
	for i, name := range names {
		next := append(names, graph.End)[i+1]
		d.Nodes, d.Edges = append(d.Nodes, aLine(name, story, name)), append(d.Edges, anEdge(name, next))
	}
	return sound(d)
}

// questioning is a graph of one node that asks and keeps the answer.
func questioning(q graph.Ask) *graph.Graph {
	return sound(graph.Def{
		Name: "asking",
		Keys: []graph.AnyKey{story},
		Nodes: []graph.Node{aNode("ask", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			a, err := graph.Interrupt[string](ctx, q)
			return graph.Put(story.Set([]string{a})), err
		})},
		Edges: []graph.Edge{anEdge("ask", graph.End)},
		Start: []string{"ask"},
	})
}

// Topics says which events a run builds. The end is always told.
func Example_topics() {
	r := &graph.Runner{Graph: steps("write", "print")}
	for ev, err := range r.Run(context.Background(), graph.Input{Topics: graph.TopicStep | graph.TopicTask}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s %T\n", ev.Seq, ev.Task, ev.Body)
	}
	// Output:
	// 1 0.write.0 graph.TaskStarted
	// 2 0.write.0 graph.TaskDone
	// 3  graph.StepCommitted
	// 4 1.print.0 graph.TaskStarted
	// 5 1.print.0 graph.TaskDone
	// 6  graph.StepCommitted
	// 7  graph.RunEnded
}

// The phases of a step have a topic of their own, which AllTopics leaves out.
func Example_phases() {
	r := &graph.Runner{Graph: steps("write")}
	for ev, err := range r.Run(context.Background(), graph.Input{Topics: graph.TopicPhase | graph.TopicTask}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch b := ev.Body.(type) {
		case graph.PhaseStarted:
			fmt.Println(ev.Step, b.Phase, b.Nodes)
		case graph.TaskDone:
			fmt.Println(ev.Step, ev.Node, "is done")
		}
	}
	// Output:
	// 0 planning [write]
	// 0 execution [write]
	// 0 write is done
	// 0 update [write]
}

// A node sends values of any type, and how far it is, to the readers of its events.
func Example_progress() {
	g := sound(graph.Def{
		Name: "load",
		Nodes: []graph.Node{aNode("load", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.EmitProgress(ctx, 0.5, "half of it")
			if graph.IsEmitEnabled(ctx) { // for values that cost something to make
				graph.Emit(ctx, map[string]int{"rows": 7})
			}
			return graph.Update{}, nil
		})},
		Edges: []graph.Edge{anEdge("load", graph.End)},
		Start: []string{"load"},
	})
	for ev := range (&graph.Runner{Graph: g}).Run(context.Background(), graph.Input{Topics: graph.TopicEmit}) {
		if b, ok := ev.Body.(graph.ValueEmitted); ok {
			fmt.Printf("%s: %+v\n", ev.Node, b.Value)
		}
	}
	// Output:
	// load: {Part:0.5 Note:half of it}
	// load: map[rows:7]
}

// Events have one form as JSON: on the wire, in logs and in tests.
func Example_eventsAsJSON() {
	r := &graph.Runner{Graph: steps("write"), Clock: &graphtest.Clock{}, IDs: graphtest.IDs("run")}
	for ev, err := range r.Run(context.Background(), graph.Input{Topics: graph.TopicStep}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		b, err := json.Marshal(ev)
		fmt.Println(string(b), err)
	}
	// Output:
	// {"seq":1,"time":"2026-01-01T00:00:00Z","thread":"run-1","run":"run-1","step":0,"kind":"step.committed","data":{"nodes":["write"],"keys":["story"],"moves":[{"from":"write","to":["END"]}]}} <nil>
	// {"seq":2,"time":"2026-01-01T00:00:00Z","thread":"run-1","run":"run-1","step":1,"kind":"run.ended","data":{"status":"done","steps":1}} <nil>
}

// Leaving the loop over events cancels the run, waits for its tasks and saves
// what they did. The caller need not read further, and nothing happens unseen.
func Example_leavingTheLoop() {
	ctx := context.Background()
	r := &graph.Runner{Graph: steps("write", "print"), Store: journal.NewMemory()}
	for ev := range r.Run(ctx, graph.Input{Thread: "t1", Topics: graph.TopicStep}) {
		if b, ok := ev.Body.(graph.StepCommitted); ok {
			fmt.Println("leaving before", b.Next)
			break
		}
	}
	snap, err := history.Inspect(ctx, r.Store, "t1", 0)
	fmt.Println(snap.Status, err)
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// leaving before [print]
	// canceled <nil>
	// done [write print] <nil>
}

// A run stops, Paused, before or after nodes that ask for it; a resume passes.
func Example_breakpoints() {
	ctx := context.Background()
	g := sound(graph.Def{
		Name: "breaks",
		Keys: []graph.AnyKey{story},
		Nodes: []graph.Node{
			{Name: "write", BreakAfter: true, Run: aLine("", story, "write").Run},
			aLine("review", story, "review"),
			{Name: "print", BreakBefore: true, Run: aLine("", story, "print").Run},
		},
		Edges: []graph.Edge{anEdge("write", "review"), anEdge("review", "print"), anEdge("print", graph.End)},
		Start: []string{"write"},
	})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
	for res.Status == graph.Paused && err == nil {
		fmt.Printf("%v %+v\n", story.Get(res.State), res.Breaks)
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	}
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// [write] [{Node:write After:true}]
	// [write review] [{Node:print After:false}]
	// done [write review print] <nil>
}

// Closing Pause, from anywhere, stops the run when the current step is done.
func Example_pause() {
	ctx, pause := context.Background(), make(chan struct{})
	r := &graph.Runner{Graph: steps("write", "print"), Store: journal.NewMemory()}
	var res graph.Result
	for ev := range r.Run(ctx, graph.Input{Thread: "t1", Pause: pause, Topics: graph.TopicTask}) {
		switch b := ev.Body.(type) {
		case graph.TaskStarted:
			close(pause)
		case graph.RunEnded:
			res = b.Result
		}
	}
	fmt.Println(res.Status, story.Get(res.State))
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused [write]
	// done [write print] <nil>
}

// Each task of a Send may ask; so may nodes side by side. All questions are
// listed, each with an id of its own, and may be answered one by one.
func Example_parallelQuestions() {
	item, verdicts := graph.Last[string]("item"), graph.Append[string]("verdicts")
	g := sound(graph.Def{
		Name: "reviews",
		Keys: []graph.AnyKey{item, verdicts},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"review"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Send: []graph.Send{
					{To: "review", Overlay: []graph.Write{item.Set("the text")}},
					{To: "review", Overlay: []graph.Write{item.Set("the picture")}},
				}}, nil
			}},
			aNode("review", func(ctx context.Context, s graph.State) (graph.Update, error) {
				a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Is " + item.Get(s) + " good?", Options: []string{"yes", "no"}})
				return graph.Put(verdicts.Set([]string{item.Get(s) + ": " + a})), err
			}),
		},
		Edges: []graph.Edge{anEdge("review", graph.End)},
		Start: []string{"split"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
	for _, a := range []graph.Answer{{ID: "review[2]", Value: "no"}, {ID: "review[1]", Value: "yes"}} {
		for _, q := range res.Questions {
			fmt.Println(q.ID, q.Prompt)
		}
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{a}})
	}
	fmt.Println(res.Status, verdicts.Get(res.State), err)
	// Output:
	// review[1] Is the text good?
	// review[2] Is the picture good?
	// review[1] Is the text good?
	// done [the text: yes the picture: no] <nil>
}

// A question of a child graph has the nodes above it in its id. It is answered
// like any other; the child continues where it was.
func Example_nestedQuestion() {
	g := sound(graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{story},
		Nodes: []graph.Node{{Name: "desk", Graph: questioning(graph.Ask{Prompt: "Who?"}), Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(story.Set(story.Get(c.State))), nil
		}}},
		Edges: []graph.Edge{anEdge("desk", graph.End)},
		Start: []string{"desk"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for ev := range r.Run(ctx, graph.Input{Thread: "t1", Topics: graph.TopicQuestion}) {
		switch b := ev.Body.(type) {
		case graph.QuestionAsked:
			fmt.Println(ev.Path, ev.Node, "asks", b.Question.ID)
		case graph.RunEnded:
			fmt.Println(b.Result.Status)
		}
	}
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: "desk/ask", Value: "Ada"}}})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// desk/ ask asks desk/ask
	// waiting
	// done [Ada] <nil>
}

// Every visit of a node asks again: an answer belongs to one question, not to a
// name.
func Example_questionInALoop() {
	g := sound(graph.Def{
		Name: "loop",
		Keys: []graph.AnyKey{story},
		Nodes: []graph.Node{{Name: "ask", Routes: []string{"ask", graph.End}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "And then?"})
			next := "ask"
			if a == "the end" {
				next = graph.End
			}
			return graph.Update{Writes: []graph.Write{story.Set([]string{a})}, Goto: []string{next}}, err
		}}},
		Start: []string{"ask"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
	for _, text := range []string{"a wolf came", "the end"} {
		id := res.Questions[0].ID
		fmt.Println(id)
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: id, Value: text}}})
	}
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// ask
	// ask#2
	// done [a wolf came the end] <nil>
}

// Answers may be given before they are asked for, and a question may be refused.
// Without a store a node cannot ask.
func Example_answersAhead() {
	ctx := context.Background()
	r := &graph.Runner{Graph: questioning(graph.Ask{Prompt: "Who?"}), Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Ahead: []graph.Answer{{ID: "ask", Value: "Ada"}}})
	fmt.Println(res.Status, story.Get(res.State), err)

	_, err = r.Invoke(ctx, graph.Input{Ahead: []graph.Answer{{ID: "ask", Refused: "the person is away"}}})
	var refused *graph.RefusedError
	fmt.Println(errors.As(err, &refused), refused.Reason)

	_, err = invoke(questioning(graph.Ask{Prompt: "Who?"}))
	fmt.Println(err)
	// Output:
	// done [Ada] <nil>
	// true the person is away
	// node ask (step 0, attempt 1): graph: a question needs a store to wait in; give the Runner one
}

// A thread whose run is over is continued by the next run, on its state. One
// whose run is not over is resumed, never run again by accident.
func Example_nextRun() {
	ctx := context.Background()
	r := &graph.Runner{Graph: questioning(graph.Ask{Prompt: "What?"}), Store: journal.NewMemory()}
	for _, line := range []string{"hello", "how are you"} {
		res, err := r.Invoke(ctx, graph.Input{Thread: "chat", Ahead: []graph.Answer{{Value: line}}})
		fmt.Println(res.Status, len(story.Get(res.State)), err)
	}
	res, err := r.Invoke(ctx, graph.Input{Thread: "chat", Run: "r3"})
	fmt.Println(res.Status, err)
	_, err = r.Invoke(ctx, graph.Input{Thread: "chat"})
	fmt.Println(err)
	// Output:
	// done 1 <nil>
	// done 2 <nil>
	// waiting <nil>
	// thread chat has an unfinished run r3 (waiting): resume it
}

// A run is continued with the graph it was started with, or with consent.
func Example_changedGraph() {
	def := graph.Def{
		Name:  "changing",
		Nodes: []graph.Node{{Name: "a", BreakAfter: true, Run: doNothing}, aNode("b", doNothing)},
		Edges: []graph.Edge{anEdge("a", "b"), anEdge("b", graph.End)},
		Start: []string{"a"},
	}
	ctx, store := context.Background(), journal.NewMemory()
	if _, err := (&graph.Runner{Graph: sound(def), Store: store}).Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		fmt.Println(err)
	}
	def.Version = "2"
	r := &graph.Runner{Graph: sound(def), Store: store}
	_, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	var changed *graph.ChangedError
	fmt.Println(errors.As(err, &changed))
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1", AcceptChanges: true})
	fmt.Println(res.Status, err)
	// Output:
	// true
	// done <nil>
}

// What ctx holds is there for every node, and is not stored: a resume brings its
// own.
func Example_callerContext() {
	type user struct{}
	g := sound(graph.Def{
		Name: "context",
		Nodes: []graph.Node{aNode("greet", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			fmt.Println("hello", ctx.Value(user{}))
			return graph.Update{}, nil
		})},
		Edges: []graph.Edge{anEdge("greet", graph.End)},
		Start: []string{"greet"},
	})
	_, err := (&graph.Runner{Graph: g}).Invoke(context.WithValue(context.Background(), user{}, "Ada"), graph.Input{})
	fmt.Println(err)
	// Output:
	// hello Ada
	// <nil>
}

type parcel struct {
	To     string
	Weight float64
}

// Values come back from the journal with the types they went in with.
func Example_storedTypes() {
	graph.Register[parcel]("example.parcel") // for keys of any type
	number, raw, thing, meta := graph.Last[int64]("number"), graph.Last[[]byte]("raw"), graph.Dyn("thing"), graph.Merge[string, any]("meta")
	g := sound(graph.Def{
		Name:  "types",
		Keys:  []graph.AnyKey{number, raw, thing, meta},
		Nodes: []graph.Node{aNode("a", doNothing)},
		Edges: []graph.Edge{anEdge("a", graph.End)},
		Start: []string{"a"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	set := []graph.Write{number.Set(1<<62 + 1), raw.Set([]byte{1, 2}), thing.Set(parcel{To: "Ada", Weight: 1.5}),
		meta.Set(map[string]any{"tries": 3, "tags": []string{"new"}})}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: set}); err != nil {
		fmt.Println(err)
	}
	s, err := r.State(ctx, "t1", 0)
	fmt.Printf("%d %v %+v %v\n", number.Get(s), raw.Get(s), thing.Get(s).(parcel), err)
	fmt.Println(meta.Get(s)["tries"].(int), meta.Get(s)["tags"].([]string))
	// Output:
	// 4611686018427387905 [1 2] {To:Ada Weight:1.5} <nil>
	// 3 [new]
}

// Durability says what a run waits for. What was not yet stored when the process
// dies is done again; nothing is stored by halves.
func Example_durability() {
	g := sound(graph.Def{
		Name: "effect",
		Nodes: []graph.Node{aNode("call", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "call", func(context.Context) (string, error) { return "a reply", nil })
			return graph.Update{}, err
		})},
		Edges: []graph.Edge{anEdge("call", graph.End)},
		Start: []string{"call"},
	})
	for _, d := range []graph.Durability{graph.EveryEffect, graph.EveryStep, graph.QuestionsOnly} {
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1} // only counts
		_, err := (&graph.Runner{Graph: g, Store: store, Durability: d}).Invoke(context.Background(), graph.Input{})
		fmt.Println(store.RecordCount(), "records, waited", store.BatchCount(), "times", err)
	}
	// Output:
	// 4 records, waited 4 times <nil>
	// 4 records, waited 3 times <nil>
	// 4 records, waited 1 times <nil>
}

// Of two writers of one thread the slower one stops: nothing is mixed.
func Example_twoWriters() {
	ctx := context.Background()
	r := &graph.Runner{Graph: steps("write", "review", "print"), Store: journal.NewMemory()}
	for ev, err := range r.Run(ctx, graph.Input{Thread: "t1", Topics: graph.TopicStep}) {
		if b, ok := ev.Body.(graph.StepCommitted); ok && b.Nodes[0] == "write" {
			_, err := r.Edit(ctx, "t1", story.Reset([]string{"somebody else was here"}))
			fmt.Println("edited", err)
		}
		if err != nil {
			fmt.Println(errors.Is(err, journal.ErrConflict))
		}
	}
	s, err := r.State(ctx, "t1", 0)
	fmt.Println(story.Get(s), err)
	// Output:
	// edited <nil>
	// true
	// [somebody else was here] <nil>
}

// A fork is a new branch: effects of the unfinished step are made again, and have
// another key.
func Example_forkedEffect() {
	var keys []string
	g := sound(graph.Def{
		Name: "effect",
		Nodes: []graph.Node{aNode("pay", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "pay", func(ctx context.Context) (string, error) {
				keys = append(keys, graph.EffectKey(ctx))
				return "paid", nil
			})
			return graph.Update{}, err
		})},
		Edges: []graph.Edge{anEdge("pay", graph.End)},
		Start: []string{"pay"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	_, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
	fmt.Println(err)
	fmt.Println(history.Fork(ctx, r.Store, "t1", 2, "t2")) // 1 is the start, 2 the effect
	_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t2"})
	fmt.Println(len(keys), keys[0] != keys[1], err)
	// Output:
	// <nil>
	// <nil>
	// 2 true <nil>
}

// redacted stores a mark instead of a value: a reader of the journal, a resume too,
// finds the mark.
func redacted() graph.Codec[string] {
	const mark = "(redacted)"
	return graph.Codec[string]{
		Tag:    "redacted",
		Encode: func(dst []byte, _ string) ([]byte, error) { return append(dst, mark...), nil },
		Decode: func([]byte) (string, error) { return mark, nil },
	}
}

// encrypted stores a value under AES-GCM. The nonce is a keyed hash of the value:
// the same value is the same bytes each time, as a codec promises, and no two
// values share a nonce.
func encrypted(secret []byte) (graph.Codec[string], error) {
	derive := func(what string, from []byte) []byte {
		h := hmac.New(sha256.New, from)
		h.Write([]byte(what))
		return h.Sum(nil)
	}
	block, err := aes.NewCipher(derive("values", secret))
	if err != nil {
		return graph.Codec[string]{}, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return graph.Codec[string]{}, err
	}
	nonces := derive("nonces", secret)
	return graph.Codec[string]{
		Tag: "aes-gcm",
		Encode: func(dst []byte, v string) ([]byte, error) {
			nonce := derive(v, nonces)[:gcm.NonceSize()]
			return gcm.Seal(append(dst, nonce...), nonce, []byte(v), nil), nil
		},
		Decode: func(b []byte) (string, error) {
			if len(b) < gcm.NonceSize() {
				return "", errors.New("the value is cut short")
			}
			v, err := gcm.Open(nil, b[:gcm.NonceSize()], b[gcm.NonceSize():], nil)
			return string(v), err
		},
	}, nil
}

// holds reports whether the files of a database, its log included, hold a text.
func holds(database, text string) bool {
	files, err := filepath.Glob(database + "*")
	if err != nil || len(files) < 2 {
		panic(fmt.Sprint("the database and its log are missing: ", files, err))
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// inFile runs a graph that asks whether to send a letter, on a thread in a file,
// and answers from another process, so to speak. then is called when it waits,
// and when it is done.
func inFile(keys []graph.AnyKey, send graph.Func, set []graph.Write, then func(database string, res graph.Result)) error {
	dir, err := os.MkdirTemp("", "letters")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, database := context.Background(), filepath.Join(dir, "runs.db")
	g := sound(graph.Def{Name: "letters", Keys: keys, Start: []string{"send"}, Nodes: []graph.Node{aNode("send", send)}, Edges: []graph.Edge{anEdge("send", graph.End)}})
	for waits := true; waits; {
		store, err := sqlite.Open(database)
		if err != nil {
			return err
		}
		r := &graph.Runner{Graph: g, Store: store}
		res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: "send", Value: true}}})
		if errors.Is(err, journal.ErrNoThread) {
			res, err = r.Invoke(ctx, graph.Input{Thread: "t1", Set: set})
		}
		if err == nil {
			then(database, res)
		}
		if err := errors.Join(err, store.Close()); err != nil {
			return err
		}
		waits = res.Status == graph.Waiting
	}
	return nil
}

// A key with a codec that stores a mark is redacted: its value is in the state of
// the drive that wrote it, and nowhere else. A node that runs after a resume gets
// the mark, and fetches the value again, outside Do, whose results are journaled
// as they are.
func Example_redactedKey() {
	token, letter := graph.Last[string]("token").WithCodec(redacted()), graph.Last[string]("letter")
	err := inFile([]graph.AnyKey{token, letter}, func(ctx context.Context, s graph.State) (graph.Update, error) {
		fmt.Println("the node sees", token.Get(s))
		_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "send " + letter.Get(s) + "?"})
		return graph.Update{}, err
	}, []graph.Write{token.Set("tok-4711"), letter.Set("dear Ada")}, func(database string, res graph.Result) {
		fmt.Printf("%s; in the file: the letter %v, the token %v\n", res.Status, holds(database, "dear Ada"), holds(database, "tok-4711"))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the node sees tok-4711
	// waiting; in the file: the letter true, the token false
	// the node sees (redacted)
	// done; in the file: the letter true, the token false
}

// A key with a codec that encrypts comes back for every reader that has the secret.
func Example_encryptedKey() {
	codec, err := encrypted([]byte("kept by a vault, not by the program"))
	if err != nil {
		fmt.Println(err)
		return
	}
	letter := graph.Last[string]("letter").WithCodec(codec)
	err = inFile([]graph.AnyKey{letter}, func(ctx context.Context, s graph.State) (graph.Update, error) {
		fmt.Println("the node sees", letter.Get(s))
		_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "send it?"})
		return graph.Update{}, err
	}, []graph.Write{letter.Set("dear Ada")}, func(database string, res graph.Result) {
		fmt.Printf("%s; in the file: the question %v, the letter %v\n", res.Status, holds(database, "send it?"), holds(database, "dear Ada"))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the node sees dear Ada
	// waiting; in the file: the question true, the letter false
	// the node sees dear Ada
	// done; in the file: the question true, the letter false
}
