// Package doctor checks the surroundings of a process: its configuration, keys, models, store and programs, the
// terminal, and the servers of an agent. Each result says what to do. It changes nothing.
package doctor
