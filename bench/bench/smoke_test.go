package bench

import (
	"testing"

	"peers/work"
)

// TestWorkloads runs every workload of every peer twice, small: the final states are
// checked, and nothing is timed.
func TestWorkloads(t *testing.T) {
	for _, p := range peers() {
		smoke(t, p.Name+"/chain", work.None, func(*work.Env) (work.Run, error) { return p.Chain(12) })
		smoke(t, p.Name+"/fan", work.None, func(*work.Env) (work.Run, error) { return p.FanOut(7) })
		smoke(t, p.Name+"/short", work.None, func(*work.Env) (work.Run, error) { return p.Short() })
		if p.Loop != nil { // else it has no loops
			smoke(t, p.Name+"/loop", work.None, func(*work.Env) (work.Run, error) { return p.Loop(5) })
		}
		if p.Interrupt != nil {
			smoke(t, p.Name+"/interrupt", work.None, func(*work.Env) (work.Run, error) { return p.Interrupt() })
		}
		for saver, kind := range savers {
			if p.Messages != nil {
				smoke(t, p.Name+"/messages/"+saver, kind, func(e *work.Env) (work.Run, error) { return p.Messages(e, 6) })
			}
			if p.Ckpt != nil {
				smoke(t, p.Name+"/state/"+saver, kind, func(e *work.Env) (work.Run, error) { return p.Ckpt(e, 4, 10) })
			}
		}
	}
}

// smoke runs a workload twice.
func smoke(t *testing.T, name string, s work.Saver, load func(*work.Env) (work.Run, error)) {
	t.Run(name, func(t *testing.T) {
		e := &work.Env{Dir: t.TempDir(), Saver: s}
		defer e.Close()
		run, err := load(e)
		for range 2 {
			if err == nil {
				err = run()
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}
