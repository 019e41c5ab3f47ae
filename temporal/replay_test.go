package temporal

import (
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Workflows that were started by an earlier version continue: the histories in testdata are of real servers. A change
// that fails this test needs a new WorkflowType. TestExtraAnswer and others write histories with -update.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("the histories are missing: %q, %v", files, err)
	}
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(RunWorkflow, workflow.RegisterOptions{Name: WorkflowType})
	for _, file := range files {
		if err := r.ReplayWorkflowHistoryFromJSONFile(quiet, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	// A workflow that decides otherwise is noticed.
	r = worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, in RunInput) error {
		return workflow.Sleep(ctx, firstDelay)
	}, workflow.RegisterOptions{Name: WorkflowType})
	if err := r.ReplayWorkflowHistoryFromJSONFile(quiet, files[0]); err == nil {
		t.Error("another workflow replays the history, too")
	}
}
