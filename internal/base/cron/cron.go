// Package cron reads schedules in the five fields of cron and says when their ticks come, in any time zone, also on the
// days on which clocks are changed.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // machines without the time zones, such as those of Windows and small images, have schedules too

	parser "github.com/netresearch/go-cron"
)

// A Schedule says when something happens, to the minute, by the clocks of one time zone. It is safe for concurrent use.
//
// A schedule that names hours means times of day: each of them happens once on each of its days. One that falls into
// the time that clocks leave out when they are put forward happens at the moment after it, and several that fall into
// it are one tick. One that clocks show twice when they are put back happens the first time. A schedule with every hour
// (*) follows the clock: it has no tick in the time that is left out, and ticks both times in the one that comes twice.
type Schedule struct {
	fields *parser.SpecSchedule
	zone   *time.Location
	hourly bool // it names every hour
}

// reader reads texts as crontab(5) says: a day matches that is one of the days of the month or one of those of the
// week, if both are named.
var reader = parser.MustNewParser(parser.Minute | parser.Hour | parser.Dom | parser.Month | parser.Dow | parser.Descriptor | parser.DowOrDom)

const (
	allHours   = 1<<24 - 1 // the bits of a field that has every hour
	allDays    = 1 << 63   // the bit of a field that names no day
	fieldCount = 5
	maxText    = 200 // bytes
)

// Parse reads a schedule: minute, hour, day of the month, month, day of the week; or one of @hourly, @daily, @weekly,
// @monthly and @yearly. The clocks of zone count. A schedule that never comes is an error.
func Parse(text string, zone *time.Location) (*Schedule, error) {
	text = strings.TrimSpace(text)
	n := len(strings.Fields(text))
	switch {
	case len(text) > maxText:
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), maxText)
	case strings.Contains(text, "TZ="):
		return nil, errors.New("the zone has a field of its own: write for example `timezone: Europe/Berlin`")
	case strings.HasPrefix(text, "@every"):
		return nil, errors.New("@every has no time from which it counts: write for example `*/15 * * * *`")
	case strings.HasPrefix(text, "@") && n == 1:
	case n != fieldCount:
		return nil, fmt.Errorf("it has %d fields and needs %d: minute, hour, day of the month, month, day of the week", n, fieldCount)
	}
	parsed, err := reader.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return nil, errors.New("it names no times of a clock")
	}
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("it never comes: no month that it names has such a day")
	}
	return &Schedule{fields: spec, zone: zone, hourly: spec.Hour&allHours == allHours}, nil
}

// LoadZone returns a time zone by its name in the IANA database, such as Europe/Berlin. The empty name is UTC.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("`%s` is not a time zone: write for example Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// NamesBothDays reports whether the schedule names days of the month and days of the week: then it comes on all of
// them.
func (s *Schedule) NamesBothDays() bool {
	return s.fields.Dom&allDays == 0 && s.fields.Dow&allDays == 0
}

// Next returns the first tick after a time; the zero time if none comes in the years that follow.
//
// It looks at each stretch of time in which the clocks of the zone are not changed by itself, where they have one
// distance to UTC: so it never adds hours over a change, and a change may be of any length.
func (s *Schedule) Next(after time.Time) time.Time {
	at := after.In(s.zone)
	for from := at; ; {
		begin, end := at.ZoneBounds()
		offset := offsetAt(at)
		if again := repeatedTime(begin); !s.hourly && from.Before(begin.Add(again)) {
			from = begin.Add(again - 1)
		}
		tick := s.fields.Next(from.In(time.FixedZone("", int(offset.Seconds()))))
		switch {
		case tick.IsZero(), end.IsZero(), tick.Before(end):
			return inZone(tick, s.zone)
		case !s.hourly && tick.Before(end.Add(offsetAt(end)-offset)):
			return end
		}
		at = end
		from = end.Add(-1)
	}
}

// inZone returns a time by the clocks of a zone; the zero time stays.
func inZone(t time.Time, zone *time.Location) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(zone)
}

// offsetAt returns how far the clocks of the zone of a time are ahead of UTC then.
func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// repeatedTime returns how much time the clocks show again from a change on; 0 if they are not put back, or if there is no
// change.
func repeatedTime(change time.Time) time.Duration {
	if change.IsZero() {
		return 0
	}
	return max(0, offsetAt(change.Add(-1))-offsetAt(change))
}
