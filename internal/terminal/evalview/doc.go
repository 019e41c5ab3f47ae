// Package evalview is raddle eval on a terminal: its flags, the line while an experiment runs, and its table.
package evalview
