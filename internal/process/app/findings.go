package app

import (
	"errors"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// FindingsOf returns the findings with positions that an error contains.
func FindingsOf(err error) []strictyaml.Finding {
	var (
		load    *flow.LoadError
		refused *spec.ValidationError
		strict  *StrictError
		list    strictyaml.Lister
	)
	switch {
	case errors.As(err, &load):
		return load.Findings
	case errors.As(err, &refused):
		return refused.Findings
	case errors.As(err, &strict):
		return strict.Findings
	case errors.As(err, &list):
		return list.ListFindings()
	}
	return nil
}
