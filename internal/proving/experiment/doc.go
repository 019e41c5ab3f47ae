// Package experiment runs an agent with every item of a data set, as it is and with some things replaced, scores the
// results, and says which variant is better. Each cell, an item in a variant and a repetition, is a run of the store whose
// id follows from everything that made it: an experiment that was interrupted continues, and a cell is never paid twice.
package experiment
