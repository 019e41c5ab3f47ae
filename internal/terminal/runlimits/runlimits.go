// Package runlimits has the flags that limit what a run may use, for every command that starts or continues runs.
package runlimits

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
)

// Limits are what a run may use, as a command line says it. The zero value sets no limit.
type Limits struct {
	agent.Limits
	Deadline time.Duration // from the start of the run, with its waiting
}

// Names are the flags, without their dashes.
var Names = []string{"max-cost", "max-calls", "max-tokens", "deadline"}

// AddFlags adds the flags to those of a command. whose says of what they are the limits, as in "the run".
func (l *Limits) AddFlags(flags *pflag.FlagSet, whose string) {
	flags.Var((*dollars)(&l.Money), "max-cost", "let the models of "+whose+" cost at most `DOLLARS`")
	flags.Var((*count)(&l.Calls), "max-calls", "let "+whose+" call models at most `N` times")
	flags.Var((*count)(&l.Tokens), "max-tokens", "let "+whose+" use at most `N` tokens")
	flags.Var((*span)(&l.Deadline), "deadline", "end "+whose+" after `TIME`, such as 30m or 2d, also while it waits")
}

// Budget returns the limits as a run takes them; nil: none was set.
func (l *Limits) Budget() *agent.Limits {
	if l.Limits == (agent.Limits{}) {
		return nil
	}
	budget := l.Limits
	return &budget
}

// dollars is an amount above 0.
type dollars float64

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || n > 1e9 {
		return fmt.Errorf("it is not an amount in US dollars above 0, such as 0.50")
	}
	*d = dollars(n)
	return nil
}

// String implements pflag.Value.
func (d *dollars) String() string { return "" }

// Type implements pflag.Value.
func (d *dollars) Type() string { return "float" }

// count is a number above 0.
type count int

// Set implements pflag.Value.
func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("it is not a whole number above 0")
	}
	*c = count(n)
	return nil
}

// String implements pflag.Value.
func (c *count) String() string { return "" }

// Type implements pflag.Value.
func (c *count) Type() string { return "int" }

// span is a duration above 0.
type span time.Duration

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	d, err := spec.ParseSpan(text)
	if err == nil && d == 0 {
		err = fmt.Errorf("it is not a time above 0, such as 30m or 2d")
	}
	*s = span(d)
	return err
}

// String implements pflag.Value.
func (s *span) String() string { return "" }

// Type implements pflag.Value.
func (s *span) Type() string { return "duration" }
