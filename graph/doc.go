// Package graph runs graphs of Go functions that never lose their place: every
// run is a journal, and a run whose process died continues where the journal ends.
//
// # Write a graph
//
// A Key names one value of the state, its type, and how writes to it are folded.
// A node is a function from the state to an Update: what to write, and where to
// go when the edges do not say. A Def lists keys, nodes and edges; Compile checks
// it.
//
//	var name = graph.Last[string]("name")
//
//	g, err := graph.Compile(graph.Def{
//		Name: "hello",
//		Keys: []graph.AnyKey{name},
//		Nodes: []graph.Node{{Name: "greet", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
//			return graph.Put(name.Set("hello " + name.Get(s))), nil
//		}}},
//		Edges: []graph.Edge{{From: []string{"greet"}, To: []string{graph.End}}},
//		Start: []string{"greet"},
//	})
//
// The values of keys and the results of Do are stored, so it must be possible to
// read values of their types back: see Key. Compile refuses other types, such as a
// struct with an error inside, and says what to do.
//
// # Run it
//
// A Runner drives runs. Invoke runs to the end and returns a Result; Run yields
// events while the run proceeds.
//
//	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
//	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: []graph.Write{name.Set("ada")}})
//	fmt.Println(res.Status, name.Get(res.State), err) // done hello ada <nil>
//
// Without a Store nothing is stored, and nodes cannot ask. The package store/sqlite
// has a Store that outlives the process.
//
// # Ask, and continue
//
// A node asks with Interrupt. The run ends as Waiting; Resume continues it with
// the answer, in this process or another. What a node did before the question
// happens again when it runs again, unless it is inside Do, which journals a
// result before it is used and returns the recorded one from then on. history.Abandon ends
// a run that is no longer wanted.
//
//	text, err := graph.Do(ctx, "draft", write) // in a node: made once
//	ok, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "Send " + text + "?"})
//	if err != nil {
//		return graph.Update{}, err // ErrWaiting, until there is an answer
//	}
//
//	// outside, when res.Status is graph.Waiting:
//	answer := graph.Answer{ID: res.Questions[0].ID, Value: true}
//	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{answer}})
//
// A question with Ask.Deadline is answered by time, if no one does: the error is then ErrDeadline. Sleep and SleepUntil
// wait for a time in the same way, with no process: Result.Due says from when on a resume continues the run, and
// history.Describe and Inspect say it, too. The waiting counts for no timeout.
//
//	if err := graph.Sleep(ctx, 48*time.Hour); err != nil {
//		return graph.Update{}, err // ErrWaiting, until the time has come
//	}
//
// # Pause, and continue
//
// A run also stops, as Paused, when Input.Pause is closed, at the nodes of Input.Break,
// and at those with BreakBefore or BreakAfter. Resume it in the same way, without
// answers. Also resume in this way a run that failed, was cancelled or crashed.
//
//	in := graph.Input{Thread: "t2", Set: []graph.Write{name.Set("ada")}, Break: []graph.Break{{Node: "greet"}}}
//	res, err = r.Invoke(ctx, in)                               // paused before greet
//	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t2"}) // done
//
// # Children that run together
//
// A node runs its child graph with Call, once in a task. A node with Children runs
// any number of them with CallChild, each under a name, several at once from
// goroutines. The tasks of a child are below the node's task and the name, in the
// journal and in the ids of questions: "team/alice/ask". A node that runs again
// calls ChildNames for the children that it has started, calls the same names again, and
// each child continues where it stopped. DropChild ends a child and removes it. A child that
// can continue only after another child that waits calls Suspend.
//
// Share returns a value that all tasks of a run share, at every depth: it
// belongs to the run, and a drive starts with what the previous one has recorded of
// it.
//
// # Test it
//
// A node is a function: NewState makes a state to call it with, and Key.WrittenValue reads
// what it wrote. Runner.Debug detects nodes and reducers that modify what they read, and
// values that change when they are stored and read back. Package graphtest explores a graph
// under crashes, failing writes and takeovers, and has a clock, ids and a store that crashes.
//
// # Travel in time
//
// You can go back to every record of a thread, also inside a step and inside a
// child graph: each is a point. Package history lists the most useful points, shows
// and compares them, says which records and tasks wrote a key, and creates a thread as
// a copy of another at a point: its Fork. Runner.State decodes the state at a point.
// Edit changes the newest state, through the journal, and EditNext also what runs next;
// to edit an older point, fork there and edit the copy.
//
//	for c, err := range history.Checkpoints(ctx, r.Store, "t2") {
//		fmt.Println(c.Seq, c.Kind, c.Next, err) // 4 step [], then 1 start [greet]
//	}
//	err = history.Fork(ctx, r.Store, "t2", 1, "t3")       // as it was before greet
//	_, err = r.Edit(ctx, "t3", name.Set("grace"))         // with another name
//	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t3"}) // hello grace
//
// What follows a fork or an edit is a new branch: the current step runs again
// from its top, effects included, under other effect keys. history.Prune
// shortens a thread without losing what a resume needs.
//
// # The contract
//
// Steps. All tasks of a step see the state before it. When all are done their
// writes are folded in one fixed order, the declaration of the nodes and then the
// index of the task, never the order in which they finished. Two tasks that
// overwrite one Last key in one step are an error. A graph that Compile accepts has no
// unknown target, no dead end, no unreachable node and no join that cannot fire.
//
// Routing. Edges, branches and joins are followed when a node returns; Goto replaces
// them; Send adds tasks, each with its own overlay. A target that is
// reached from several nodes in one step runs once. A path ends at End; a run is
// done when no task is left, or when a node halts it.
//
// What a crash loses. Recorded means: the store has acknowledged it. With the
// durability EveryEffect an effect's result is recorded before Do returns it, a
// task's update before its siblings end, a step's writes before the next begins.
// An effect with a recorded outcome is never repeated. Between a side effect and its
// record there is a gap that no engine can close: Effect.InDoubt says what happens to
// an effect in that gap.
//
// Two drives. A drive holds a lease on its thread if the store has leases
// (those of this module do: see journal.Leaser). It renews the lease in the
// background and releases it at its end. A caller that starts or resumes a thread whose
// lease is held gets a *BusyError that says which process holds it and until when;
// history.Describe and Inspect say Running. A lease ends 15 seconds after its last renewal, and
// at once when its process on the same host has ended: then the run has Crashed, and
// any process may resume it. Resume.Takeover displaces a running drive: of two drives the
// later one wins, but only if its caller asked for that.
//
// Ended from outside. A drive whose run was abandoned, edited or taken over records
// nothing more, starts no other effect, attempt or question, and ends with a *DisplacedError, which
// says who ended it. Each of these needs a look at the lease that is less than a second
// old; a drive that cannot look starts nothing, and waits until it can, at most until five
// minutes after the end of its lease. history.Abandon and Runner.Edit return, and the next
// drive begins, when the displaced drive has stopped, after two seconds, or at once if its process is
// known to have ended. The contexts of the nodes of the displaced drive end; the effect that it
// was making is in the gap. A process that was stopped between its look and its call may still make
// that call when it continues: no one can close this gap. The clocks of a machine and of the
// store may differ by a minute. Without leases a drive reads the head of its thread before each effect, question and
// repeated attempt, each resume displaces the drive before it, and no one waits.
//
// Quiet nodes. If events are read, a node runs concurrently with the reader, so that
// what it emits is delivered while it runs. Node.Quiet says that it emits nothing.
//
// Nodes that hang. A node whose context has ended (a timeout, a cancellation, the
// grace of a pause) has Runner.HungAfter to return. Then the run continues without it:
// its failure is a *HungError with the node's path, inside the error of the timeout
// or the cancellation; Result.Hung lists the nodes that still run. Go cannot end a
// goroutine: such a node keeps what it holds, but Do, Interrupt, Call, Share and the
// others refuse it, and its update does not count.
//
// Damage. Every record has a checksum of its thread, its place, its head and its
// data. Readers check it: a damaged record is a *journal.DamagedError, never another value.
//
// What a resume repeats. The tasks of the current step that have no recorded
// update run again from their top; inside them recorded effects and answers are
// returned, not made again. Earlier steps do not run again.
//
// Ends. Every way to end has its own Status and, unless the run is done, waits or is
// paused, its own error: *StepError with a *NodeError for each failed task, *LimitError,
// *CanceledError, *ConflictError, *HaltError, *StuckError, and *DisplacedError, with
// the status Abandoned or Canceled, when the run was ended, edited or taken over elsewhere. A failed run continues at
// its failed tasks when it is resumed. If a step of several tasks cannot be applied, its error names the tasks that
// caused this: the task whose write or target was refused, all that overwrote one key, all that halted. They run again;
// the others do not.
//
// Concurrency. Graph, Key, State and Store are safe for concurrent use. Functions
// of one graph run concurrently with each other and with other runs; they must
// not change what they read from a State.
//
// # Words
//
//   - thread: a history that can be continued; runs are appended to it
//   - run: from its start record to its final end record
//   - drive: one process that works on a run; lease: shows that the drive is running
//   - step: one round of tasks; task: one node in one step
//   - key, reducer, write, update: what state is made of and how it changes
//   - journal, record: the ordered log of a thread; checkpoint: a step in it
//   - point: a thread up to one of its records; fork: a thread that started as a copy
//   - branch: what runs between two forks or edits; effects belong to one
//   - effect: a call whose result is journaled; intent: its announcement
//   - question, answer: how a run waits for a person or a program
//   - timer, deadline: how a run, or a question, waits for a time
//   - frontier: what runs next; frame: a running graph, root or child
//   - overlay: writes that only one task of a Send sees
package graph
