// Package runs reads what a store holds of runs that have started: it lists and shows
// them, their calls and the branches of their work, compares and copies them, and shortens
// or removes their journals. It also has the locks that keep two processes from driving
// one run. It starts and resumes nothing, and needs no agent, model or configuration.
package runs
