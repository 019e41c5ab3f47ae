package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"raddle.dev/internal/base/stats"
)

// A scripted model answers an item right with a probability that depends on how hard the item is.
type model struct{ skill float64 }

// score returns the mean score of an item after some repetitions.
func (m model) score(random *rand.Rand, hard float64, repeat int) float64 {
	right := 0
	for range repeat {
		if random.Float64() < min(1, max(0, m.skill-hard)) {
			right++
		}
	}
	return float64(right) / float64(repeat)
}

// truth is the mean score over all items that there could be: they are equally hard from 0 to 0.2.
func (m model) truth() float64 { return m.skill - 0.1 }

// In 400 experiments, 95 ± 3 % of the intervals contain the truth, for several qualities, numbers of items and of
// repetitions; and a variant that is not worse is called so in at most 5 % of them, also if there are several variants.
func TestCoverage(t *testing.T) {
	const experiments = 400
	for _, c := range []struct {
		name     string
		base     model
		variants []model
		items    int
		repeat   int
	}{
		{"even", model{0.6}, []model{{0.6}}, 100, 1},
		{"good", model{0.95}, []model{{0.95}}, 100, 1},
		{"better", model{0.6}, []model{{0.8}}, 100, 1},
		{"worse", model{0.9}, []model{{0.6}}, 100, 3},
		{"several", model{0.7}, []model{{0.7}, {0.7}, {0.7}, {0.7}}, 100, 1},
		{"mixed", model{0.7}, []model{{0.7}, {0.95}, {0.7}}, 100, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(c.items)))
			means := 0
			gaps := 0
			wrong := 0
			for range experiments {
				hard := make([]float64, c.items)
				base := make([]float64, c.items)
				for n := range hard {
					hard[n] = random.Float64() * 0.2
					base[n] = c.base.score(random, hard[n], c.repeat)
				}
				if m := stats.MeanOf(base); m.Low <= c.base.truth() && c.base.truth() <= m.High {
					means++
				}
				var all []*stats.Difference
				for _, v := range c.variants {
					scores := make([]float64, c.items)
					for n := range hard {
						scores[n] = v.score(random, hard[n], c.repeat)
					}
					d := stats.Differ(scores, base)
					all = append(all, &d)
				}
				truth := c.variants[0].truth() - c.base.truth()
				if all[0].Low <= truth && truth <= all[0].High {
					gaps++
				}
				stats.Correct(all)
				for n, d := range all {
					if d.IsWorse() && c.variants[n].skill >= c.base.skill {
						wrong++
						break
					}
				}
			}
			for what, got := range map[string]int{"means": means, "differences": gaps} {
				if share := float64(got) / experiments; share < 0.92 || share > 0.98 {
					t.Errorf("%.1f %% of the intervals of %s contain the truth, want 95 ± 3 %%", 100*share, what)
				}
			}
			if share := float64(wrong) / experiments; share > 0.05 {
				t.Errorf("%.1f %% of the experiments call a variant worse that is not, want at most 5 %%", 100*share)
			}
		})
	}
}

// A variant that is clearly worse is found, and the number of items that is said to be needed finds it four times of
// five.
func TestPower(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	base := model{0.9}
	worse := model{0.8}
	draw := func(items int) stats.Difference {
		scores := make([]float64, items)
		other := make([]float64, items)
		for n := range scores {
			hard := random.Float64() * 0.2
			scores[n] = worse.score(random, hard, 1)
			other[n] = base.score(random, hard, 1)
		}
		return stats.Differ(scores, other)
	}
	large := draw(20_000)
	found := 0
	for range 300 {
		if d := draw(large.Needed); d.IsWorse() {
			found++
		}
	}
	if share := float64(found) / 300; share < 0.7 || share > 0.9 {
		t.Errorf("with %d items a difference of 0.1 is found in %.0f %%, want about 80 %%", large.Needed, 100*share)
	}
}

func TestDegenerate(t *testing.T) {
	if got := stats.MeanOf([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); got != (stats.Interval{Mean: 1, Low: 0.7, High: 1}) {
		t.Errorf("ten ones: %+v", got)
	}
	if got := stats.MeanOf([]float64{1}); got != (stats.Interval{Mean: 1, High: 1}) {
		t.Errorf("one: %+v", got)
	}
	if got := stats.MeanOf(nil); got != (stats.Interval{High: 1}) {
		t.Errorf("nothing: %+v", got)
	}
	same := stats.Differ([]float64{0.5, 1, 0}, []float64{0.5, 1, 0})
	if same.P != 1 || same.Needed != 0 || same.Low != -1 || same.High != 1 || same.IsWorse() {
		t.Errorf("no difference: %+v", same)
	}
	few := stats.Differ([]float64{0, 0, 0}, []float64{1, 1, 1})
	if few.IsWorse() {
		t.Errorf("three items are no proof: %+v", few)
	}
	many := stats.Differ(make([]float64, 20), repeatValue(1, 20))
	if !many.IsWorse() {
		t.Errorf("twenty items are one: %+v", many)
	}
	if one := stats.Differ([]float64{0}, []float64{1}); one.P != 1 || one.IsWorse() {
		t.Errorf("one item: %+v", one)
	}
}

func repeatValue(v float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// Holm's example: each probability times the number of those that are not smaller, never below an earlier one.
func TestCorrect(t *testing.T) {
	var all []*stats.Difference
	for _, p := range []float64{0.01, 0.04, 0.03, 0.005, 0.9} {
		all = append(all, &stats.Difference{P: p})
	}
	stats.Correct(all)
	for n, want := range []float64{0.04, 0.09, 0.09, 0.025, 0.9} {
		if math.Abs(all[n].P-want) > 1e-12 {
			t.Errorf("%d: %v, want %v", n, all[n].P, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0: 1, 0.5: 3, 0.95: 5, 1: 5, 0.2: 1} {
		if got := stats.Quantile(values, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if stats.Quantile(nil, 0.5) != 0 {
		t.Error("nothing has a quantile")
	}
}

// The interval of many scores of 0 and 1 is as wide as the normal approximation says, and always the same.
func TestIntervalOfManyScores(t *testing.T) {
	values := make([]float64, 400)
	for i := range values {
		values[i] = float64(i % 2)
	}
	f := stats.MeanOf(values)
	const width = 2 * 1.96 * 0.5 / 20
	if f.Mean != 0.5 || math.Abs(f.High-f.Low-width) > 0.01 || math.Abs((f.High+f.Low)/2-0.5) > 0.01 {
		t.Errorf("%+v, want a width of %.3f", f, width)
	}
	if again := stats.MeanOf(values); again != f {
		t.Errorf("the second time %+v, the first %+v", again, f)
	}
}
