package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// shown are the rows of the comparison.
var shown = []struct{ name, row string }{
	{"W1, a chain of 1,000 nodes", "W1Chain/steps=1000"},
	{"W2, 100 tasks and a join", "W2FanOut/width=100"},
	{"W3, a loop of 1,000 steps", "W3Loop/iters=500"},
	{"W4, 400 messages", "W4Messages/saver=none/steps=400"},
	{"W4, 400 messages, SQLite", "W4Messages/saver=sqlite/steps=400"},
	{"W5, 1 MB next to a counter, in memory", "W5Ckpt/state=1MB/saver=mem"},
	{"W5, 1 MB next to a counter, SQLite", "W5Ckpt/state=1MB/saver=sqlite"},
	{"W6, a run of 5 nodes", "W6Throughput"},
	{"W7, a question and its resume", "W7Interrupt"},
}

// engines are the peers of the comparison, by their names in results.
var engines = []struct{ name, peer, colour string }{
	{"raddle", "raddle", "#0b6e4f"},
	{"raddle, all events", "raddle-all", "#6bbf9f"},
	{"trpc-agent-go", "trpc", "#c0392b"},
	{"eino", "eino", "#d68910"},
	{"ADK for Go", "adk", "#8e44ad"},
	{"LangGraph.js", "langgraphjs", "#2874a6"},
	{"LangGraph (Python)", "langgraph-py", "#5dade2"},
	{"Burr", "burr", "#7f8c8d"},
	{"pydantic-graph", "pydantic-graph", "#34495e"},
}

// comparison holds the processor time of engines as multiples of floor-go; 0: not measured.
type comparison struct{ times [][]float64 } // by row and engine

// compare reads the files. An engine is compared with the floor-go of its file.
func compare(files []string) (*comparison, error) {
	c := &comparison{times: make([][]float64, len(shown))}
	for i := range shown {
		c.times[i] = make([]float64, len(engines))
	}
	const unit = "cpu-ns/step"
	for _, file := range files {
		var r results
		if err := r.read(file); err != nil {
			return nil, err
		}
		for i, s := range shown {
			floor := r.median(s.row, "floor-go", unit)
			for j, e := range engines {
				v := r.median(s.row, e.peer, unit)
				if v == 0 {
					continue
				}
				if floor == 0 {
					return nil, fmt.Errorf("%s: %s of %s has no floor-go beside it", file, s.row, e.peer)
				}
				c.times[i][j] = v / floor
			}
		}
	}
	return c, nil
}

// markdown writes the table.
func (c *comparison) markdown(w io.Writer) {
	_, _ = fmt.Fprint(w, "| × floor-go |")
	for _, e := range engines {
		_, _ = fmt.Fprintf(w, " %s |", e.name)
	}
	_, _ = fmt.Fprint(w, "\n|---|")
	for range engines {
		_, _ = fmt.Fprint(w, "---:|")
	}
	_, _ = fmt.Fprintln(w)
	for i, s := range shown {
		_, _ = fmt.Fprintf(w, "| %s |", s.name)
		for _, v := range c.times[i] {
			_, _ = fmt.Fprintf(w, " %s |", times(v))
		}
		_, _ = fmt.Fprintln(w)
	}
}

// times is a multiple with two digits, or one if it is small.
func times(v float64) string {
	switch {
	case v == 0:
		return "–"
	case v < 0.095:
		return fmt.Sprintf("%.1g", v)
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	s := fmt.Sprintf("%.0f", math.Round(v/unit)*unit)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The measures of the picture.
const (
	pictureWidth = 860
	labelWidth   = 250
	barHeight    = 9
	rowGap       = 14
	headHeight   = 62
	least, most  = 0.01, 10000.0 // multiples at the ends of the scale
)

// svg draws the table: bars on a logarithmic scale.
func (c *comparison) svg() []byte {
	var b bytes.Buffer
	rowHeight := barHeight*len(engines) + rowGap
	height := headHeight + rowHeight*len(shown) + 24
	x := func(v float64) float64 {
		part := math.Log(min(max(v, least), most)/least) / math.Log(most/least)
		return labelWidth + part*(pictureWidth-labelWidth-60)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<text x="8" y="16" font-size="13">Processor time of a step (W6, W7: a run), as a multiple of floor-go; logarithmic, shorter is better</text>`+"\n")
	for j, e := range engines {
		left, top := 8+(j%5)*168, 24+(j/5)*15
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", left, top, e.colour, left+14, top+9, e.name)
	}
	for v := least; v <= most; v *= 10 {
		width := 0.5
		if v > 0.9 && v < 1.1 {
			width = 1.5
		}
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#999999" stroke-width="%.1f"/>`, x(v), headHeight, x(v), height-20, width)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%g×</text>`+"\n", x(v), height-6, math.Round(v*100)/100)
	}
	for i, s := range shown {
		top := headHeight + i*rowHeight
		fmt.Fprintf(&b, `<text x="8" y="%d">%s</text>`+"\n", top+rowHeight/2, s.name)
		for j, v := range c.times[i] {
			if v == 0 {
				continue
			}
			y := top + rowGap/2 + j*barHeight
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y, x(v)-labelWidth, barHeight-1, engines[j].colour)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="8">%s</text>`+"\n", x(v)+3, y+barHeight-2, times(v))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
