package flow

import (
	"maps"
	"slices"
)

// sortedNames returns the sorted keys of a map.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
