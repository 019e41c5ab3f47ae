// Package dataset is the format of data sets: what an agent is given, and what is expected of it, one item for each run
// of it. [Read] reads JSONL, JSON, YAML and CSV, also with the names that other programs give the same columns, and
// reports every problem at once with its place; [AppendLine] writes an item as a line of JSONL. The package runs nothing
// and scores nothing.
package dataset
