package agentbundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"raddle.dev/graph/journal"
)

// threadPrefix begins the names of the threads that hold bundles. No run and no session has such a name.
const threadPrefix = "agent:"

// IsThread reports whether a thread holds a bundle, and no run.
func IsThread(name string) bool { return strings.HasPrefix(name, threadPrefix) }

// kindBundle is the kind of the records of bundles. The engine does not know it, so it cannot be confused with a record
// of a run.
const kindBundle journal.Kind = 100

// partBytes is how much of the compressed files one record has.
const partBytes = 1 << 20

// Grace is the time in which a bundle that no run needs is not removed: its run may be about to start.
const Grace = time.Hour

// A head is the head of the first record: what a listing shows.
type head struct {
	Agent string `json:"agent"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	Parts int    `json:"parts"` // records after the first one that hold the files
}

// ErrMissing says that a store does not have a bundle.
var ErrMissing = errors.New("the store does not have the files of the agent")

// A DamagedError says that a bundle in a store is not what its hash names, or that it must not be used.
type DamagedError struct {
	Hash string
	Err  error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the bundle %.12s in the store is not valid: %v", e.Hash, e.Err)
}

// Unwrap returns why.
func (e *DamagedError) Unwrap() error { return e.Err }

// findThread returns the thread of a bundle. complete is false if a copy of it was stopped.
func findThread(ctx context.Context, st journal.Store, hash string) (t journal.ThreadInfo, found, complete bool, err error) {
	for t, err := range st.Threads(ctx, threadPrefix+hash) {
		if err != nil {
			return t, false, false, err
		}
		if t.Name == threadPrefix+hash {
			var h head
			err := json.Unmarshal(t.First.Head, &h)
			return t, true, err == nil && t.First.Seq == 1 && t.Head > int64(h.Parts), nil
		}
	}
	return t, false, false, nil
}

// HasAny reports whether a store has any bundle.
func HasAny(ctx context.Context, st journal.Store) (bool, error) {
	for _, err := range st.Threads(ctx, threadPrefix) {
		return err == nil, err
	}
	return false, nil
}

// Has reports whether a store has a bundle. Only if it is also fresh, it is not about to be removed; otherwise
// [Bundle.Put] keeps it.
func Has(ctx context.Context, st journal.Store, hash string) (there, fresh bool, err error) {
	t, _, there, err := findThread(ctx, st, hash)
	return there, there && isFresh(t), err
}

// isFresh reports whether a bundle was written or used so recently that it is not removed in the next minutes.
func isFresh(t journal.ThreadInfo) bool { return time.Since(time.UnixMicro(t.Last.Time)) < Grace/2 }

// keepBundle reports whether a store has a bundle, and keeps the bundle from being removed for the next minutes if it
// has.
func keepBundle(ctx context.Context, st journal.Store, hash string) (bool, error) {
	for {
		t, _, complete, err := findThread(ctx, st, hash)
		if err != nil || !complete || isFresh(t) {
			return complete, err
		}
		note := journal.Record{Kind: kindBundle, Time: time.Now().UnixMicro()}
		if err := st.Append(ctx, t.Name, t.Head, []journal.Record{note}); !errors.Is(err, journal.ErrConflict) {
			return err == nil, err
		}
	}
}

// Put writes a bundle to a store, unless the store has it. It reports whether it has written it.
func (b *Bundle) Put(ctx context.Context, st journal.Store) (written bool, err error) {
	recs, err := b.encodeRecords()
	if err != nil {
		return false, err
	}
	for {
		if there, err := keepBundle(ctx, st, b.Hash); there || err != nil {
			return false, err
		}
		t, found, complete, err := findThread(ctx, st, b.Hash)
		if err != nil {
			return false, err
		}
		if found && !complete { // a copy was stopped
			if err := st.Prune(ctx, t.Name, math.MaxInt64); err != nil {
				return false, err
			}
		}
		err = st.Append(ctx, threadPrefix+b.Hash, 0, recs)
		if !errors.Is(err, journal.ErrConflict) { // otherwise another process was faster
			return err == nil, err
		}
	}
}

// encodeRecords returns the records of a bundle: its manifest, then its files.
func (b *Bundle) encodeRecords() ([]journal.Record, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for _, text := range b.contents {
		if _, err := z.Write(text); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	now := time.Now().UnixMicro()
	recs := []journal.Record{{Kind: kindBundle, Time: now, Data: b.manifest}}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), partBytes)
		recs = append(recs, journal.Record{Kind: kindBundle, Time: now, Data: rest[:n]})
		rest = rest[n:]
	}
	first, err := json.Marshal(head{b.Agent, len(b.Files), b.Bytes(), len(recs) - 1})
	recs[0].Head = first
	return recs, err
}

// Get reads a bundle from a store and checks all of it. The error is [ErrMissing] or a [*DamagedError], or that of the
// store.
func Get(ctx context.Context, st journal.Store, hash string) (*Bundle, error) {
	var b *Bundle
	var h head
	var packed bytes.Buffer
	next := int64(1)
	damaged := func(err error) (*Bundle, error) { return nil, &DamagedError{hash, err} }
	for r, err := range st.Read(ctx, threadPrefix+hash, journal.Range{}) {
		switch {
		case err != nil:
			return nil, err
		case r.Seq != next || r.Kind != kindBundle:
			return damaged(fmt.Errorf("record %d is missing", next))
		case next == 1:
			if b, err = readManifest(hash, r.Data); err != nil {
				return damaged(err)
			}
			if err := json.Unmarshal(r.Head, &h); err != nil || h.Parts < 0 || h.Parts > 2*maxBytes/partBytes {
				return damaged(errors.New("its first record cannot be read"))
			}
		case next <= int64(h.Parts)+1:
			packed.Write(r.Data)
		}
		next++
		if packed.Len() > 2*maxBytes {
			return damaged(errors.New("it has more content than its list of files says"))
		}
		if b != nil && next > int64(h.Parts)+1 {
			break // later records only say that it was used
		}
	}
	switch {
	case b == nil:
		return nil, ErrMissing
	case next <= int64(h.Parts)+1:
		return damaged(fmt.Errorf("record %d is missing", next))
	}
	if err := b.readContents(&packed); err != nil {
		return damaged(err)
	}
	return b, nil
}

// readContents sets the contents of the files, and compares them with their hashes.
func (b *Bundle) readContents(packed io.Reader) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("its files cannot be read: %w", err)
	}
	for _, f := range b.Files {
		text := make([]byte, f.Size)
		if _, err := io.ReadFull(z, text); err != nil {
			return fmt.Errorf("%s cannot be read: %w", f.Path, err)
		}
		if hashBytes(text) != f.SHA256 {
			return fmt.Errorf("%s has another content than its hash says", f.Path)
		}
		b.contents = append(b.contents, text)
	}
	if n, err := io.ReadFull(z, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("it has more content than its list of files says")
	}
	return nil
}

// CheckThread returns what is wrong with the bundle that a thread holds, or nil. The other error is that of the store.
func CheckThread(ctx context.Context, st journal.Store, thread string) (fault, err error) {
	_, err = Get(ctx, st, strings.TrimPrefix(thread, threadPrefix))
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		return damaged.Err, nil
	}
	if errors.Is(err, ErrMissing) {
		return nil, nil // it was removed meanwhile
	}
	return nil, err
}

// RemoveUnused removes the bundles that are not needed and older than [Grace], and returns their number. needed returns
// the hashes of the bundles that are needed; it is called only if there is one that may be removed.
func RemoveUnused(ctx context.Context, st journal.Store, needed func(old map[string]bool) (map[string]bool, error)) (removed int, err error) {
	old := map[string]bool{}
	for t, err := range st.Threads(ctx, threadPrefix) {
		if err != nil {
			return 0, err
		}
		if time.Since(time.UnixMicro(t.Last.Time)) >= Grace {
			old[strings.TrimPrefix(t.Name, threadPrefix)] = true
		}
	}
	if len(old) == 0 {
		return 0, nil
	}
	keep, err := needed(old)
	if err != nil {
		return 0, err
	}
	for hash := range old {
		if keep[hash] {
			continue
		}
		t, found, _, err := findThread(ctx, st, hash) // a run may have used it meanwhile
		if err != nil {
			return removed, err
		}
		if !found || time.Since(time.UnixMicro(t.Last.Time)) < Grace {
			continue
		}
		if err := st.Prune(ctx, t.Name, math.MaxInt64); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
