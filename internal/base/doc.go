// Package base is the foundation: files, processes, texts, YAML, terminals, networks, the box. Nothing here knows
// models, agents or runs, and any package of the module may import it.
package base
