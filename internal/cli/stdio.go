package cli

import (
	"context"
	"errors"
	"io"

	"raddle.dev/server"
)

// serveStdio lets a program use the runs of this process over its stdin and stdout, which carry nothing but the protocol. It returns
// when the program closes stdin, or with a signal, and then saves every run that still works.
func serveStdio(ctx context.Context, env *environment, serve func(ctx context.Context, s *server.Service, in io.ReadCloser, out io.WriteCloser) error) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	s, err := server.New(env.process, server.Options{Log: env.devLog})
	if err != nil {
		return err
	}
	err = serve(ctx, s, env.in, stdoutOnly{env.out})
	stop() // the next signal ends the process
	ending, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return errors.Join(err, s.Close(ending))
}

// stdoutOnly is the stdout of the process for a protocol. Closing it does nothing: the process does that.
type stdoutOnly struct{ io.Writer }

// Close does nothing.
func (stdoutOnly) Close() error { return nil }
