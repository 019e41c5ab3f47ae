package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
)

// TestNearPlaceholders checks which texts between double braces are reported, and what is to be written instead.
func TestNearPlaceholders(t *testing.T) {
	for text, want := range map[string][]string{
		"{{ x }} and {{y }} and {{ x }}": {"write {{x}}", "write {{y}}"},
		"{{\tx.a[0] }}":                  {"write {{x.a[0]}}"},
		"{{dash-key}}":                   {"rename the key, for example to dash_key: keys in placeholders have letters, digits and _"},
		"{{ dash-key }}":                 {"rename the key, for example to dash_key: keys in placeholders have letters, digits and _"},
		"{{list[-1]}}":                   {"write the index of an item from the start: key[0]"},
		"{{odd key}}":                    {"rename the key, for example to odd_key: keys in placeholders have letters, digits and _"},
		"{{two words}}":                  nil, // a text
		"{{#if x}} {{a | b}} {{x}}":      nil,
		"{{}} {{ }} {{-}} {{1 - 2}}":     nil,
	} {
		file := mustParse(t, fmt.Sprintf("name: g\nstart: a\ninitial_state: {x: 1, y: 2, list: [1], dash-key: 1, odd key: 1}\nnodes:\n  a: {type: end, output: %q}\n", text))
		var got []string
		for _, f := range check.AdviseFile(file, nil) {
			if f.Code == "template-literal" {
				got = append(got, f.Hint)
			}
		}
		if diff := cmp.Diff(want, slices.Clip(got)); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}
