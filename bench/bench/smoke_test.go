package bench

import (
	"testing"

	"peers/work"
)

// TestWorkloads runs every workload of every peer once, small: the final states are
// checked, and nothing is timed.
func TestWorkloads(t *testing.T) {
	for _, p := range peers() {
		for name, make := range map[string]func(e *work.Env) (work.Run, error){
			"chain":     func(*work.Env) (work.Run, error) { return p.Chain(12) },
			"fan out":   func(*work.Env) (work.Run, error) { return p.FanOut(7) },
			"loop":      func(*work.Env) (work.Run, error) { return p.Loop(5) },
			"messages":  func(e *work.Env) (work.Run, error) { return p.Messages(e, 6) },
			"state":     func(e *work.Env) (work.Run, error) { return p.Ckpt(e, 4, 10) },
			"short":     func(*work.Env) (work.Run, error) { return p.Short() },
			"interrupt": func(*work.Env) (work.Run, error) { return p.Interrupt() },
		} {
			if p.Loop == nil && (name == "loop" || name == "messages" || name == "state" || name == "interrupt") {
				continue // it has no loops
			}
			for saver, kind := range savers {
				if kind != work.None && name != "messages" && name != "state" {
					continue
				}
				t.Run(p.Name+"/"+name+"/"+saver, func(t *testing.T) {
					e := &work.Env{Dir: t.TempDir(), Saver: kind}
					defer e.Close()
					run, err := make(e)
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
		}
	}
}
