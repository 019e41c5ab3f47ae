// Package terminal holds what a person at a terminal meets: commands, conversations, setup, doctor, and the manual of a
// release.
package terminal
