package cron

import (
	"strings"
	"testing"
	"time"
)

// layout is how the tests write times: the clock, and its distance to UTC.
const layout = "2006-01-02 15:04 -0700"

// listTicks returns the ticks of a schedule after a time of its zone, and before another.
func listTicks(t *testing.T, text, zone, after, before string) []string {
	t.Helper()
	loc, err := LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(text, loc)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", after, loc)
	if err != nil {
		t.Fatal(err)
	}
	end, err := time.ParseInLocation("2006-01-02 15:04", before, loc)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for {
		next := s.Next(at)
		if next.IsZero() || !next.Before(end) {
			return list
		}
		if !next.After(at) {
			t.Fatalf("%s in %s: after %v comes %v", text, zone, at, next)
		}
		list = append(list, next.Format(layout))
		at = next
	}
}

// What other schedulers do on the days on which clocks are changed, and what this one does. Of four libraries, three
// leave out the day of a time that does not exist, and three fire twice at one that exists twice; the fourth takes the
// second one; the one that says that it runs jobs at the end of the gap does not do it for Lord Howe, whose clocks
// change by half an hour.
func TestChangesOfClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ about, text, zone, after, before, want string }{
		{"a time that is left out comes at the end of the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28 00:00", "2026-03-31 00:00",
			"2026-03-28 02:30 +0100, 2026-03-29 03:00 +0200, 2026-03-30 02:30 +0200"},
		{"several of them are one tick, also with one at its end", "0,15,30 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-30 00:00",
			"2026-03-29 03:00 +0200, 2026-03-29 03:15 +0200, 2026-03-29 03:30 +0200"},
		{"a time that comes twice happens the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-27 00:00",
			"2026-10-25 02:30 +0200, 2026-10-26 02:30 +0100"},
		{"the end of the repeated time is new", "0 3 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-26 00:00", "2026-10-25 03:00 +0100"},
		{"its beginning has come", "0 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-26 00:00", "2026-10-25 02:00 +0200"},
		{"every half an hour follows the clock", "*/30 * * * *", "Europe/Berlin", "2026-10-25 01:30", "2026-10-25 03:30",
			"2026-10-25 02:00 +0200, 2026-10-25 02:30 +0200, 2026-10-25 02:00 +0100, 2026-10-25 02:30 +0100, 2026-10-25 03:00 +0100"},
		{"and has nothing to make up for", "*/30 * * * *", "Europe/Berlin", "2026-03-29 01:00", "2026-03-29 04:00",
			"2026-03-29 01:30 +0100, 2026-03-29 03:00 +0200, 2026-03-29 03:30 +0200"},
		{"every second hour names times of day", "0 */2 * * *", "Europe/Berlin", "2026-10-24 23:00", "2026-10-25 05:00",
			"2026-10-25 00:00 +0200, 2026-10-25 02:00 +0200, 2026-10-25 04:00 +0100"},
		{"New York forward", "30 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-10 00:00", "2026-03-08 03:00 -0400, 2026-03-09 02:30 -0400"},
		{"New York back", "30 1 * * *", "America/New_York", "2026-10-31 12:00", "2026-11-03 00:00", "2026-11-01 01:30 -0400, 2026-11-02 01:30 -0500"},
		{"half an hour forward", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-06 00:00", "2026-10-04 02:30 +1100, 2026-10-05 02:15 +1100"},
		{"what lies after half an hour stays", "45 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-05 00:00", "2026-10-04 02:45 +1100"},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "2026-04-06 03:00", "2026-04-05 01:45 +1100, 2026-04-06 01:45 +1030"},
		{"what lies before half an hour comes once by itself", "15 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "2026-04-06 00:00", "2026-04-05 01:15 +1100"},
		{"every hour of Lord Howe", "45 * * * *", "Australia/Lord_Howe", "2026-04-05 01:00", "2026-04-05 03:00",
			"2026-04-05 01:45 +1100, 2026-04-05 01:45 +1030, 2026-04-05 02:45 +1030"},
		{"a whole day that a country has left out", "0 7 * * *", "Pacific/Apia", "2011-12-29 12:00", "2012-01-01 00:00", "2011-12-31 00:00 +1400, 2011-12-31 07:00 +1400"},
		{"midnight that does not exist", "0 0 * * *", "America/Santiago", "2026-09-05 12:00", "2026-09-07 12:00", "2026-09-06 01:00 -0300, 2026-09-07 00:00 -0300"},
		{"no change at all", "0 7 * * 1-5", "UTC", "2026-11-27 12:00", "2026-12-02 00:00", "2026-11-30 07:00 +0000, 2026-12-01 07:00 +0000"},
		{"both kinds of days", "0 7 1 * MON", "UTC", "2026-11-29 12:00", "2026-12-08 00:00", "2026-11-30 07:00 +0000, 2026-12-01 07:00 +0000, 2026-12-07 07:00 +0000"},
		{"leap days", "0 0 29 2 *", "Europe/Berlin", "2026-01-01 00:00", "2033-01-01 00:00", "2028-02-29 00:00 +0100, 2032-02-29 00:00 +0100"},
		{"a word", "@daily", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 12:00", "2026-03-29 00:00 +0100, 2026-03-30 00:00 +0200"},
	} {
		if got := strings.Join(listTicks(t, c.text, c.zone, c.after, c.before), ", "); got != c.want {
			t.Errorf("%s: %s in %s\n got %s\nwant %s", c.about, c.text, c.zone, got, c.want)
		}
	}
}

// Times of day come once on each day of ten years in each zone, whatever their clocks do.
func TestOnceADay(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Kolkata", "Europe/Dublin"} {
		for _, text := range []string{"30 2 * * *", "45 1 * * *", "0 0 * * *", "59 23 * * *", "0 3 * * *"} {
			days := map[string]int{}
			for _, tick := range listTicks(t, text, zone, "2020-01-01 12:00", "2030-01-01 12:00") {
				days[tick[:len("2006-01-02")]]++
			}
			for day, n := range days {
				if n != 1 {
					t.Errorf("%s in %s comes %d times on %s", text, zone, n, day)
				}
			}
			if most := 3653; len(days) != most {
				t.Errorf("%s in %s comes on %d days, want %d", text, zone, len(days), most)
			}
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "5: minute",
		"* * * *":                  "it has 4 fields",
		"0 0 7 * * 1":              "it has 6 fields",
		"61 * * * *":               "above maximum",
		"*/0 * * * *":              "positive",
		"0 7 31 2 *":               "never comes",
		"CRON_TZ=UTC 0 7 * * *":    "timezone: Europe/Berlin",
		"@every 5m":                "*/15",
		"@reboot":                  "@reboot",
		"0 7 L * *":                "L",
		"@daily 5":                 "it has 2 fields",
		strings.Repeat("1,", 200):  "bytes",
		"0 7 * * mon-sunday-today": "",
	} {
		_, err := Parse(text, time.UTC)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something with %q", text, err, want)
		}
	}
	for _, name := range []string{"Local", "Europe/Nowhere", "../../etc/passwd", "/etc/localtime", "+02:00"} {
		if _, err := LoadZone(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
	for text, both := range map[string]bool{"0 7 1 * 1": true, "0 7 1 * *": false, "0 7 * * 1": false, "@daily": false, "0 7 ? * 1": false} {
		if s, err := Parse(text, time.UTC); err != nil || s.NamesBothDays() != both {
			t.Errorf("%q: %+v (%v), want %v", text, s, err, both)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add("30 2 * * *", int64(1_790_000_000))
	f.Add("*/7 1-3 1,2 */3 1", int64(0))
	zone, err := LoadZone("Australia/Lord_Howe")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		s, err := Parse(text, zone)
		if err != nil || seconds < 0 || seconds > 4e9 {
			return
		}
		at := time.Unix(seconds, 0)
		for range 3 {
			next := s.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("after %v comes %v", at, next)
			}
			at = next
		}
	})
}
