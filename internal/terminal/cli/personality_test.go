//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testneed"
)

// looker is an agent that looks things up in a conversation with reasoning and parallel calls.
const looker = `
-- looker/config.yaml --
name: looker
instructions: You look things up.
-- looker/tools.sh --
# @cmd Reads a thing.
# raddle: read-only
# @option --name! The name.
look() { echo "$argc_name" >> "$RADDLE_WORKSPACE/log"; echo "seen $argc_name" >> "$LLM_OUTPUT"; }
`

// A memorizer answers a request that it has had before as it did then, and every other one with the next turn.
type memorizer struct {
	turns []llmtest.Turn

	mu     sync.Mutex
	bodies []string // all requests, in their order
	known  []string // without those that came again
}

func (m *memorizer) answer(body []byte) (llmtest.Turn, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, string(body))
	i := slices.Index(m.known, string(body))
	if i < 0 {
		i = len(m.known)
		m.known = append(m.known, string(body))
	}
	if i >= len(m.turns) {
		return llmtest.Turn{Text: "there is no turn left"}, http.StatusBadRequest
	}
	return m.turns[i], http.StatusOK
}

// seen returns the requests so far: all, and those that differ.
func (m *memorizer) seen() (all, different []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bodies), slices.Clone(m.known)
}

// countRequests returns how often each request was made.
func (m *memorizer) countRequests() map[string]int {
	all, _ := m.seen()
	times := map[string]int{}
	for _, body := range all {
		times[body]++
	}
	return times
}

// randomTurns returns a conversation of one to four rounds of calls, with and without thoughts and text, and an answer.
func randomTurns(r *rand.Rand) (turns []llmtest.Turn) {
	words := []string{"Žluťoučký kůň", "馬", "a\nb", `"{x}"`, "plain", "emoji 🐎"}
	pick := func() string { return words[r.IntN(len(words))] }
	for round := range 1 + r.IntN(4) {
		turn := llmtest.Turn{Thought: "think of " + pick()}
		if r.IntN(2) == 0 {
			turn.Text = "I look: " + pick()
		}
		for n := range 1 + r.IntN(3) {
			args, _ := json.Marshal(map[string]string{"name": fmt.Sprint(pick(), round, n)})
			turn.Calls = append(turn.Calls, llmtest.Call{ID: fmt.Sprintf("c%d%d", round, n), Name: "look", Args: string(args)})
		}
		turns = append(turns, turn)
	}
	return append(turns, llmtest.Turn{Thought: "enough", Text: "It is over."})
}

// startVendor starts a server of a personality and sets up its model.
func startVendor(t *testing.T, w *workplace, v llmtest.Vendor, turns []llmtest.Turn) *memorizer {
	m := &memorizer{turns: turns}
	server := httptest.NewServer(v.NewHandler(m.answer))
	t.Cleanup(server.Close)
	client, model := v.Client(server.URL)
	w.write("pic.png", testPNG)
	w.write(".config/raddle/config.yaml", "model: "+model+"\nclients:\n- "+client+"\n")
	return m
}

// A random conversation with each personality, with a picture, is killed at a random event (three times in make soak) and resumed: no recorded reply is requested again, and the requests
// are those of a run that was never killed. The run is exported, and a replay of the file elsewhere, without the provider, asks for the same.
func TestKilledConversationsOfAllVendors(t *testing.T) {
	t.Parallel()
	needBash(t)
	for _, v := range llmtest.Vendors() {
		t.Run(strings.ReplaceAll(v.Name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			seed := fnv.New64a()
			seed.Write([]byte(v.Name))
			r := rand.New(rand.NewPCG(seed.Sum64(), 1))
			turns := randomTurns(r)
			whole := newReleasedWorkplace(t, looker)
			base := startVendor(t, whole, v, turns)
			if res := whole.run("run", "./looker", "look at it", "-f", "pic.png", "-q"); res.code != 0 || res.out != "It is over.\n" {
				t.Fatalf("exit code %d, %q, %s", res.code, res.out, res.err)
			}
			_, want := base.seen()
			if len(want) != len(turns) || !strings.Contains(want[0], in64(testPNG)) {
				t.Fatalf("%d requests for %d turns, the first without the picture: %.1000s", len(want), len(turns), want[0])
			}
			rounds := 1
			if testneed.Soaks() {
				rounds = 3
			}
			for range rounds {
				killedConversation(t, v, turns, want, 1+r.IntN(8*len(turns)), 1+r.IntN(8))
			}
		})
	}
}

// killedConversation kills a run at an event, and its continuation at another one, and compares what was requested.
func killedConversation(t *testing.T, v llmtest.Vendor, turns []llmtest.Turn, want []string, first, second int) {
	w := newReleasedWorkplace(t, looker)
	m := startVendor(t, w, v, turns)
	w.killAt(first, "run", "./looker", "look at it", "-f", "pic.png")
	runs := w.runs()
	if len(runs) == 0 {
		return // it was killed before anything was recorded
	}
	id := runs[0].Run
	for range 2 {
		if w.runs()[0].Status == "done" {
			break
		}
		held := w.recorded(id)["think"]
		_, known := m.seen()
		times := m.countRequests()
		w.killAt(second, "resume", id)
		for i, body := range known[:held] {
			if again := m.countRequests()[body] - times[body]; again != 0 {
				t.Errorf("killed at %d: reply %d was recorded, and was requested %d times more", first, i, again)
			}
		}
	}
	if w.runs()[0].Status != "done" {
		if res := w.run("resume", id, "-q"); res.code != 0 || res.out != "It is over.\n" {
			t.Fatalf("killed at %d and %d, resumed: exit code %d, %q, %s", first, second, res.code, res.out, res.err)
		}
	}
	_, got := m.seen()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("killed at %d and %d, the requests differ (-want +got):\n%s", first, second, d)
	}
	if res := w.run("runs", "export", id, "-o", "run.raddle"); res.code != 0 {
		t.Fatal(res.err)
	}
	other := newReleasedWorkplace(t, looker)
	other.write("run.raddle", w.read("run.raddle"))
	other.write(".config/raddle/config.yaml", w.read(filepath.Join(".config", "raddle", "config.yaml")))
	all, _ := m.seen()
	if res := other.run("replay", "run.raddle"); res.code != 0 {
		t.Errorf("killed at %d and %d, the replay: exit code %d, %s%s", first, second, res.code, res.out, res.err)
	}
	if again, _ := m.seen(); len(again) != len(all) {
		t.Errorf("the replay made %d requests", len(again)-len(all))
	}
}
