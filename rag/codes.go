package rag

import (
	"math"
	"slices"
)

// codes hold vectors of length one in two bytes for each number, while floats take four. The first bytes give an
// estimate with a known bound of its error: a vector that cannot be among the best by this estimate is not compared
// again. The second bytes make the estimate so precise that a search for five chunks reads little more than five
// vectors from the file.
type codes struct {
	dims  int
	width int       // of a code: dims, filled up with zeros to a multiple of lanes
	first []int8    // 127 is the largest number of the vector
	last  []int8    // the rest that first does not express, in steps 254 times as fine
	scale []float32 // the value of a one in first
	loss  []float32 // the length of the rest that first does not express
}

const (
	lanes     = 32               // numbers that are multiplied at a time
	most      = math.MaxInt8     // of a code
	lastSteps = 2 * math.MaxInt8 // steps of last for one of first
	slack     = 2e-5             // for the roundings of float32
	rounding  = float32(3 << 22) // added and taken away again, it leaves a small number without its fraction
	maxSum    = math.MaxInt32 / most
)

func newCodes(n, dims int) *codes {
	width := (dims + lanes - 1) / lanes * lanes
	return &codes{dims: dims, width: width, first: make([]int8, n*width), last: make([]int8, n*width),
		scale: make([]float32, n), loss: make([]float32, n)}
}

// setVector stores the i-th vector. Different ones may be stored at the same time.
func (c *codes) setVector(i int, v []float32) {
	largest := largestOf(v)
	if largest == 0 {
		return
	}
	scale := largest / most
	inverse := most / largest
	first := c.first[i*c.width:][:len(v)]
	last := c.last[i*c.width:][:len(v)]
	var sum float32
	for j, x := range v {
		x *= inverse
		whole := (x + rounding) - rounding
		rest := x - whole
		fine := (rest*lastSteps + rounding) - rounding
		first[j], last[j] = int8(whole), int8(fine)
		sum += rest * rest
	}
	c.scale[i] = scale
	c.loss[i] = scale * float32(math.Sqrt(float64(sum)))
}

// largestOf returns the largest absolute value. Without their sign, floats have the same order as their bits.
func largestOf(v []float32) float32 {
	var largest uint32
	for _, x := range v {
		largest = max(largest, math.Float32bits(x)&math.MaxInt32)
	}
	return math.Float32frombits(largest)
}

// A codedQuery is a vector of length one, made ready for being compared with codes.
type codedQuery struct {
	codes []int16
	unit  float32 // the value of a one
	loss  float32 // the length of the rest
}

// encodeQuery scales the numbers to the largest values whose sum cannot overflow.
func (c *codes) encodeQuery(q []float32) codedQuery {
	sum := 0.0
	for _, x := range q {
		sum += math.Abs(float64(x))
	}
	unit := max(float64(largestOf(q))/math.MaxInt16, sum/(maxSum-float64(len(q))))
	out := codedQuery{codes: make([]int16, c.width), unit: float32(unit)}
	if unit == 0 {
		return out
	}
	missing := 0.0
	for i, x := range q {
		n := math.RoundToEven(float64(x) / unit)
		out.codes[i] = int16(n)
		missing += (float64(x) - n*unit) * (float64(x) - n*unit)
	}
	out.loss = float32(math.Sqrt(missing))
	return out
}

// A cosineEstimate is an estimate of the cosine between a vector and a codedQuery.
type cosineEstimate struct {
	at    uint32
	value float32
	error float32 // the largest possible error
}

// estimateRough compares by the first bytes.
func (c *codes) estimateRough(q codedQuery, i int) cosineEstimate {
	sum := dotCodes(q.codes, c.first[i*c.width:][:c.width])
	return cosineEstimate{uint32(i), float32(sum) * (c.scale[i] * q.unit), c.loss[i] + q.loss*(1+c.loss[i]) + slack}
}

// estimateFine compares by both bytes.
func (c *codes) estimateFine(q codedQuery, i int) cosineEstimate {
	sum := float64(dotCodes(q.codes, c.first[i*c.width:][:c.width])) + float64(dotCodes(q.codes, c.last[i*c.width:][:c.width]))/lastSteps
	left := c.scale[i] * float32(math.Sqrt(float64(c.dims))) / (2 * lastSteps)
	return cosineEstimate{uint32(i), float32(sum * float64(c.scale[i]) * float64(q.unit)), left*1.01 + q.loss*(1+left) + slack}
}

// topScores keeps a lower bound of the best of some numbers: a number that is certainly below it is not among them.
type topScores struct {
	top  int
	best []float32 // a heap, the least first
}

// leastScore returns the bound. It is zero while there are fewer numbers: results below zero are not wanted.
func (t *topScores) leastScore() float32 {
	if len(t.best) < t.top {
		return 0
	}
	return max(0, t.best[0])
}

func (t *topScores) add(x float32) {
	if len(t.best) < t.top {
		t.best = append(t.best, x)
		for i := len(t.best) - 1; i > 0 && t.best[i] < t.best[(i-1)/2]; i = (i - 1) / 2 {
			t.best[i], t.best[(i-1)/2] = t.best[(i-1)/2], t.best[i]
		}
		return
	}
	if x <= t.best[0] {
		return
	}
	t.best[0] = x
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.best); child++ {
			if t.best[child] < t.best[least] {
				least = child
			}
		}
		if least == i {
			return
		}
		t.best[i], t.best[least] = t.best[least], t.best[i]
		i = least
	}
}

// filterEstimates keeps the estimates whose true value may be at least x.
func filterEstimates(guesses []cosineEstimate, x float32) []cosineEstimate {
	return slices.DeleteFunc(guesses, func(g cosineEstimate) bool { return g.value+g.error < x })
}

// scanRange compares with the vectors from one to another, and returns those that may be among the best top of them.
func (c *codes) scanRange(q codedQuery, from, to, top int, kept []bool) (found []cosineEstimate, t topScores) {
	t.top = top
	for i := from; i < to; i++ {
		if kept != nil && !kept[i] {
			continue
		}
		g := c.estimateRough(q, i)
		if g.value+g.error < t.leastScore() || c.scale[i] == 0 {
			continue
		}
		t.add(g.value - g.error)
		found = append(found, g)
	}
	return found, t
}

// nearestVectors returns a set of vectors that includes the best top, as small as the codes allow.
func (c *codes) nearestVectors(vector []float32, top int, kept []bool) []cosineEstimate {
	q := c.encodeQuery(vector)
	var found []cosineEstimate
	all := topScores{top: top}
	for _, part := range mapParts(len(c.scale), func(from, to int) scanResult {
		guesses, t := c.scanRange(q, from, to, top, kept)
		return scanResult{guesses, t}
	}) {
		for _, x := range part.floor.best {
			all.add(x)
		}
		found = append(found, part.found...)
	}
	found = filterEstimates(found, all.leastScore())
	precise := topScores{top: top}
	for i, g := range found {
		found[i] = c.estimateFine(q, int(g.at))
		precise.add(found[i].value - found[i].error)
	}
	return filterEstimates(found, precise.leastScore())
}

type scanResult struct {
	found []cosineEstimate
	floor topScores
}
