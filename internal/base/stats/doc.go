// Package stats says what numbers of an experiment mean: means with intervals, whether one variant is worse than another
// beyond chance, and how many items it takes to know. Everything is a function of its arguments: resampling uses fixed
// seeds, so that the same results always give the same verdict.
package stats
