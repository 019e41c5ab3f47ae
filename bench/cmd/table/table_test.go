package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// files are the results that docs/performance.md shows.
var files = []string{"../../results/raddle.txt", "../../results/peers.txt", "../../results/others.txt"}

// The table and the picture of docs/performance.md are those of the results that are
// checked in. To renew them: make bench-table.
func TestThePageShowsTheResults(t *testing.T) {
	c, err := compare(files)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	c.markdown(&table)
	if page := read(t, "../../../docs/performance.md"); !strings.Contains(page, table.String()) {
		t.Errorf("docs/performance.md does not hold this table; replace its table of engines:\n%s", &table)
	}
	if picture := read(t, "../../../docs/performance.svg"); picture != string(c.svg()) {
		t.Error("docs/performance.svg is not the picture of bench/results: run make bench-table")
	}
	for j, e := range engines {
		measured := false
		for i := range shown {
			measured = measured || c.times[i][j] > 0
		}
		if !measured {
			t.Errorf("%s was not measured", e.name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLines(t *testing.T) {
	var r results
	for _, l := range []string{
		"goos: linux", "BenchmarkW1/steps=5/peer=raddle-all-2 \t 10\t 0 ns/op\t 4.0 cpu-ns/step", "BenchmarkW1/steps=5/peer=raddle-all-2 10 8.0 cpu-ns/step",
		"BenchmarkW1/steps=5/peer=floor-go-16 10 3 cpu-ns/step",
	} {
		if err := r.line(l); err != nil {
			t.Fatal(err)
		}
	}
	if all, floor := r.median("W1/steps=5", "raddle-all", "cpu-ns/step"), r.median("W1/steps=5", "floor-go", "cpu-ns/step"); all != 6 || floor != 3 {
		t.Errorf("raddle-all %v, floor-go %v, peers %q", all, floor, r.peers)
	}
	if err := r.line("BenchmarkW1/peer=a-2 10 x cpu-ns/step"); err == nil {
		t.Error("x is a number")
	}
	for v, want := range map[float64]string{0: "–", 0.031: "0.03", 0.56: "0.6", 9.91: "9.9", 9.96: "10", 727.4: "730", 56_512: "57,000", 1_234_567: "1,200,000"} {
		if got := times(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
