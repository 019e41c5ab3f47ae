package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"raddle.dev/internal/base/strictyaml"
)

// Fusion says how the searches of a knowledge base join their rankings: the fields `fusion` and `weights`.
type Fusion struct {
	Method string // one of FusionMethods; empty: the field is not set
	// The weights; nil: not set.
	Meaning, Words, Entities *float64
}

// FusionMethods are the values of the field `fusion`.
var FusionMethods = []string{"scores", "ranks", "model"}

// ReadFusion reads `fusion` and `weights`. It reports an unknown method, and weights that are no shares.
func ReadFusion(m *strictyaml.Fields) (f Fusion) {
	if m.HasValue("fusion") {
		f.Method = m.ReadText("fusion", strictyaml.Optional)
		if !slices.Contains(FusionMethods, f.Method) {
			m.AddFault(m.FindField("fusion"), "fusion", "invalid-value",
				fmt.Sprintf("unknown fusion %q: write one of %s", f.Method, strings.Join(FusionMethods, ", ")))
		}
	}
	n := m.ReadMapping("weights")
	if n == nil {
		return f
	}
	w := strictyaml.NewFields(m.Problems, strictyaml.Mapping{Pos: m.Source.PositionOf(n), Node: n}, "weights")
	zeros := 0
	for _, each := range []struct {
		name string
		to   **float64
	}{{"meaning", &f.Meaning}, {"words", &f.Words}, {"entities", &f.Entities}} {
		x := w.ReadFloat(each.name)
		switch {
		case x == nil:
		case !(*x >= 0) || math.IsInf(*x, 0):
			w.AddFault(w.FindField(each.name), each.name, "invalid-value", fmt.Sprintf("invalid weight %v: write a number, at least 0", *x))
		case *x == 0:
			zeros++
		}
		*each.to = x
	}
	if zeros == len(w.Known) {
		m.AddFault(n, "weights", "invalid-value", "all weights are 0, so that nothing is ever found: make one larger")
	}
	for _, unknown := range w.UnknownKeys("", nil) {
		unknown.Message = "weights: there are weights of meaning, words and entities only"
		m.Problems.Add(unknown)
	}
	return f
}
