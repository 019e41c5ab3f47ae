package rag

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"raddle.dev/rag/load"
)

// A base remembers which documents and sources its last build could not read, so that their absence is known when the
// build is long over.

// Unread is a document, or a whole source, that the last look at it could not read. The base may have an older version
// of it.
type Unread struct {
	Source string    `json:"source"`         // as the caller wrote it
	Path   string    `json:"path,omitempty"` // of the document; empty: the whole source
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`           // the first look without success
	Last   time.Time `json:"last"`            // the last one
	Looks  int       `json:"looks"`           // how many there were
	Lasts  bool      `json:"lasts,omitempty"` // looking again does not help: only a part was read because of a limit
}

// String names the document and says what is wrong with it.
func (u Unread) String() string {
	if u.Path == "" {
		return u.Source + ": " + u.Reason
	}
	return u.Path + ": " + u.Reason
}

// The gaps between looks at what could not be read: the second look is not delayed, then they double.
const (
	shortestGap = time.Minute
	longestGap  = time.Hour
)

// IsDue reports whether it is time to look again: at the next opportunity after the first failure, and then less and
// less often, because a server that does not answer delays each look.
func (u Unread) IsDue(now time.Time) bool {
	if u.Looks < 2 || u.Lasts {
		return !u.Lasts
	}
	gap := longestGap
	if doubled := u.Looks - 2; doubled < 6 {
		gap = shortestGap << doubled
	}
	return now.Sub(u.Last) >= gap || now.Before(u.Last) // the clock was set back
}

// Unread lists what the last build could not read, in the order of names.
func (b *Base) Unread(ctx context.Context) ([]Unread, error) {
	list, err := b.readUnread(ctx)
	if err != nil {
		return nil, b.wrapError("unread documents", err)
	}
	return list, nil
}

func (b *Base) readUnread(ctx context.Context) (list []Unread, err error) {
	rows, err := b.db.QueryContext(ctx, "SELECT source, path, reason, since, last, looks, lasts FROM unread ORDER BY source, path")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var u Unread
		var since, last int64
		if err := rows.Scan(&u.Source, &u.Path, &u.Reason, &since, &last, &u.Looks, &u.Lasts); err != nil {
			return nil, err
		}
		u.Since, u.Last = time.UnixMilli(since).UTC(), time.UnixMilli(last).UTC()
		list = append(list, u)
	}
	return list, rows.Err()
}

// Retry reads again what the last build could not read, with the settings of that build, and publishes the result: of a
// crawl the pages that failed, and any other source as a whole. All other documents stay as they are: nothing is
// fetched for them. With nothing unread, it does nothing.
func (b *Base) Retry(ctx context.Context, progress func(Progress)) (Report, error) {
	return b.runExclusive(ctx, progress, func(w *builder) (Report, error) {
		settings, builds, err := b.publishedSettings(ctx)
		if err == nil && builds == 0 {
			err = ErrNotBuilt
		}
		var unread []Unread
		if err == nil {
			unread, err = b.readUnread(ctx)
		}
		if err != nil || len(unread) == 0 {
			return Report{}, err
		}
		w.settings = settings
		w.refresh = true
		w.only = map[string][]string{}
		for _, u := range unread {
			if !u.Lasts {
				w.only[u.Source] = append(w.only[u.Source], u.Path)
			}
		}
		for source, paths := range w.only {
			if slices.ContainsFunc(paths, func(path string) bool { return !b.o.Load.IsPageOf(source, path) }) {
				w.only[source] = nil
			}
		}
		return b.runBuild(ctx, w)
	})
}

// looksAt reports whether the build reads a source, or a part of it.
func (w *builder) looksAt(source string) bool {
	_, again := w.only[source]
	return again || w.only == nil
}

// listEntries finds the documents that the build reads.
func (w *builder) listEntries(ctx context.Context) ([]load.Entry, []load.Problem, error) {
	var sources []string
	crawls := map[string]string{} // by the pages that are read again
	for _, source := range w.settings.Sources {
		switch pages := w.only[source]; {
		case !w.looksAt(source):
		case len(pages) == 0:
			sources = append(sources, source)
		default:
			for _, page := range pages {
				crawls[page] = source
			}
			sources = append(sources, pages...)
		}
	}
	entries, problems, err := load.List(ctx, sources, w.base.o.Load)
	for i, e := range entries {
		entries[i].Source = cmp.Or(crawls[e.Source], e.Source)
	}
	for i, p := range problems {
		problems[i].Source = cmp.Or(crawls[p.Source], p.Source)
	}
	return entries, problems, err
}

// addSources adds the documents of all sources in their order: those that were found, and those that the build does not
// look at.
func (w *builder) addSources(ctx context.Context, entries []load.Entry) error {
	kept := map[string]bool{} // paths
	for _, source := range w.settings.Sources {
		for ; len(entries) > 0 && entries[0].Source == source; entries = entries[1:] {
			if kept[entries[0].Path] {
				continue // a source that stays as it is has it, too
			}
			if err := w.addEntry(ctx, entries[0]); err != nil {
				return err
			}
		}
		if !w.looksAt(source) || len(w.only[source]) > 0 {
			w.keepSource(source, kept)
		}
	}
	return nil
}

// keepSource adds the published documents of a source that were not found again, and their paths to kept.
func (w *builder) keepSource(source string, kept map[string]bool) {
	has := map[string]bool{}
	for _, s := range w.order {
		has[s.path] = true
	}
	var stay []storedDocument
	for _, s := range w.known {
		if s.live && s.recipe == w.recipe && s.source == source && !has[s.path] {
			stay = append(stay, s)
			kept[s.path] = true
		}
	}
	sortStored(stay)
	w.order = append(w.order, stay...)
}

// recordUnread replaces what the base remembers about the sources that the build has looked at.
func (w *builder) recordUnread(ctx context.Context) error {
	before, err := w.base.readUnread(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	return runTransaction(ctx, w.base.db, func(tx *sql.Tx) error {
		for _, u := range before {
			if part := len(w.only[u.Source]) > 0; w.looksAt(u.Source) && !(part && u.Lasts) || !slices.Contains(w.settings.Sources, u.Source) {
				if _, err := tx.ExecContext(ctx, "DELETE FROM unread WHERE source = ? AND path = ?", u.Source, u.Path); err != nil {
					return err
				}
			}
		}
		for _, p := range w.report.Problems {
			u := newUnread(p, before, now)
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO unread (source, path, reason, since, last, looks, lasts) VALUES (?, ?, ?, ?, ?, ?, ?)",
				u.Source, u.Path, u.Reason, u.Since.UnixMilli(), u.Last.UnixMilli(), u.Looks, u.Lasts); err != nil {
				return err
			}
		}
		return nil
	})
}

// newUnread returns what is remembered about a problem.
func newUnread(p load.Problem, before []Unread, now time.Time) Unread {
	u := Unread{Source: p.Source, Path: p.Path, Reason: strings.ToValidUTF8(p.Err.Error(), "\uFFFD"), Since: now, Last: now, Looks: 1, Lasts: errors.Is(p.Err, load.ErrStopped)}
	if i := slices.IndexFunc(before, func(b Unread) bool { return b.Source == p.Source && b.Path == p.Path }); i >= 0 {
		u.Since, u.Looks = before[i].Since, before[i].Looks+1
	}
	return u
}
