package graph

import (
	"bytes"
	"context"
	"slices"
)

// Change is a key whose stored value differs between two points.
type Change struct {
	Path string // of the frame: "" is the root
	Key  string
	Tag  string   // of the type or codec, at the second point if the key is present there
	Was  [][]byte // its parts at the first point, as in StoredValue; nil: absent
	Is   [][]byte // its parts at the second; nil: absent
}

// Diff lists the keys whose stored values differ between two points, of one thread or
// of two: by frame, then by key, including child graphs that have not ended at one of
// the points. It compares what is stored and needs no graph: a list that was written in
// other portions differs.
func Diff(ctx context.Context, st Store, a, b Point) ([]Change, error) {
	was, err := loadPoint(ctx, st, a)
	if err != nil {
		return nil, err
	}
	is, err := loadPoint(ctx, st, b)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, path := range unionKeys(was.frames, is.frames) {
		changes = append(changes, diffFrames(path, was.ensureFrame(path), is.ensureFrame(path))...)
	}
	return changes, nil
}

func diffFrames(path string, was, is *rawFrame) (changes []Change) {
	for _, key := range unionKeys(was.keys, is.keys) {
		c := Change{Path: path, Key: key, Tag: is.tags[key], Was: was.storedParts(key), Is: is.storedParts(key)}
		if (c.Was == nil) == (c.Is == nil) && slices.EqualFunc(c.Was, c.Is, bytes.Equal) {
			continue
		}
		if c.Tag == "" {
			c.Tag = was.tags[key]
		}
		changes = append(changes, c)
	}
	return changes
}

// storedParts returns the stored form of a key; nil: absent.
func (f *rawFrame) storedParts(key string) (parts [][]byte) {
	for _, p := range f.keys[key] {
		parts = append(parts, p.val)
	}
	return parts
}

// unionKeys lists the names that at least one of the maps has, sorted.
func unionKeys[V any](a, b map[string]V) []string {
	names := append(sortedKeys(a), sortedKeys(b)...)
	slices.Sort(names)
	return slices.Compact(names)
}
