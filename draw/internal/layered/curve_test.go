package layered

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A smooth line passes its points, is vertical at both ends, and never leaves the box between two points.
func TestSmoothLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 61))
	for range 500 {
		line := []Point{{rng.IntN(200), 0}}
		for range 1 + rng.IntN(6) {
			last := line[len(line)-1]
			line = append(line, Point{last.X + rng.IntN(3)*(rng.IntN(101)-50), last.Y + 12 + rng.IntN(60)})
		}
		path := smoothLine(line)
		if path[0] != line[0] || path[len(path)-1] != line[len(line)-1] || path[1].X != line[0].X ||
			path[len(path)-2].X != line[len(line)-1].X {
			t.Fatalf("%v: the ends of %v", line, path)
		}
		for i, p := range line {
			if x := xAt(path, p.Y); math.Abs(x-float64(p.X)) > 1 {
				t.Fatalf("%v: at %v the path is at %.1f", line, p, x)
			}
			if i == 0 {
				continue
			}
			a := line[i-1]
			before := float64(a.X)
			for y := a.Y; y <= p.Y; y++ {
				x := xAt(path, y)
				if x < float64(min(a.X, p.X))-1 || x > float64(max(a.X, p.X))+1 {
					t.Fatalf("%v: the path leaves the box from %v to %v at %d, %.1f", line, a, p, y, x)
				}
				if (x-before)*float64(p.X-a.X) < -1 {
					t.Fatalf("%v: the path turns between %v and %v", line, a, p)
				}
				before = x
			}
		}
	}
	if smoothLine(nil) != nil || !slices.Equal(smoothLine([]Point{{1, 2}}), []Point{{1, 2}}) {
		t.Error("a line without a second point is not itself")
	}
	vertical := smoothLine([]Point{{5, 0}, {5, 10}, {5, 20}, {5, 40}})
	if want := []Point{{5, 0}, {5, 20}, {5, 20}, {5, 40}}; !slices.Equal(vertical, want) {
		t.Errorf("a vertical line is %v, want one curve %v", vertical, want)
	}
}

// A curve from the side of a node leaves it level, arrives upright, and does not go back behind its start.
func TestCurvesFromSides(t *testing.T) {
	for _, side := range []int{-1, 1} {
		for _, to := range []Point{{40, 16}, {40, -16}, {16, 16}, {8, 16}, {0, 0}, {3, -16}} {
			from := Point{100, 50}
			end := Point{from.X + side*to.X, from.Y + to.Y}
			path := append([]Point{from}, curveFromSide(from, end, side)...)
			if len(path) != 7 || path[6] != end || path[1].Y != from.Y || path[5].X != end.X {
				t.Errorf("side %d to %v: %v", side, end, path)
			}
			for _, p := range path {
				if (p.X-from.X)*side < 0 || (p.X-end.X)*side > 0 {
					t.Errorf("side %d to %v: %v leaves the space between", side, end, p)
				}
			}
		}
	}
}

// Positions are moved as little as possible: no other ones with the distance cost less.
func TestSeparatePositionsIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 71))
	for range 400 {
		wants := make([]targetPosition, 1+rng.IntN(4))
		step := rng.IntN(4)
		for i := range wants {
			wants[i] = targetPosition{at: rng.IntN(9) - 4, weight: 1 + 4*rng.IntN(2)}
		}
		got := separatePositions(wants, step)
		for i := 1; i < len(got); i++ {
			if got[i]-got[i-1] < step {
				t.Fatalf("%v, step %d: %v", wants, step, got)
			}
		}
		if cost, best := moveCost(wants, got), leastCost(wants, nil, step); cost != best {
			t.Fatalf("%v, step %d: %v costs %d, and %d is possible", wants, step, got, cost, best)
		}
	}
}

func moveCost(wants []targetPosition, at []int) (cost int) {
	for i, w := range wants {
		cost += w.weight * (at[i] - w.at) * (at[i] - w.at)
	}
	return cost
}

// leastCost tries all positions after those that are given.
func leastCost(wants []targetPosition, at []int, step int) int {
	if len(at) == len(wants) {
		return moveCost(wants, at)
	}
	first := -16
	if len(at) > 0 {
		first = at[len(at)-1] + step
	}
	best := math.MaxInt
	for x := first; x <= 16; x++ {
		best = min(best, leastCost(wants, append(at[:len(at):len(at)], x), step))
	}
	return best
}

func TestFloorDiv(t *testing.T) {
	for a := -20; a <= 20; a++ {
		for b := 1; b <= 7; b++ {
			if got, want := floorDiv(a, b), int(math.Floor(float64(a)/float64(b))); got != want {
				t.Errorf("%d / %d is %d, want %d", a, b, got, want)
			}
		}
	}
}
