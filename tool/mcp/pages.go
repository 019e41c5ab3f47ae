package mcp

import "fmt"

// maxPages is the number of pages of a list that are read.
const maxPages = 1000

// readPages reads all pages of a list. read returns the items of the page at a
// cursor, and the cursor of the next page, which is empty after the last one. A list
// that repeats itself ends where it begins again: at a cursor that was used before,
// or at a page whose items are all known by the key that key returns.
func readPages[T any](key func(*T) string, read func(cursor string) ([]*T, string, error)) ([]*T, error) {
	all := []*T{}
	known := map[string]bool{}
	cursors := map[string]bool{"": true}
	for cursor := ""; len(cursors) <= maxPages; cursors[cursor] = true {
		items, next, err := read(cursor)
		if err != nil {
			return nil, err
		}
		fresh := len(items) == 0
		for _, item := range items {
			if item == nil || known[key(item)] {
				continue
			}
			known[key(item)], fresh = true, true
			all = append(all, item)
		}
		if next == "" || cursors[next] || !fresh {
			return all, nil
		}
		cursor = next
	}
	return nil, fmt.Errorf("the server's list has no end: raddle has read %d pages, and each of them names another one", maxPages)
}
