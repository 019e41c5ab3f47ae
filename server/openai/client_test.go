package openai_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/clienttest"
)

// clients runs a test with OpenAI's libraries for Python and for JavaScript, against one server.
func clients(t *testing.T, test func(t *testing.T, server *clienttest.Server, run func(action string) string)) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"config.yaml":     "name: slow\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- {text: too late, delay_ms: 100000, repeat: true}\n",
	})
	home.AddAgent(t, "failing", map[string]string{
		"config.yaml":     "name: failing\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- {error: {class: bad_request, message: the model refuses}, repeat: true}\n",
	})
	server := home.Serve(t)
	for name, command := range map[string]func(testing.TB, string, string, ...string) *exec.Cmd{"client.py": clienttest.PythonCommand, "client.mjs": clienttest.NodeCommand} {
		t.Run(name, func(t *testing.T) {
			test(t, server, func(action string) string {
				return clienttest.ReadOutput(t, server.Connect(command(t, "openai", name, action)))
			})
		})
	}
}

// The libraries list agents, stream an answer with calls of tools in it, answer questions, and get errors of their own types.
func TestExtraClientsOfOpenAI(t *testing.T) {
	clients(t, func(t *testing.T, _ *clienttest.Server, run func(action string) string) {
		for action, want := range map[string][]string{
			"models": {"assistant triage", "raddle"},
			"stream": {
				"I look up the order, the price and the stock.", "",
				"Order 1007 is in the workshop until Friday. Two raddles cost 49.00 EUR if you pick them up.",
				"stop 1515 true",
			},
			"question": {
				"asked: page?", "same run: true", "asked: Anything to add for team-ledger? [default: Nothing to add.]", "same run: true",
				"Paged team-ledger (yes): Card payments have failed since the 09:40 release; about forty orders are stuck.",
				"stop done",
			},
			"error": {
				`NotFoundError 404 "model_not_found" "model"`, `BadRequestError 400 "unsupported_parameter" "n"`, `InternalServerError 500 "run_failed" null`,
				`APIError "run_failed"`, "AuthenticationError 401",
			},
		} {
			if diff := cmp.Diff(want, strings.Split(run(action), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", action, diff)
			}
		}
	})
}

// A library that closes its stream ends the turn of the agent while it works.
func TestExtraClientsOfOpenAICancel(t *testing.T) {
	clients(t, func(t *testing.T, server *clienttest.Server, run func(action string) string) {
		id := run("cancel")
		var state struct {
			Status string `json:"status"`
		}
		for end := time.Now().Add(30 * time.Second); state.Status == "" || state.Status == "running"; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("run %s still works", id)
			}
			shown := clienttest.ReadOutput(t, server.Home.Command(t, "runs", "show", id, "--output", "json"))
			if err := json.Unmarshal([]byte(shown), &state); err != nil {
				t.Fatalf("%v\n%s", err, shown)
			}
		}
	})
}
