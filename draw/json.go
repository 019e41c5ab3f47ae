package draw

import (
	"encoding/json"
	"io"

	"raddle.dev/graph"
)

// WriteJSON writes s as indented JSON, in the order of declaration. It also writes what cannot be drawn, such as an edge
// to a node that does not exist; it fails for a structure that contains itself.
func WriteJSON(w io.Writer, s graph.Structure) error {
	if err := checkDepth(&s); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
