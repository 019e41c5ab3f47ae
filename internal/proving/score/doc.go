// Package score says how good a result of an agent is: a [Scorer] makes a number from 0 to 1 with a reason of an item of a
// data set and of what a run has made of it. [Read] and [ReadList] read scorers as people write them, with every problem
// and its place. What a scorer needs from outside, a script or the judgement of a model, it asks an [Outside] for;
// everything else is a function of the item and the result.
package score
