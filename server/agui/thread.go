package agui

import (
	"context"
	"fmt"
	"time"

	"raddle.dev/internal/storage/entries"
)

// threadLife is how long the note of a thread is kept whose run does not end.
const threadLife = 90 * 24 * time.Hour

// threadNotes note the last run of each thread of a client until it has ended, so that the next input can be checked
// against its open questions, whatever server gets it. What is true about the run is in its journal only.
type threadNotes struct{ table entries.Table[threadNote] }

// A threadNote names a run that has not ended, for raddle and for the client.
type threadNote struct {
	Run     string `json:"run"`
	Client  string `json:"runId"`
	Message string `json:"messageId,omitempty"` // the last message of the user that started it, or joined it

	Joined *joinedNote `json:"joined,omitempty"` // the input joined the run while it worked; nil: it started the run
}

// A joinedNote is what an input has said to a run that worked.
type joinedNote struct {
	After string `json:"after"` // the last message before it
	Text  string `json:"text"`
}

// readNote returns the note of a thread; the zero value if there is none.
func (n threadNotes) readNote(ctx context.Context, thread string) (threadNote, error) {
	note, _, err := n.table.ReadValue(ctx, thread)
	if err != nil {
		return note, fmt.Errorf("read the run of a thread: %w", err)
	}
	return note, nil
}

// writeNote saves the note of a thread.
func (n threadNotes) writeNote(ctx context.Context, thread string, note threadNote) error {
	if err := n.table.PutValue(ctx, thread, note, threadLife); err != nil {
		return fmt.Errorf("note the run of a thread: %w", err)
	}
	return nil
}

// removeNote removes the note of a run that has ended. A note that remains does no harm: its run has ended.
func (n threadNotes) removeNote(ctx context.Context, thread, run string) {
	if note, err := n.readNote(ctx, thread); err == nil && note.Run == run {
		_, _ = n.table.RemoveValue(ctx, thread)
	}
}
