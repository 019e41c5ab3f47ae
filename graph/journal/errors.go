package journal

import "errors"

// ErrConflict says that another writer has appended to the thread since this one
// read it. The first append wins: another drive that has taken the run over, an
// edit, or an end by hand. Read the thread again, or leave the run to the other writer.
var ErrConflict = errors.New("journal: the thread has moved on: another process drives it")

// ErrNoStore says that a caller gave no store.
var ErrNoStore = errors.New("journal: the Store is nil: a thread is read from a store, such as NewMemory")

// ErrNoThread says that the store holds no such thread.
var ErrNoThread = errors.New("journal: no such thread")

// ErrNoPoint says that a thread has no such record: it was pruned, or not yet
// written.
var ErrNoPoint = errors.New("journal: no such point in the thread")

// ErrNewer says that a newer version has written a record, so that this one cannot read it. The record is not damaged.
var ErrNewer = errors.New("journal: a newer version of raddle has written it: update raddle")

// ErrThreadExists says that a fork would overwrite a thread.
var ErrThreadExists = errors.New("journal: the thread exists already")
