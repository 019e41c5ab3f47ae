package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// results are measured values by row and unit and peer, in the order of the files.
type results struct {
	rows, peers []string
	values      map[key][]float64
}

type key struct{ row, peer, unit string }

// read adds the benchmark lines of a file.
func (r *results) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if err := r.line(sc.Text()); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return sc.Err()
}

func (r *results) line(text string) error {
	w := strings.Fields(text)
	if len(w) < 4 || !strings.HasPrefix(w[0], "Benchmark") {
		return nil
	}
	row, peer, ok := strings.Cut(strings.TrimPrefix(w[0], "Benchmark"), "/peer=")
	if !ok {
		return nil
	}
	if i := strings.LastIndexByte(peer, '-'); i > 0 && strings.Trim(peer[i+1:], "0123456789") == "" {
		peer = peer[:i] // without GOMAXPROCS
	}
	if r.values == nil {
		r.values = map[key][]float64{}
	}
	if !slices.Contains(r.rows, row) {
		r.rows = append(r.rows, row)
	}
	if !slices.Contains(r.peers, peer) {
		r.peers = append(r.peers, peer)
	}
	for i := 2; i+1 < len(w); i += 2 {
		v, err := strconv.ParseFloat(w[i], 64)
		if err != nil {
			return fmt.Errorf("line %q: %w", text, err)
		}
		k := key{row, peer, w[i+1]}
		r.values[k] = append(r.values[k], v)
	}
	return nil
}

// median returns the median of what was measured; 0: nothing was.
func (r *results) median(row, peer, unit string) float64 {
	v := r.values[key{row, peer, unit}]
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// print writes a table of one unit.
func (r *results) print(w io.Writer, unit, base string) {
	_, _ = fmt.Fprintf(w, "| %s | %s |\n|---|%s\n", unit, strings.Join(r.peers, " | "), strings.Repeat("---:|", len(r.peers)))
	for _, row := range r.rows {
		_, _ = fmt.Fprintf(w, "| %s |", row)
		b := r.median(row, base, unit)
		for _, p := range r.peers {
			v := r.median(row, p, unit)
			switch {
			case v == 0:
				_, _ = fmt.Fprint(w, " – |")
			case b > 0 && p != base:
				_, _ = fmt.Fprintf(w, " %s (%s×) |", num(v), num(v/b))
			default:
				_, _ = fmt.Fprintf(w, " %s |", num(v))
			}
		}
		_, _ = fmt.Fprintln(w)
	}
}

func num(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
