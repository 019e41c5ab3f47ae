package overview

import (
	"context"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
)

// These say where the graph of a run comes from. It is never that of today's files.
const (
	PictureFromRecord  = "record"  // the start record has the picture, or the definition
	PictureFromJournal = "journal" // the structure of the graph that a program has run
	PictureFromSteps   = "steps"   // only the nodes that ran are known
)

// A Picture is the graph of a run as it was when the run started, or when someone continued the run with changed files.
type Picture struct {
	graph.Structure `json:"-"`

	From string `json:"from" enum:"record,journal,steps" doc:"where the graph comes from: the start record, the structure in the journal, or only the steps that the run has made"`
	Note string `json:"note,omitempty" doc:"what a reader of the picture must know, for people"`
}

// PictureOf returns the graph of a run. moments are those of the run.
func PictureOf(ctx context.Context, p *app.Process, d *runs.Detail, moments []runs.Moment) Picture {
	if d.Record != nil {
		if s, err := app.PictureOfRun(ctx, p, d.Record, d.Foreign != nil); err == nil {
			return Picture{Structure: s, From: PictureFromRecord, Note: describeChanges(d)}
		}
	}
	if s := d.Snapshot.Structure; s != nil {
		return Picture{Structure: *s, From: PictureFromJournal}
	}
	return Picture{Structure: story.StructureOf(d, moments), From: PictureFromSteps, Note: "The journal of this run does not have its graph: only the nodes that ran are drawn."}
}

// describeChanges says that the agent's files differ from those that the run has used, "" if they do not. The record of
// a run from elsewhere does not choose which files are read.
func describeChanges(d *runs.Detail) string {
	if d.Foreign != nil || flow.DescribeChanges(d.Record.Sources, flow.HashSources(d.Record.Dir, d.Record.Sources)) == nil {
		return ""
	}
	return "The agent's files have changed since then: the picture shows the graph that this run has used."
}
