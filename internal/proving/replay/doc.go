// Package replay executes a recorded run again, offline, against its agent as it is now. Everything that a run gets
// from outside (replies of models, results of tools, outputs of scripts, searches, answers) comes from the journal,
// found by the path of the node, the name and the key of the effect. Nothing is sent, written or run. The first thing
// that differs stops it.
//
// A journal does not hold what was sent. Therefore the run is executed twice: with the files that it had when it was
// recorded, and with those of now. What the two ask of models, scripts, tools and agents is compared. Paths, questions,
// outputs and failures are compared with the journal itself.
package replay
