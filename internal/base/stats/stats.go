package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Level is the probability with which an interval has the true value, and 1 less it the probability with which a verdict
// about all variants of an experiment may be wrong.
const Level = 0.95

// rounds is how often the items are drawn again.
const rounds = 2000

// An Interval is a mean, and between what values the true one is with the probability [Level].
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// MeanOf returns the mean of scores from 0 to 1, one for each item, by resampling the items. With fewer than two items the
// interval is everything from 0 to 1. The mean of no items is 0.
func MeanOf(scores []float64) Interval {
	i := Interval{Mean: mean(scores)}
	if len(scores) < 2 {
		i.High = 1
		return i
	}
	i.Low, i.High = spread(scores, i.Mean)
	i.Low = max(0, i.Low)
	i.High = min(1, i.High)
	return i
}

// A Difference is how much better (or worse) one variant is than another on the same items.
type Difference struct {
	Interval
	// P is how probable so large a difference is if there is none, in both directions; corrected for the number of
	// comparisons after [Correct].
	P     float64 `json:"p"`
	Items int     `json:"items"` // that both have
	// Needed is the number of items that it takes to tell a true difference of this size from chance, four times of five;
	// 0: the difference is 0, or there are fewer than two items.
	Needed int `json:"needed"`
}

// Differ compares the scores of a variant with those of a baseline, pairwise: scores[i] and baseline[i] belong to the same
// item. It resamples the items. Both must have the same length.
func Differ(scores, baseline []float64) Difference {
	gaps := make([]float64, len(scores))
	for n := range scores {
		gaps[n] = scores[n] - baseline[n]
	}
	d := Difference{Interval: Interval{Mean: mean(gaps)}, P: 1, Items: len(gaps)}
	if len(gaps) < 2 {
		d.Low = -1
		d.High = 1
		return d
	}
	d.Low, d.High = spread(gaps, d.Mean)
	d.Low = max(-1, d.Low)
	d.High = min(1, d.High)
	d.P = testZero(gaps, d.Mean)
	d.Needed = needItems(deviation(gaps, d.Mean), d.Mean)
	return d
}

// IsWorse reports whether the variant is worse beyond chance.
func (d *Difference) IsWorse() bool { return d.P < 1-Level && d.Mean < 0 }

// IsBetter reports whether the variant is better beyond chance.
func (d *Difference) IsBetter() bool { return d.P < 1-Level && d.Mean > 0 }

// Correct makes the probabilities of several comparisons those of all of them together, by Holm's method: the probability
// that any of them is called a difference by chance is at most 1 less [Level].
func Correct(all []*Difference) {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *Difference) int {
		switch {
		case a.P < b.P:
			return -1
		case a.P > b.P:
			return 1
		}
		return 0
	})
	least := 0.0
	for n, d := range order {
		least = max(least, min(1, d.P*float64(len(order)-n)))
		d.P = least
	}
}

// Quantile returns the value below which a share of the values is, the nearest one that there is; 0: there are none.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// deviation returns the standard deviation of a sample.
func deviation(values []float64, mean float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

// spread returns the interval of a mean: the quantiles of the means of resampled items, in units of the error of each
// (a studentized bootstrap), which keeps its promise with few items and with scores that are only 0 and 1. If all values
// are the same, resampling says nothing: then the interval is what so many equal values allow, by the rule of three.
func spread(values []float64, center float64) (low, high float64) {
	n := float64(len(values))
	size := deviation(values, center) / math.Sqrt(n)
	if size == 0 {
		return center - 3/n, center + 3/n
	}
	ratios := resample(values, center)
	tail := (1 - Level) / 2
	return center - Quantile(ratios, 1-tail)*size, center - Quantile(ratios, tail)*size
}

// testZero returns how probable a mean at least as far from zero is if the true one is zero.
func testZero(values []float64, center float64) float64 {
	size := deviation(values, center) / math.Sqrt(float64(len(values)))
	if size == 0 {
		if center == 0 {
			return 1
		}
		return math.Pow(0.5, float64(len(values)-1)) // of the signs
	}
	far := math.Abs(center / size)
	more := 1
	for _, ratio := range resample(values, center) {
		if math.Abs(ratio) >= far {
			more++
		}
	}
	return float64(more) / (rounds + 1)
}

// resample draws the items again and again, and returns how far the mean of each draw is from the center, in units of its
// own error. A draw whose values are all the same is as far as the units of the sample say.
func resample(values []float64, center float64) []float64 {
	random := rand.New(rand.NewPCG(uint64(len(values)), 20260101))
	n := float64(len(values))
	own := deviation(values, center) / math.Sqrt(n)
	ratios := make([]float64, rounds)
	for at := range ratios {
		sum := 0.0
		squares := 0.0
		for range values {
			v := values[random.IntN(len(values))] - center
			sum += v
			squares += v * v
		}
		m := sum / n
		size := math.Sqrt(max(0, squares/n-m*m) / (n - 1))
		if size < own/1000 {
			size = own
		}
		ratios[at] = m / size
	}
	return ratios
}

// needItems returns how many items it takes to find a difference with the given deviation between items, at the usual
// power of 80 %; 0: no number is enough.
func needItems(deviation, difference float64) int {
	if difference == 0 {
		return 0
	}
	const far = 1.959964 + 0.841621 // quantiles of the normal distribution for Level in both directions, and for the power
	return max(2, int(math.Ceil(math.Pow(far*deviation/difference, 2))))
}
