package team

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"raddle.dev/tool"
)

// longestWait is the longest time, in seconds, that agent__check_inbox waits.
const longestWait = 300

// checkInbox takes the messages out of the caller's inbox. With wait_seconds it
// first waits for a message, as long as an agent is running that may write one.
func checkInbox(ctx context.Context, s agentHandle, c tool.Call, a args) (tool.Result, error) {
	until, fault := a.waitDeadline(time.Now())
	if fault != "" {
		return tool.FailedResult("%s%s", toolFailed, fault), nil
	}
	s.mu.Lock()
	for time.Now().Before(until) {
		m := s.state.agents[s.id]
		_, again := s.old[c.Key]
		if again || m == nil || len(m.inbox) > 0 {
			break
		}
		writers := s.state.writerIDs(m)
		if len(writers) == 0 {
			break
		}
		open, err := s.awaitOrAsk(ctx, writers, until)
		if err != nil {
			s.mu.Unlock()
			return tool.Result{}, err
		}
		if open != nil {
			s.mu.Unlock()
			return tool.JSONResult(inboxResult{Messages: []inboxMessage{}, Pending: open}), nil
		}
	}
	s.mu.Unlock()
	return s.changeResult(entry{Op: opInbox, Key: c.Key, By: s.id})
}

// waitDeadline returns when the wait that a call asks for ends, or what is wrong with
// the call.
func (a args) waitDeadline(now time.Time) (end time.Time, fault string) {
	text := strings.TrimSpace(string(a.Wait))
	if text == "" {
		return now, ""
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return now, "'wait_seconds' must be a number of seconds from 0 to 300"
	}
	return now.Add(time.Duration(min(seconds, longestWait) * float64(time.Second))), ""
}

// writerIDs returns the running agents that may write to an agent.
func (s *state) writerIDs(m *member) (ids []string) {
	add := func(list []*member) {
		for _, o := range list {
			if o != m && o.status == running {
				ids = append(ids, o.id)
			}
		}
	}
	add(m.children)
	if m.id != lead {
		add(s.childrenOf(m.parent))
		add([]*member{s.agents[m.parent]})
	}
	return ids
}
