package graph

import "context"

// supervision is what a frame needs while nodes that hang are watched for.
type supervision struct {
	lane      *lane              // lane of the goroutine that drives the frame, if nodes run on it
	watch     *watch             // watch of the step's context
	outer     *watch             // watch of the frame's context, while the step has its own
	cancel    context.CancelFunc // cancels the step's context; nil: it has none
	executing bool               // the tasks of a step are running
}

// endStep ends the step's own context, if it has one.
func (f *frame) endStep() {
	if f.cancel != nil {
		f.cancel()
		f.watch.end()
		f.watch, f.outer, f.cancel = f.outer, nil, nil
	}
}

// A strand drives a frame on a separate goroutine, so that another can continue after a
// node that hangs.
type strand struct {
	x     *drive
	ctx   context.Context
	f     *frame
	root  bool
	watch *watch

	done   chan struct{} // closed when the fields below are set
	status Status
	err    error
}

// loop drives a frame until it stops.
func (x *drive) loop(ctx context.Context, f *frame, root bool) (Status, error) {
	w := x.watch(ctx)
	if w == nil {
		return x.steps(ctx, f, root)
	}
	f.watch = w
	if root && x.topics != 0 { // the reader's goroutine runs no node that can hang
		defer w.end()
		return x.steps(ctx, f, root)
	}
	s := &strand{x: x, ctx: ctx, f: f, root: root, watch: w, done: make(chan struct{})}
	go s.run(s.lane(), nil)
	<-s.done
	f.supervision = supervision{}
	return s.status, s.err
}

// lane returns a new lane that is watched.
func (s *strand) lane() *lane {
	l := &lane{by: s}
	s.watch.add(l)
	return l
}

// run drives the frame. If first is not nil, it runs first to end a step, and starts
// there. first returns false if the lane was left.
func (s *strand) run(l *lane, first func() bool) {
	x, f := s.x, s.f
	f.lane = l
	over := false
	defer func() {
		switch {
		case l.left():
			return
		case over:
		case f.executing: // a node has ended this goroutine, and has failed
			go s.run(s.lane(), func() bool { return true })
			return
		default:
			s.status, s.err = Failed, errGoexit
		}
		s.watch.end()
		close(s.done)
	}()
	status, err := Running, error(nil)
	if first != nil {
		if !first() {
			return
		}
		f.executing = false
		f.endStep()
		status, err = x.conclude(s.ctx, f, s.root)
	}
	if status == Running {
		status, err = x.steps(s.ctx, f, s.root)
	}
	if err != errLeft {
		s.status, s.err, over = status, err, true
	}
}

// succeed implements successor.
func (s *strand) succeed(t *task, hung error) {
	l := t.replace(s, s.watch)
	if w := s.f.watch; w != s.watch {
		w.add(l)
	}
	s.run(l, func() bool { return t.carryOn(false, hung) })
}
