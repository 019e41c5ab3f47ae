package agui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/internal/storage/config"
)

// threadFiles note the last run of each thread of a client until it has ended, so that the next input can be checked
// against its open questions. What is true about the run is in its journal only.
type threadFiles struct{ dir string }

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

// read returns the note of a thread; the zero value if there is none.
func (f threadFiles) read(thread string) (n threadNote) {
	if b, err := os.ReadFile(filepath.Join(f.dir, thread)); err == nil {
		_ = json.Unmarshal(b, &n) // a note that cannot be read is as good as none: ids of interrupts name their run
	}
	return n
}

// write saves the note of a thread.
func (f threadFiles) write(thread string, n threadNote) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = config.WritePrivate(filepath.Join(f.dir, thread), b)
	}
	if err != nil {
		return fmt.Errorf("note the run of a thread: %w", err)
	}
	return nil
}

// remove removes the note of a run that has ended.
func (f threadFiles) remove(thread, run string) {
	if f.read(thread).Run == run {
		_ = os.Remove(filepath.Join(f.dir, thread))
	}
}
