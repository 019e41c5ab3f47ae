package flow

import (
	"maps"
	"slices"
)

// sortedNames are the keys of a map in the order of their bytes.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
