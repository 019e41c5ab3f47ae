package journal

import (
	"errors"
	"fmt"

	"raddle.dev/graph/internal/record"
)

// RewriteRecord returns a record of a thread in which every text is replaced by what change returns for it: names,
// prompts, reasons, and values as they are stored, most of them JSON. It has a new checksum. change must return the
// same text for the same text, so that what names each other still does. Numbers, times and the kind stay as they are.
// With a change that changes nothing, the record has the same bytes.
//
// It fails for a record that is damaged or of an unknown kind (ErrNewer), and if change would change a value whose form
// is known only to the program that wrote it.
func RewriteRecord(thread string, r Record, change func([]byte) []byte) (Record, error) {
	err := ErrNewer
	head := r.Head
	data := r.Data
	if r.Kind.IsKnown() {
		head, data, err = record.Rewrite(uint8(r.Kind), r.Head, r.Data, change)
	}
	if errors.Is(err, record.ErrMoreParts) {
		err = fmt.Errorf("%w: %w", err, ErrNewer)
	}
	if err != nil {
		return r, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
	}
	r.Head = head
	r.Data = data
	list := []Record{r}
	c := NewChecksums(thread)
	c.Set(r.Seq-1, list)
	return list[0], nil
}
