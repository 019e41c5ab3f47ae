package graphtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph/journal"
)

// triggerCases are what a journal.Triggers must do.
var triggerCases = []storeCase{
	{"PutTrigger", putTrigger},
	{"RemoveTrigger", removeTrigger},
	{"TicksAreThereOnce", ticksAreThereOnce},
	{"TicksComeWithTheirTrigger", ticksComeWithTheirTrigger},
	{"TickIsTakenOnce", tickIsTakenOnce},
	{"TickOfTheKilled", tickOfTheKilled},
	{"OldTokensOfTicks", oldTokensOfTicks},
	{"ListTicks", listTicks},
	{"ManyTakeTicks", manyTakeTicks},
}

// getTriggers returns the triggers of the store.
func (h *harness) getTriggers() journal.Triggers { return h.s.(journal.Triggers) }

// mustPutTrigger writes a trigger and checks that this works.
func (h *harness) mustPutTrigger(t journal.Trigger) journal.Trigger {
	h.Helper()
	t, err := h.getTriggers().PutTrigger(h.Context(), t)
	if err != nil {
		h.Fatal(err)
	}
	return t
}

// mustAddTicks adds ticks and checks that this works.
func (h *harness) mustAddTicks(ticks ...journal.Tick) []journal.Tick {
	h.Helper()
	stored, err := h.getTriggers().AddTicks(h.Context(), nil, ticks)
	if err != nil || len(stored) != len(ticks) {
		h.Fatal(stored, err)
	}
	return stored
}

// waitingTick returns a tick that is to be taken.
func waitingTick(trigger, key string, at int64) journal.Tick {
	return journal.Tick{
		Trigger: trigger,
		Key:     key,
		Time:    time.Unix(at, 0),
		Run:     "run-" + key,
		State:   journal.TickWaiting,
		Data:    []byte("data of " + key),
	}
}

// takeTicks returns the keys of the ticks that a caller gets, and the ticks.
func (h *harness) takeTicks(limit int, ttl time.Duration) (keys string, ticks []journal.Tick) {
	h.Helper()
	ticks, err := h.getTriggers().TakeTicks(h.Context(), limit, ttl)
	if err != nil {
		h.Fatal(err)
	}
	for _, t := range ticks {
		keys += t.Key + " "
	}
	return strings.TrimSpace(keys), ticks
}

func putTrigger(h *harness) {
	t := journal.Trigger{ID: "a/\xff", Due: time.Unix(1_790_000_000, 0), Data: []byte("one\x00")}
	first := h.mustPutTrigger(t)
	if first.Token == "" {
		h.Error("a trigger has no token")
	}
	if _, err := h.getTriggers().PutTrigger(h.Context(), t); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("a trigger is written as a new one, and is there: %v", err)
	}
	second := first
	second.Data = []byte("two")
	second.Due = time.Time{}
	second = h.mustPutTrigger(second)
	if _, err := h.getTriggers().PutTrigger(h.Context(), first); !errors.Is(err, journal.ErrConflict) || second.Token == first.Token {
		h.Errorf("an old token writes: %v", err)
	}
	if _, err := h.getTriggers().PutTrigger(h.Context(), journal.Trigger{ID: "other", Token: "x"}); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("a trigger that is gone is written: %v", err)
	}
	h.mustPutTrigger(journal.Trigger{ID: "A"})
	list, now, err := h.getTriggers().ListTriggers(h.Context())
	if err != nil || len(list) != 2 || list[0].ID != "A" || list[1].ID != t.ID || string(list[1].Data) != "two" || list[1].Token != second.Token || !list[1].Due.IsZero() {
		h.Errorf("the triggers are %+v (%v)", list, err)
	}
	if off := time.Since(now); off < -time.Minute || off > time.Minute { // of the store, which is on this machine
		h.Errorf("the time is %v", now)
	}
	second.Due = t.Due
	second = h.mustPutTrigger(second)
	if list, _, err = h.getTriggers().ListTriggers(h.Context()); err != nil || !list[1].Due.Equal(t.Due) || second.Token != list[1].Token {
		h.Errorf("the triggers are %+v (%v)", list, err)
	}
}

func removeTrigger(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	h.mustPutTrigger(journal.Trigger{ID: "b"})
	h.mustAddTicks(waitingTick("a", "1", 1), waitingTick("b", "2", 1))
	for range 2 {
		if err := h.getTriggers().RemoveTrigger(h.Context(), "a"); err != nil {
			h.Fatal(err)
		}
	}
	list, _, err := h.getTriggers().ListTriggers(h.Context())
	if err != nil || len(list) != 1 || list[0].ID != "b" {
		h.Errorf("the triggers are %+v (%v)", list, err)
	}
	if keys, _ := h.takeTicks(10, leaseLong); keys != "2" {
		h.Errorf("the ticks are %s", keys)
	}
}

func ticksAreThereOnce(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	first := waitingTick("a", "1", 100)
	h.mustAddTicks(first)
	again := first
	again.Data = []byte("another")
	again.Run = "another"
	stored := h.mustAddTicks(again, waitingTick("a", "2", 50))
	if got := stored[0]; string(got.Data) != "data of 1" || got.Run != "run-1" || !got.Time.Equal(first.Time) || got.State != journal.TickWaiting || got.Attempts != 0 {
		h.Errorf("a tick that was there is now %+v", got)
	}
	if stored[1].Key != "2" {
		h.Errorf("the other one is %+v", stored[1])
	}
	if keys, taken := h.takeTicks(10, leaseLong); len(taken) != 2 || taken[0].Attempts != 1 {
		h.Errorf("the ticks are %s: %+v", keys, taken)
	}
	if stored = h.mustAddTicks(first); stored[0].Attempts != 1 {
		h.Errorf("a tick that was taken is %+v", stored[0])
	}
	if keys, _ := h.takeTicks(10, leaseLong); keys != "" {
		h.Errorf("a tick that was taken can be taken: %s", keys)
	}
}

func ticksComeWithTheirTrigger(h *harness) {
	old := h.mustPutTrigger(journal.Trigger{ID: "a", Due: time.Unix(1, 0)})
	next := old
	next.Due = time.Unix(2, 0)
	stored, err := h.getTriggers().AddTicks(h.Context(), &next, []journal.Tick{waitingTick("a", "1", 1)})
	if err != nil || len(stored) != 1 {
		h.Fatal(stored, err)
	}
	if next.Token == old.Token || next.Token == "" {
		h.Error("the trigger has no new token")
	}
	late := old
	late.Due = time.Unix(3, 0)
	if _, err := h.getTriggers().AddTicks(h.Context(), &late, []journal.Tick{waitingTick("a", "2", 2)}); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("two have moved a trigger on: %v", err)
	}
	list, _, err := h.getTriggers().ListTriggers(h.Context())
	if err != nil || len(list) != 1 || !list[0].Due.Equal(next.Due) || list[0].Token != next.Token {
		h.Errorf("the trigger is %+v (%v)", list, err)
	}
	if keys, _ := h.takeTicks(10, leaseLong); keys != "1" {
		h.Errorf("the ticks are %s", keys)
	}
}

func tickIsTakenOnce(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	ended := waitingTick("a", "0", 1)
	ended.State = "skipped"
	h.mustAddTicks(ended)
	h.mustAddTicks(waitingTick("a", "1", 1))
	h.mustAddTicks(waitingTick("a", "2", 2))
	keys, taken := h.takeTicks(1, leaseLong)
	if keys != "1" {
		h.Fatalf("the first one is %s", keys)
	}
	tick := taken[0]
	tick.State = "started"
	tick.Run = "other"
	tick.Note = "why"
	tick.Data = nil
	if err := h.getTriggers().ChangeTick(h.Context(), tick, 0); err != nil {
		h.Fatal(err)
	}
	if keys, taken = h.takeTicks(10, leaseLong); keys != "2" {
		h.Fatalf("then comes %s", keys)
	}
	if err := h.getTriggers().ChangeTick(h.Context(), taken[0], 0); err != nil {
		h.Fatal(err)
	}
	if keys, taken = h.takeTicks(10, leaseLong); keys != "2" || taken[0].Attempts != 2 {
		h.Fatalf("a tick that waits again is %s %+v", keys, taken)
	}
	if err := h.getTriggers().ChangeTick(h.Context(), taken[0], leaseLong); err != nil {
		h.Fatal(err)
	}
	if keys, _ = h.takeTicks(10, leaseLong); keys != "" {
		h.Errorf("a tick that is due later is taken: %s", keys)
	}
	list, err := h.getTriggers().ListTicks(h.Context(), "a", 10)
	if err != nil || len(list) != 3 {
		h.Fatal(list, err)
	}
	if got := list[slices.IndexFunc(list, func(t journal.Tick) bool { return t.Key == "1" })]; got.State != "started" || got.Run != "other" || got.Note != "why" || len(got.Data) > 0 {
		h.Errorf("the tick is %+v", got)
	}
}

func tickOfTheKilled(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	h.mustAddTicks(waitingTick("a", "1", 1))
	_, lost := h.takeTicks(10, 0) // it does not say what it has done
	_, taken := h.takeTicks(10, leaseLong)
	if len(lost) != 1 || len(taken) != 1 || taken[0].Attempts != 2 || taken[0].Token == lost[0].Token {
		h.Fatalf("%+v, then %+v", lost, taken)
	}
	if err := h.getTriggers().ChangeTick(h.Context(), lost[0], 0); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("who has lost a tick changes it: %v", err)
	}
	if keys, _ := h.takeTicks(10, leaseLong); keys != "" {
		h.Errorf("a third one takes %s", keys)
	}
}

func oldTokensOfTicks(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	h.mustAddTicks(waitingTick("a", "1", 1))
	_, taken := h.takeTicks(10, leaseLong)
	if err := h.getTriggers().RemoveTrigger(h.Context(), "a"); err != nil {
		h.Fatal(err)
	}
	if err := h.getTriggers().ChangeTick(h.Context(), taken[0], 0); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("a tick that is gone is changed: %v", err)
	}
}

func listTicks(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	h.mustPutTrigger(journal.Trigger{ID: "b"})
	for i := range 5 {
		h.mustAddTicks(waitingTick("a", fmt.Sprint("a", i), int64(10+i)), waitingTick("b", fmt.Sprint("b", i), int64(100-i)))
	}
	for _, c := range []struct {
		trigger string
		limit   int
		want    string
	}{{"a", 3, "a4 a3 a2"}, {"b", 10, "b0 b1 b2 b3 b4"}, {"", 6, "b0 b1 b2 b3 b4 a4"}, {"c", 10, ""}} {
		list, err := h.getTriggers().ListTicks(h.Context(), c.trigger, c.limit)
		var keys []string
		for _, t := range list {
			keys = append(keys, t.Key)
		}
		if got := strings.Join(keys, " "); err != nil || got != c.want {
			h.Errorf("%d ticks of %q are %s (%v), want %s", c.limit, c.trigger, got, err, c.want)
		}
	}
}

func manyTakeTicks(h *harness) {
	h.mustPutTrigger(journal.Trigger{ID: "a"})
	const count = 40
	for i := range count {
		h.mustAddTicks(waitingTick("a", fmt.Sprint(i), int64(i)))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				list, err := h.getTriggers().TakeTicks(h.Context(), 3, leaseLong)
				if err != nil {
					h.Error(err)
				}
				if len(list) == 0 {
					return
				}
				mu.Lock()
				for _, t := range list {
					seen[t.Key]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for key, n := range seen {
		if n != 1 {
			h.Errorf("tick %s was taken %d times", key, n)
		}
	}
	if len(seen) < count-9 { // what another transaction is about to take may be passed over
		h.Errorf("%d of %d ticks were taken", len(seen), count)
	}
}
