//go:build unix

package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/proving/testrun"
)

// calmWait is how long the first run may take, which nothing hurts.
const calmWait = 2 * time.Minute

// Execute starts the servers and runs, hurts them, and judges. Nothing of it is left when it returns, except for the
// runs if they are kept. The error is that of ctx, or says why there is no verdict.
func (c *Command) Execute(ctx context.Context) (r *Report, err error) {
	s, err := c.newStage(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(r)) }()
	if err := s.startServers(); err != nil {
		return nil, err
	}
	crowd := newCrowd(s, c)
	defer crowd.close()
	if err := crowd.tryCalmly(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	done, err := c.hurt(ctx, s, crowd)
	if err != nil {
		return nil, err
	}
	if err := crowd.settle(ctx); err != nil {
		return nil, err
	}
	evidence, err := crowd.collect(ctx)
	if err != nil {
		return nil, err
	}
	r = &Report{Agent: s.agent.Name, Seed: c.Seed, Servers: c.Servers, Seconds: c.Length.Seconds(), Faults: done}
	if s.rehearsal.Case != nil {
		r.Case = s.rehearsal.Case.Name
	}
	r.Took = time.Since(began)
	r.Verdict = *Judge(evidence)
	if !r.IsClean() || c.Keep {
		r.Kept = s.process.Runs.StoreURL()
	}
	return r, nil
}

// hurt carries out the plan while runs are started and answered.
func (c *Command) hurt(ctx context.Context, s *stage, crowd *crowd) (done []DoneFault, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	plan := NewPlan(PlanOptions{Seed: c.Seed, Length: c.Length, Servers: c.Servers, Cuts: s.servers[0].proxy != nil})
	began := time.Now()
	var working sync.WaitGroup
	for _, f := range plan {
		working.Go(func() {
			if testrun.Sleep(ctx, time.Until(began.Add(f.At))) == nil {
				c.Say("%5.1f s  server %d: %s", f.At.Seconds(), f.Server+1, f.describe())
				if err := s.servers[f.Server].suffer(ctx, f); err != nil {
					cancel(err)
				}
			}
		})
	}
	working.Go(func() { crowd.startUntil(ctx, began.Add(c.Length)) })
	working.Go(func() { crowd.watchUntil(ctx, began.Add(c.Length)) })
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	done = []DoneFault{}
	for _, f := range plan {
		done = append(done, DoneFault{Seconds: f.At.Seconds(), Server: f.Server + 1, Kind: f.Kind, For: f.For.Seconds()})
	}
	return done, nil
}

// suffer does to a server what a fault says, and undoes it.
func (c *child) suffer(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Kill:
		c.kill()
		_ = testrun.Sleep(ctx, f.For)
	case Restart:
		c.stop()
	case Freeze:
		c.freeze()
		_ = testrun.Sleep(ctx, f.For)
		c.thaw()
		return nil
	case Cut:
		c.proxy.setCut(true)
		_ = testrun.Sleep(ctx, f.For)
		c.proxy.setCut(false)
		return nil
	}
	if ctx.Err() != nil {
		return nil
	}
	return c.start()
}

// newName returns a name that no other one has.
func newName() string { return "chaos-" + rand.Text()[:8] }

// refuseFailure returns the error of an agent that fails without any fault.
func refuseFailure(run, reason string) error {
	return failure.NewInvalid("make it pass first: raddle test", "a run without any fault (%s) does not end well, so that faults would prove nothing: %s", run, reason)
}

// describeNoEnd is the reason of a calm run that does not end.
var describeNoEnd = fmt.Sprintf("it has not ended after %v", calmWait)
