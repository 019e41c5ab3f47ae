package agent

import (
	"reflect"
	"testing"

	"raddle.dev/graph"
)

// TestTypesInJournals holds the names of types that journals record with their values: a run that began before a rename must still open.
func TestTypesInJournals(t *testing.T) {
	for key, names := range map[string][2]string{
		"spent":     {typeOf(Spent), "agent.Spend"},
		"grants":    {typeOf(Grants), "[]string"},
		"todo":      {typeOf(Todo), "agent.TodoList"},
		"continued": {typeOf(Continued), "int"},
		"views":     {typeOf(Views), "map[string]agent.View"},
		"one_shots": {typeOf(OneShots), "map[string][]llm.Message"},
		"overrides": {typeOf(Overrides), "map[string]agent.Override"},
		"messages":  {typeOf(Messages), "[]agent.Entry"},
	} {
		if names[0] != names[1] {
			t.Errorf("key %q is recorded with the type %s, journals written before have %s", key, names[0], names[1])
		}
	}
}

func typeOf[T any](graph.Key[T]) string { return reflect.TypeFor[T]().String() }
