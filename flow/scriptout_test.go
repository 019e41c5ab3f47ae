package flow

import "testing"

// A whole number that no integer type holds becomes a float: that is said.
func TestRoundedNumbersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"n": 123456789012345678901234567890}`:                                         "123456789012345678901234567890",
		`{"a": [1, {"n": -99999999999999999999}], "b": 123456789012345678901234567890}`: "-99999999999999999999",
		`{"n": 18446744073709551615, "m": -9223372036854775808, "f": 1e30, "z": -0}`:    "",
	} {
		if r, err := parseScriptOutput(text); err != nil || r.Rounded != want {
			t.Errorf("%s: %q, %v", text, r.Rounded, err)
		}
	}
}
