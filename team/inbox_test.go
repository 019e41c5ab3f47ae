package team_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A wait for a message ends with the message, when its time has passed, and when no
// agent runs that may write.
func TestWaitForMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		var results []string
		var at []time.Duration
		start := time.Now()
		g := compile(t, pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
			at = append(at, time.Since(start))
			switch v.round {
			case 1:
				return calls(v, "agent__check_inbox", `{"wait_seconds":"60"}`)
			case 2:
				return calls(v, "agent__check_inbox", `{"wait_seconds":5}`)
			case 3:
				return calls(v, "agent__check_inbox", `{"wait_seconds":200}`)
			case 4:
				return calls(v, "agent__check_inbox", `{"wait_seconds":"soon"}`)
			}
			results = v.results[1:]
			return words("ok")
		}), func(_ context.Context, v view) llm.Message {
			time.Sleep(20 * time.Second)
			if v.round == 0 {
				return calls(v, "agent__send_message", `{"id":"parent","message":"up"}`)
			}
			return words("done")
		}, team.Spawn{}))
		if _, err := (&graph.Runner{Graph: g, Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{`"content":"up"`, `{"messages":[],"count":0}`, `{"messages":[],"count":0}`, "'wait_seconds' must be a number"} {
			if !strings.Contains(results[i], want) {
				t.Errorf("result %d is %s, want %s", i, results[i], want)
			}
		}
		for i, want := range []int{0, 20, 25, 40, 40} {
			if got := int(at[i].Seconds()); got != want {
				t.Errorf("round %d began after %d seconds, want %d", i+1, got, want)
			}
		}
	})
}
