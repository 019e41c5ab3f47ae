package server

import (
	"context"
	"errors"
	"log/slog"

	"raddle.dev/internal/process/app"
)

// Directories are the services of several working directories, such as those in which an editor works. The zero value
// is ready.
type Directories struct {
	Log *slog.Logger // nil: no log

	closers []func(context.Context) error
}

// OpenService opens the service of a directory, which may name agents by their paths. Calls must not overlap.
func (d *Directories) OpenService(dir string) (*Service, error) {
	p, err := app.Open(app.Options{Work: dir, Log: d.Log})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	s, err := New(p, Options{AllowPaths: true, Log: d.Log})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	d.closers = append(d.closers, func(ctx context.Context) error { return errors.Join(s.Close(ctx), p.Close()) })
	return s, nil
}

// CloseServices saves every run that still works, until ctx ends.
func (d *Directories) CloseServices(ctx context.Context) error {
	var errs []error
	for _, end := range d.closers {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
