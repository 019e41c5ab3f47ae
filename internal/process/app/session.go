package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
)

// temporary is the name of a session that is not saved.
const temporary = "temp"

// sessionThread returns the thread of the session that a request continues or starts, or ""
// for a run without a session. The caller's choice counts first, then the agent's file,
// then the configuration.
func (p *Process) sessionThread(a *flow.Agent, asked string, transient bool) (string, error) {
	name := asked
	if a.Config == nil {
		return "", nil // loading has already refused the request
	}
	switch {
	case asked != "":
	case a.Config.Session != nil:
		name = *a.Config.Session
	default:
		name = p.Config.Session
	}
	if name == "" || name == temporary {
		return "", nil
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '@' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", failure.NewUsage("name it with letters, digits, '-', '_' and '.'", "%q cannot be the name of a session", name)
	}
	if !p.Runs.KeepsRuns() && !(transient && asked != "") {
		if asked == "" {
			return "", nil
		}
		return "", failure.NewUsage("choose a store that saves runs: RADDLE_STORE=sqlite:PATH", "session '%s' cannot be saved: %s saves nothing", name, p.Runs.StoreURL())
	}
	return runs.NameSession(a.Name, name), nil
}

// openSession takes the lock of a session and adds its earlier turns to a run that is
// about to start the next one: the values of the agent's variables, and the
// replies that were recorded.
func (p *Process) openSession(run *Run) error {
	st, err := p.Runs.OpenStore()
	if err != nil {
		return err
	}
	agent, name, _ := runs.SessionOf(run.Thread)
	if run.lock, err = st.LockRun(run.Thread); err != nil {
		if driven, ok := errors.AsType[*runs.BusyError](err); ok {
			return &failure.Error{Kind: failure.Stale, Err: driven, Next: "wait for it, or use another session"}
		}
		return err
	}
	snap, err := history.Inspect(context.Background(), st.Store, run.Thread, 0)
	switch {
	case errors.Is(err, journal.ErrNoThread):
		return nil
	case err != nil:
		return err
	case !snap.Status.Final():
		return failure.NewStale("finish it: raddle resume "+snap.Run+"; or cancel it: raddle runs cancel "+snap.Run,
			"the last turn of session '%s' of agent '%s' has not ended: run %s (%s)", name, agent, snap.Run, snap.Status)
	}
	if before, err := runs.DecodeRecord(snap.Meta); err == nil {
		if before.Dir != run.Record.Dir && config.IsDir(before.Dir) && !p.Bundled.isCopy(before.Dir, run.Record.Dir) {
			return failure.NewStale("choose another name for this session", "session '%s' belongs to the agent in %s, not to the one in %s", name, p.Dirs.ShortPath(before.Dir), p.Dirs.ShortPath(run.Record.Dir))
		}
		mark, err := foreign.FindCurrent(context.Background(), st, run.Thread, 0)
		if err != nil {
			return err
		}
		if mark.IsLimited() { // only the conversation counts
			run.addNotice(p, fmt.Sprintf("session '%s' was not started here: it came from %s. Its conversation is used, and nothing else of it", name, mark.From))
			before.Variables = nil
			before.VariablesFrom = nil
		}
		if err := sameVariables(run, before, name); err != nil {
			return err
		}
		run.Record.Variables = mergeValues(before.Variables, run.Record.Variables)
		run.Record.VariablesFrom = before.VariablesFrom
		if err := p.restoreVariables(run.Record, "pass it again with --agent-variable, or set %s to it"); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(run.Agent.Models(), func(id string) bool { return strings.HasPrefix(id, "script:") }) {
		return nil // only transcripts need to know their position
	}
	run.replies, err = st.ListReplyIDs(context.Background(), run.Thread, 0)
	return err
}

// sameVariables returns an error if a variable has another value than at the start of
// the session: the system prompt would still contain the old one. A value that
// is a secret was not recorded, and is not compared.
func sameVariables(run *Run, before *runs.Record, session string) error {
	for _, v := range run.Agent.Variables() {
		now, given := run.Record.Variables[v.Name]
		then, known := before.Variables[v.Name]
		if !known && v.Default != nil {
			then = *v.Default
			known = true
		}
		if given && known && now != then && !strings.Contains(then, redact.Mask) {
			return failure.NewUsage("use another session, or leave the variable out: the session has its value",
				"session '%s' of agent '%s' was started with another value of the variable %q", session, run.Agent.Name, v.Name)
		}
	}
	return nil
}

// mergeValues returns two sets of values as one; values of the second one take precedence.
func mergeValues(old, now map[string]string) map[string]string {
	if len(old) == 0 {
		return now
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	return all
}
