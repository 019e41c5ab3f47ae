// Package evalview is raddle eval and raddle dataset on a terminal: their flags, the line while an experiment runs, its
// table, and the items that are made of runs.
package evalview
