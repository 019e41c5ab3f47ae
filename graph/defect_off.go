//go:build !raddle_defect

package graph

// forgetsEffects is true in binaries with a planted defect, which crash tests must find.
const forgetsEffects = false
