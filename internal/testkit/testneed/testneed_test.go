package testneed

import "testing"

func TestMayUse(t *testing.T) {
	groups, err := readGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		test, program string
		may           bool
	}{
		{"TestScripts", "bash", true},
		{"TestExtraScripts/one", "bash", true},
		{"BenchmarkScripts", "bash", true},
		{"TestScripts", "tsx", false},
		{"TestExtraScripts/one", "tsx", true},
		{"BenchmarkExtraStore", "postgres", true},
		{"BenchmarkStore", "postgres", false},
		{"TestExtract", "tsx", false},
		{"TestExtra", "tsx", false},
		{"TestOptionalLoaders", "tsx", true},
		{"TestOptional", "tsx", false},
		{"TestOptionalLoaders", "pdftotext", true},
		{"TestExtraLoaders", "pdftotext", false},
		{"TestScripts", "unknown", false},
	} {
		if err := mayUse(c.test, c.program, groups[c.program]); (err == nil) != c.may {
			t.Errorf("%s may use %s: %v, want %t", c.test, c.program, err, c.may)
		}
	}
}
