// Package progress shows what a run is doing, from its events alone: live lines for a
// [term.Screen], and the text of a reply while a model writes it.
package progress
