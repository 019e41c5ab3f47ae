// Package coverage counts which nodes and edges of a graph its runs have reached, and how often its loops and maps were
// repeated. It reads the structure of an agent and the events of its runs, and nothing else.
package coverage
