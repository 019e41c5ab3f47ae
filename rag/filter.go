package rag

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// A Filter says in which documents a search looks. The zero value is all of them; a document must meet all fields that
// are set.
type Filter struct {
	// Sources are paths of documents or folders, or ends of these from a slash on, or patterns such as **/*.pdf; nil:
	// all. A document needs to match one.
	Sources []string
	// Metadata are values that the metadata of a document must have.
	Metadata map[string]string
	// Since and Until are the earliest date of a document, and the date before which it must be; zero: any. A document
	// whose date is not known is left out if one is set.
	Since time.Time
	Until time.Time
}

// isZero reports whether the filter holds for all documents.
func (f *Filter) isZero() bool {
	return len(f.Sources) == 0 && len(f.Metadata) == 0 && f.Since.IsZero() && f.Until.IsZero()
}

// Validate reports all mistakes of f: patterns that cannot be read, and dates of which the later comes first.
func (f *Filter) Validate() error {
	var problems []error
	for _, s := range f.Sources {
		if s == "" || !doublestar.ValidatePattern(filepath.ToSlash(s)) {
			problems = append(problems, fmt.Errorf("the source %q cannot be read: write a path, or a pattern with closed brackets and braces", s))
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		problems = append(problems, fmt.Errorf("no date is both since %s and before %s", f.Since.Format(time.DateOnly), f.Until.Format(time.DateOnly)))
	}
	return errors.Join(problems...)
}

// matches reports whether a document meets the filter.
func (f *Filter) matches(path string, metadata map[string]string, date time.Time) bool {
	if len(f.Sources) > 0 && !slices.ContainsFunc(f.Sources, func(s string) bool { return matchesSource(path, s) }) {
		return false
	}
	for name, value := range f.Metadata {
		if got, ok := metadata[name]; !ok || got != value {
			return false
		}
	}
	if date.IsZero() && !(f.Since.IsZero() && f.Until.IsZero()) {
		return false
	}
	return (f.Since.IsZero() || !date.Before(f.Since)) && (f.Until.IsZero() || date.Before(f.Until))
}

// matchesSource reports whether a document is a source, lies in it, or matches its pattern.
func matchesSource(path, source string) bool {
	path = filepath.ToSlash(path)
	source = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(source), "./"), "/")
	if path == source || strings.HasSuffix(path, "/"+source) || strings.HasPrefix(path, source+"/") || strings.Contains(path, "/"+source+"/") {
		return true
	}
	for _, pattern := range []string{source, "/**/" + source, "**/" + source} {
		if ok, err := doublestar.Match(pattern, path); ok && err == nil {
			return true
		}
	}
	return false
}

// chunksOf returns for each chunk of the view whether its document meets the filter; nil: all do.
func (v *view) chunksOf(ctx context.Context, tx *sql.Tx, f Filter) ([]bool, error) {
	if f.isZero() {
		return nil, nil
	}
	documents, err := matchDocuments(ctx, tx, f)
	if err != nil {
		return nil, err
	}
	kept := make([]bool, len(v.ids))
	list, err := json.Marshal(documents)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT id FROM chunk WHERE document IN (SELECT value FROM json_each(?))", string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if i, ok := slices.BinarySearch(v.ids, id); ok {
			kept[i] = true
		}
	}
	return kept, rows.Err()
}

// matchDocuments returns the ids of the documents that meet a filter. The result is never nil.
func matchDocuments(ctx context.Context, tx *sql.Tx, f Filter) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT id, path, metadata, date FROM document WHERE live")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	documents := []int64{}
	for rows.Next() {
		var id, date int64
		var path, text string
		if err := rows.Scan(&id, &path, &text, &date); err != nil {
			return nil, err
		}
		var metadata map[string]string
		if len(f.Metadata) > 0 {
			if err := json.Unmarshal([]byte(text), &metadata); err != nil {
				return nil, err
			}
		}
		var when time.Time
		if date != 0 {
			when = time.UnixMilli(date)
		}
		if f.matches(path, metadata, when) {
			documents = append(documents, id)
		}
	}
	return documents, rows.Err()
}
