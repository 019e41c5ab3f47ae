package main

import (
	"context"
	"errors"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"raddle.dev/internal/base/failure"
	"raddle.dev/temporal"
)

// workerOptions are the flags of "worker".
type workerOptions struct {
	queues []string
	drives int
	grace  time.Duration
	rates  []string
}

func newWorkerCommand(e *environment) *cobra.Command {
	var opts workerOptions
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Drive the runs of one or more queues",
		Long: `The worker drives runs until a signal ends it. Then its runs stop after their current step, and other workers continue them at once.
A second signal ends the steps, too.`,
		Args: takesNothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWorker(cmd.Context(), e, opts) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.queues, "queue", []string{defaultQueue}, "drive the runs of the queue `NAME` (repeatable, or with commas)")
	flags.IntVar(&opts.drives, "max-drives", 64, "drive at most `N` runs of each queue at once; others wait")
	flags.StringSliceVar(&opts.rates, "rate", nil, "start at most `[QUEUE=]N` drives of a queue in a second, with all of its workers together (repeatable; N may be 0.5)")
	flags.DurationVar(&opts.grace, "grace", 20*time.Second, "how long the current steps may take when the worker ends")
	return cmd
}

func runWorker(ctx context.Context, e *environment, opts workerOptions) error {
	if opts.drives < 1 {
		return failure.NewUsage("", "--max-drives %d: it must be at least 1", opts.drives)
	}
	if len(opts.queues) == 0 || slices.Contains(opts.queues, "") {
		return failure.NewUsage("", "--queue: the name of a queue is missing")
	}
	rates, err := opts.readRates()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := e.openProcess(); err != nil {
		return err
	}
	defer func() { _ = e.process.Close() }()
	if _, err := e.process.Runs.OpenStore(); err != nil {
		return err
	}
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()

	drives := temporal.NewDrives(c, e.process, e.logger())
	failed := make(chan error, len(opts.queues))
	var workers []worker.Worker
	defer func() { stopAll(workers) }()
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(opts.queues))) {
		o := temporal.WorkerOptions(opts.drives, opts.grace, rates[queue])
		o.OnFatalError = func(err error) { failed <- err }
		w := worker.New(c, queue, o)
		temporal.Register(w, drives)
		if err := w.Start(); err != nil {
			return err
		}
		workers = append(workers, w)
	}
	e.note("raddle-temporal: drives runs of %s in %s", strings.Join(opts.queues, ", "), e.process.Runs.StoreURL())
	select {
	case err := <-failed:
		drives.Pause(opts.grace)
		return errors.Join(errors.New("the worker has stopped"), err)
	case <-signals:
	}
	e.note("raddle-temporal: the worker ends and saves its runs; Ctrl-C again ends their steps now")
	drives.Pause(opts.grace)
	go func() {
		<-signals
		drives.Stop()
	}()
	return nil
}

// readRates returns the rates of the queues that have one.
func (o *workerOptions) readRates() (map[string]float64, error) {
	rates := map[string]float64{}
	for _, text := range o.rates {
		queue, number, named := strings.Cut(text, "=")
		if !named {
			queue, number = "", text
		}
		rate, err := strconv.ParseFloat(number, 64)
		if err != nil || !(rate > 0 && rate <= math.MaxInt32) {
			return nil, failure.NewUsage("for example --rate 5, or --rate gpu=0.5", "--rate %s: it must be a number above 0", text)
		}
		if named && !slices.Contains(o.queues, queue) {
			return nil, failure.NewUsage("add --queue "+queue, "--rate %s: the worker does not drive the runs of that queue", text)
		}
		rates[queue] = rate
	}
	for _, queue := range o.queues {
		if _, named := rates[queue]; !named && rates[""] > 0 {
			rates[queue] = rates[""]
		}
	}
	return rates, nil
}

// stopAll stops the workers of all queues at the same time.
func stopAll(workers []worker.Worker) {
	var stopped sync.WaitGroup
	for _, w := range workers {
		stopped.Go(w.Stop)
	}
	stopped.Wait()
}
