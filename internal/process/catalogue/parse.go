package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// These bound what a catalogue may say. Nothing real is near them.
const (
	// MaxSize is the largest catalogue in bytes.
	MaxSize = 32 << 20

	maxModels = 100_000
	maxTokens = 1_000_000_000
	maxPrice  = 100_000 // US dollars for a million tokens
	maxName   = 200
	maxFaults = 20
)

var errNoCatalogue = errors.New("it is not a catalogue of models")

// Parse reads models.dev's api.json, or a file that it has written before, and returns the facts in it as a catalogue.
// Addresses, names of keys and everything else that is no fact about a model are left out. The error names up to 20
// values that cannot be true.
func Parse(data []byte, from string, now time.Time) ([]byte, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it has more than %d MiB", MaxSize>>20)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCatalogue, err)
	}
	about := About{Date: now.UTC().Format(time.DateOnly), Source: from}
	if own, is := file[aboutKey]; is {
		if err := json.Unmarshal(own, &about); err != nil {
			return nil, fmt.Errorf("%s: %w", aboutKey, err)
		}
		if !isName(about.Source) {
			return nil, fmt.Errorf("%s: the source %.40q is not a name or an address", aboutKey, about.Source)
		}
		if _, err := time.Parse(time.DateOnly, about.Date); err != nil {
			return nil, fmt.Errorf("%s: date %q is not a day such as 2026-07-02", aboutKey, about.Date)
		}
		delete(file, aboutKey)
	}
	about.Models = 0
	var faults []error
	var lines [][]byte
	for _, name := range slices.Sorted(maps.Keys(file)) {
		var p listedProvider
		if err := json.Unmarshal(file[name], &p); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if len(p.Models) == 0 {
			continue
		}
		faults = append(faults, checkProvider(name, p)...)
		about.Models += len(p.Models)
		line, err := encodeMember(name, p)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	switch {
	case about.Models == 0 && len(faults) == 0:
		return nil, fmt.Errorf("%w: no provider in it has models", errNoCatalogue)
	case about.Models > maxModels:
		return nil, fmt.Errorf("it has more than %d models", maxModels)
	case len(faults) > maxFaults:
		more := len(faults) - maxFaults
		faults = append(faults[:maxFaults:maxFaults], fmt.Errorf("and %d more", more))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	first, err := encodeMember(aboutKey, about)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("{\n"), bytes.Join(append([][]byte{first}, lines...), []byte(",\n"))...), "\n}\n"...), nil
}

// encodeKey returns the beginning of a line of the file.
func encodeKey(name string) []byte {
	key, err := json.Marshal(name)
	if err != nil {
		panic(err) // every text is JSON
	}
	return append(key, ':')
}

// encodeMember returns one line of the file.
func encodeMember(name string, value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	return append(encodeKey(name), encoded...), err
}

// checkProvider returns what cannot be true of a provider's models.
func checkProvider(name string, p listedProvider) (faults []error) {
	if !isName(name) {
		faults = append(faults, fmt.Errorf("%.40q is not the name of a provider", name))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Models)) {
		m := p.Models[id]
		if !isName(id) {
			faults = append(faults, fmt.Errorf("%s: %.40q is not the id of a model", name, id))
			continue
		}
		add := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("%s/%s: %s", name, id, fmt.Sprintf(format, args...)))
		}
		for _, tokens := range []int{m.Limit.Context, m.Limit.Output} {
			if tokens < 0 || tokens > maxTokens {
				add("a limit of %d tokens", tokens)
			}
		}
		for _, price := range m.Cost.listPrices() {
			if price < 0 || price > maxPrice {
				add("a price of %g US dollars for a million tokens", price)
			}
		}
	}
	return faults
}

// listPrices returns all prices.
func (c *listedCost) listPrices() []float64 {
	if c == nil {
		return nil
	}
	all := []float64{c.Input, c.Output, c.CacheRead, c.CacheWrite}
	for _, t := range c.Tiers {
		all = append(all, t.Input, t.Output, t.CacheRead, t.CacheWrite)
	}
	return all
}

// isName reports whether a text can be the id of a model: of moderate length, and without characters that a terminal
// does not show.
func isName(s string) bool {
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	return s != "" && len(s) <= maxName && s == strings.TrimSpace(s) && !strings.ContainsFunc(s, hidden)
}
