// Package storage holds what raddle keeps: its configuration and keys, stores by their addresses, past runs with their
// lists and locks, exports, bundles of agents, and what was attached to prompts.
package storage
