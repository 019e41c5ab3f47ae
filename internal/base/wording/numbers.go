package wording

import (
	"fmt"
	"time"
)

// FormatCount returns a number with its noun: "1 run", "2 runs".
func FormatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// FormatTokens returns a number of tokens, rounded: "1.5k".
func FormatTokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// FormatBytes returns a size, rounded: "48 KB".
func FormatBytes(n int) string {
	switch {
	case n < 1<<10:
		return FormatCount(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%d KB", (n+(1<<9))>>10)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// FormatDuration returns a duration in whole seconds: "1m05s".
func FormatDuration(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
