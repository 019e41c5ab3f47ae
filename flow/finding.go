package flow

import "raddle.dev/internal/strictyaml"

// A Finding is one thing that a check says about a file, with its place.
type Finding = strictyaml.Finding

// A Pos is a place in a file. Lines and columns start at 1, columns count characters. The zero Pos is no place.
type Pos = strictyaml.Pos
