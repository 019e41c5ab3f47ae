//go:build raddle_defect

package graph

// forgetsEffects makes every effect happen again when its node runs again.
const forgetsEffects = true
