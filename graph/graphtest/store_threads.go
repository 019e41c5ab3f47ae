package graphtest

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
)

var threadsCases = []storeCase{
	{"NoneAtFirst", func(h *harness) {
		if l := h.mustListThreads(""); len(l) != 0 {
			h.Errorf("an empty store lists %v", l)
		}
	}},
	{"FirstAndLastRecord", func(h *harness) {
		h.mustAppend("one", 0, newRecords("one", 0, 1)...)
		h.mustAppend("two", 0, newRecords("two", 0, 2)...)
		h.mustAppend("ten", 0, newRecords("ten", 0, 10)...)
		var want []graph.ThreadInfo
		want = append(want, newThreadInfos("two", newRecords("two", 0, 2))...)
		want = append(want, newThreadInfos("ten", newRecords("ten", 0, 10))...)
		want = append(want, newThreadInfos("one", newRecords("one", 0, 1))...)
		if d := diffSlices(want, h.mustListThreads("")); d != "" {
			h.Errorf("-want +got:\n%s", d)
		}
	}},
	{"Prefixes", func(h *harness) {
		names := []string{
			"a", "A", "ab", "a%", "a%b", "a_", "a_b", "a b", "a'b", `a"b`, `a\b`, "a*", "a?", "a[b]", "aé", "a\u00ff", "a\U0010ffff", "a\U0010ffffb",
			"b", "B", "%", "_", "*", "日本", "日本語", "日", "run/1", "run/1.a", "run/10", " ", "\t",
		}
		for _, name := range names {
			h.mustAppend(name, 0, newRecords(name, 0, 1)...)
		}
		for _, prefix := range append(names, "", "r", "run/", "zzz", "a%%", "日本語学", "\U0010ffff", "é") {
			h.checkListing(prefix, names)
		}
	}},
	{"TenThousand", func(h *harness) {
		const n = 10_000
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("run-%05d", i)
			h.mustAppend(names[i], 0, newRecords(names[i], 0, 1)...)
		}
		h.checkListing("", names)
		h.checkListing("run-01", names)
		h.checkListing("run-09999", names)
	}},
	{"BreakEarly", func(h *harness) {
		for i := range 100 {
			h.mustAppend(fmt.Sprintf("run-%02d", i), 0, newRecords("", 0, 1)...)
		}
		for range 50 {
			for info, err := range h.s.Threads(h.Context(), "run-") {
				if err != nil || info.Name != "run-99" {
					h.Fatalf("%q first, %v", info.Name, err)
				}
				break
			}
		}
		h.mustAppend("run-99", 1, newRecords("", 1, 1)...)
	}},
}

// checkListing checks which of the names a listing has, and in which order.
func (h *harness) checkListing(prefix string, names []string) {
	h.Helper()
	var want, got []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	slices.Reverse(want)
	for _, info := range h.mustListThreads(prefix) {
		got = append(got, info.Name)
		if d := diffSlices(newThreadInfos(info.Name, newRecords(info.Name, 0, 1)), []graph.ThreadInfo{info}); d != "" {
			h.Errorf("Threads(%q) (-want +got):\n%s", prefix, d)
		}
	}
	if d := diffSlices(want, got); d != "" {
		h.Errorf("Threads(%q) (-want +got):\n%s", prefix, d)
	}
}
