package edit

import (
	"encoding/base64"
	"hash/fnv"
	"strings"
)

const (
	sumLength = 4    // characters of the sum of a line
	mostSums  = 5000 // lines; a longer file has no sums
)

// SumLines returns a short sum of each line of a file, by which the lines that differ from those of a later one can be
// found. It is empty if the file has too many lines.
func SumLines(file string) string {
	lines := splitText(file).lines
	if len(lines) > mostSums {
		return ""
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(sumLine(l))
	}
	return b.String()
}

// sumLine returns 24 bits of a hash: they tell where a file differs, not whether it does.
func sumLine(line string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(line)) // it never fails
	sum := h.Sum32()
	sum ^= sum >> 24
	return base64.RawStdEncoding.EncodeToString([]byte{byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// SplitSums returns the sums of [SumLines], one a line.
func SplitSums(sums string) string {
	var b strings.Builder
	for ; len(sums) >= sumLength; sums = sums[sumLength:] {
		b.WriteString(sums[:sumLength] + "\n")
	}
	return b.String()
}

// A Region is a range of lines of a file, counted from 0: From is the first one, To the one behind the last.
type Region struct{ From, To int }

// ShowRegions returns a result that shows lines of a file, and a few around them.
func ShowRegions(file string, where []Region) Result {
	r := Result{Text: file}
	for _, w := range where {
		r.where = append(r.where, region{w.From, w.To})
	}
	r.widenRegions(splitText(file))
	return r
}
