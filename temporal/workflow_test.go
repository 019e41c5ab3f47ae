package temporal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// A fakeStore has the outcomes of the drives of one run, in order. The last one repeats.
type fakeStore struct {
	outcomes  []Outcome
	errs      map[int]error // of the drive with that number, from 1
	drives    []time.Time
	cancelled int
}

var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// newLoop returns an environment in which time passes when nothing else is to be done.
func newLoop(t *testing.T, f *fakeStore) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(20 * time.Second)
	env.RegisterWorkflowWithOptions(RunWorkflow, workflow.RegisterOptions{Name: WorkflowType})
	env.RegisterActivityWithOptions(func(context.Context, string) (Outcome, error) {
		f.drives = append(f.drives, env.Now())
		n := len(f.drives)
		return f.outcomes[min(n, len(f.outcomes))-1], f.errs[n]
	}, activity.RegisterOptions{Name: driveActivity})
	env.RegisterActivityWithOptions(func(context.Context, string) error {
		f.cancelled++
		return nil
	}, activity.RegisterOptions{Name: cancelActivity})
	return env
}

// gaps returns the times between drives.
func (f *fakeStore) gaps() (list []time.Duration) {
	for i := 1; i < len(f.drives); i++ {
		list = append(list, f.drives[i].Sub(f.drives[i-1]).Round(time.Second))
	}
	return list
}

func TestLoop(t *testing.T) {
	waiting, done, failed := Outcome{Status: "waiting", Waiting: []string{"ask"}}, Outcome{Status: "done"}, Outcome{Status: "failed"}
	passing := Outcome{Status: "failed", Passing: true}
	unreachable := temporal.NewNonRetryableApplicationError("no store", "worker", nil)
	for _, c := range []struct {
		name     string
		outcomes []Outcome
		errs     map[int]error
		retries  int
		gaps     []time.Duration // between drives
		err      string
	}{
		{name: "done", outcomes: []Outcome{done}},
		{name: "ended by hand", outcomes: []Outcome{{Status: "abandoned"}}},
		{name: "a paused run is driven at once", outcomes: []Outcome{{Status: "paused"}, done}, gaps: []time.Duration{0}},
		{name: "a slow timer finds lost pokes", outcomes: []Outcome{waiting, waiting, waiting, done}, gaps: []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}},
		{name: "another process drives it", outcomes: []Outcome{{Status: "busy"}, {Status: "busy"}, done}, gaps: []time.Duration{time.Second, 2 * time.Second}},
		{name: "the store cannot be reached", outcomes: []Outcome{{}, {}, done}, errs: map[int]error{1: unreachable, 2: unreachable}, gaps: []time.Duration{time.Second, 2 * time.Second}},
		{name: "a failure that can pass", outcomes: []Outcome{passing, passing, done}, retries: 2, gaps: []time.Duration{time.Second, 2 * time.Second}},
		{name: "too many failures", outcomes: []Outcome{passing}, retries: 2, gaps: []time.Duration{time.Second, 2 * time.Second}, err: "the run has stopped (failed)"},
		{name: "a failure for ever", outcomes: []Outcome{failed}, retries: 9, err: "the run has stopped (failed): raddle runs show"},
		{name: "a limit", outcomes: []Outcome{{Status: "step-limit"}}, retries: 9, err: "(step-limit)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeStore{outcomes: c.outcomes, errs: c.errs}
			env := newLoop(t, f)
			env.ExecuteWorkflow(WorkflowType, RunInput{Retries: c.retries})
			err := env.GetWorkflowError()
			if !env.IsWorkflowCompleted() || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("ended: %v, %v", env.IsWorkflowCompleted(), err)
			}
			if !slices.Equal(f.gaps(), c.gaps) {
				t.Errorf("%d drives, with these times between them: %v; want %v", len(f.drives), f.gaps(), c.gaps)
			}
		})
	}
}

// Temporal skips two days of waiting; the poke ends them at once.
func TestPoke(t *testing.T) {
	f := &fakeStore{outcomes: []Outcome{{Status: "waiting"}, {Status: "done"}}}
	env := newLoop(t, f)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(pokeSignal, nil) }, 30*time.Second)
	env.ExecuteWorkflow(WorkflowType, RunInput{})
	if err := env.GetWorkflowError(); err != nil || !slices.Equal(f.gaps(), []time.Duration{30 * time.Second}) {
		t.Errorf("%v, %v", f.gaps(), err)
	}
}

// A run that stopped at a breakpoint continues when a person says so, however long that takes.
func TestBreakpoint(t *testing.T) {
	f := &fakeStore{outcomes: []Outcome{{Status: "paused", Stopped: true}, {Status: "done"}}}
	env := newLoop(t, f)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(pokeSignal, nil) }, 48*time.Hour)
	env.ExecuteWorkflow(WorkflowType, RunInput{})
	if err := env.GetWorkflowError(); err != nil || !slices.Equal(f.gaps(), []time.Duration{48 * time.Hour}) {
		t.Errorf("%v, %v", f.gaps(), err)
	}
}

func TestCancelOfAWaitingRun(t *testing.T) {
	for _, out := range []Outcome{{Status: "waiting"}, {Status: "paused", Stopped: true}, {Status: "busy"}} {
		f := &fakeStore{outcomes: []Outcome{out}}
		env := newLoop(t, f)
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Second/2)
		env.ExecuteWorkflow(WorkflowType, RunInput{})
		if err := env.GetWorkflowError(); !errors.As(err, new(*temporal.CanceledError)) || f.cancelled != 1 || len(f.drives) != 1 {
			t.Errorf("%s: %v; the run was ended %d times after %d drives", out.Status, err, f.cancelled, len(f.drives))
		}
	}
}

// A run that is driven very often gets a new history.
func TestContinueAsNew(t *testing.T) {
	f := &fakeStore{outcomes: []Outcome{{Status: "failed", Passing: true}, {Status: "paused"}}}
	env := newLoop(t, f)
	env.ExecuteWorkflow(WorkflowType, RunInput{Retries: 3})
	err := env.GetWorkflowError()
	next, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok || len(f.drives) != drivesOfHistory {
		t.Fatalf("%v after %d drives", err, len(f.drives))
	}
	var in RunInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || in != (RunInput{Retries: 3, Failures: 1}) {
		t.Errorf("%+v, %v", in, err)
	}
}

// The memo shows what a run waits for, and how it ended.
func TestMemo(t *testing.T) {
	f := &fakeStore{outcomes: []Outcome{{Status: "waiting", Waiting: []string{"review"}}, {Status: "done"}}}
	env := newLoop(t, f)
	var seen []string
	env.OnUpsertMemo(mock.Anything).Return(nil).Run(func(args mock.Arguments) {
		memo := args.Get(0).(map[string]any)
		seen = append(seen, memo[memoStatus].(string)+" "+strings.Join(memo[memoWaiting].([]string), ","))
	})
	env.ExecuteWorkflow(WorkflowType, RunInput{})
	if err := env.GetWorkflowError(); err != nil || !slices.Equal(seen, []string{"waiting review", "done "}) {
		t.Errorf("%q, %v", seen, err)
	}
}

// The server repeats a drive whose worker does not answer, and nothing else.
func TestRetryOfADrive(t *testing.T) {
	f := &fakeStore{outcomes: []Outcome{{}, {Status: "done"}}, errs: map[int]error{1: temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)}}
	env := newLoop(t, f)
	env.ExecuteWorkflow(WorkflowType, RunInput{})
	if err := env.GetWorkflowError(); err != nil || len(f.drives) != 2 || f.drives[1].Sub(f.drives[0]) > time.Second {
		t.Errorf("%v, %v", f.drives, err)
	}
}

// A run that another one waits for pokes it when it has ended, however that was, and not before.
func TestPokeOfTheParent(t *testing.T) {
	for _, c := range []struct {
		name     string
		outcomes []Outcome
		cancel   bool
	}{
		{name: "done", outcomes: []Outcome{{Status: "waiting"}, {Status: "done"}}},
		{name: "failed", outcomes: []Outcome{{Status: "failed", Passing: true}, {Status: "failed"}}},
		{name: "cancelled", outcomes: []Outcome{{Status: "waiting"}}, cancel: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeStore{outcomes: c.outcomes}
			env := newLoop(t, f)
			pokes := 0
			env.OnSignalExternalWorkflow(mock.Anything, "above", "", pokeSignal, mock.Anything).Return(func(string, string, string, string, any) error {
				if pokes++; len(f.drives) != len(c.outcomes) {
					t.Errorf("it pokes after %d drives", len(f.drives))
				}
				return errors.New("there is no such workflow") // which is no failure of this one
			})
			if c.cancel {
				env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
			}
			env.ExecuteWorkflow(WorkflowType, RunInput{Retries: 1, Parent: "above"})
			if err := env.GetWorkflowError(); pokes != 1 || (err == nil) != (c.name == "done") {
				t.Errorf("%d pokes, %v", pokes, err)
			}
		})
	}
	f := &fakeStore{outcomes: []Outcome{{Status: "paused"}}}
	env := newLoop(t, f)
	env.ExecuteWorkflow(WorkflowType, RunInput{Parent: "above"}) // a poke would panic: it is not expected
	if err := env.GetWorkflowError(); !errors.As(err, new(*workflow.ContinueAsNewError)) {
		t.Errorf("it ended with %v", err)
	}
}
