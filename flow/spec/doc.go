// Package spec reads the two file formats, graph.yaml and config.yaml: their fields with their defaults, where each
// stands, and the templates and edges in them. Which types of nodes exist is a parameter ([Kinds]). It reads text and
// nothing else: no other file, no model, no environment.
package spec
