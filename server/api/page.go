package api

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent: there are no more"`
}

// Paging has the parameters of a list.
type Paging struct {
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"500" doc:"at most this many"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before"`
}

// readCursor returns the key of the last item of the page before; "": there is none.
func (p Paging) readCursor() (key string, err error) {
	last, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || !utf8.Valid(last) || strings.ContainsFunc(string(last), unicode.IsControl) {
		return "", newCursorProblem()
	}
	return string(last), nil
}

// newCursorProblem returns the error about a cursor that cannot be read.
func newCursorProblem() error {
	return newProblem(http.StatusBadRequest, "wrong-cursor", "the cursor is not one of this list")
}

// writeCursor returns the cursor of the page after the item with a key.
func writeCursor(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// cut returns the page that was requested of a list. keyOf returns a key that is unique and does not change, and isPast
// whether an item comes after the one with a key: what is added in front of a page does not move it.
func cut[T any](p Paging, list []T, keyOf func(*T) string, isPast func(item *T, key string) bool) (*body[Page[T]], error) {
	page := Page[T]{Items: []T{}}
	last, err := p.readCursor()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if p.Cursor != "" && !isPast(&list[i], last) {
			continue
		}
		if len(page.Items) == p.Limit {
			page.Next = writeCursor(keyOf(&page.Items[p.Limit-1]))
			break
		}
		page.Items = append(page.Items, list[i])
	}
	return &body[Page[T]]{page}, nil
}
