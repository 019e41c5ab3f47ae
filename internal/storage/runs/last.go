package runs

import (
	"context"
	"strconv"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
)

// lastRun names the newest run of a store, and lastRun~N the run that started N runs before
// it. Ids of runs do not have the letter l, so that no id begins with the word.
const lastRun = "last"

// parseLast returns how many runs before the newest one a reference means. ok is false for a
// reference that is not of the form last or last~N.
func parseLast(ref string) (back int, ok bool, err error) {
	rest, ok := strings.CutPrefix(ref, lastRun)
	if ok && rest == "" {
		return 0, true, nil
	}
	number, ok := strings.CutPrefix(rest, "~")
	if !ok || !strings.HasPrefix(ref, lastRun) {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return 0, true, failure.NewUsage("write a number: last~1 is the run before the last one", "%q names no run", ref)
	}
	return int(n), true, nil
}

// NameLast returns the reference to the run that started back runs before the newest one.
func NameLast(back int) string {
	if back == 0 {
		return lastRun
	}
	return lastRun + "~" + strconv.Itoa(back)
}

// ResolveLast returns the id of the run that last or last~N means: the line of ListRuns with that
// number, from 0. It returns every other reference as it is.
func (a *Archive) ResolveLast(ctx context.Context, ref string) (string, error) {
	back, ok, err := parseLast(ref)
	if !ok || err != nil {
		return ref, err
	}
	count := 0
	for i, err := range a.EachRun(ctx, RunRange{}) {
		if err != nil {
			return ref, err
		}
		if count == back {
			return i.Run, nil
		}
		count++
	}
	if count == 0 {
		return ref, failure.NewStale("start one: raddle run AGENT", "there is no run %q: there are no runs in %s", ref, a.describePlace())
	}
	return ref, failure.NewStale("see the runs with: raddle runs ls", "there is no run %q: %s has only %s", ref, a.describePlace(), wording.FormatCount(count, "run"))
}
