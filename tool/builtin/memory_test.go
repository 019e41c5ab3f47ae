package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/llm"
	"raddle.dev/memory"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// memoryHost returns a host with a memory, for the user that the pointer names.
func memoryHost(user *string) builtin.Host {
	st := memory.New()
	return builtin.Host{Workspace: "/w", Memory: &builtin.Memory{
		Open: func() (memory.Store, error) { return st, nil }, User: func(context.Context) string { return *user },
		HasSecret: func(text string) bool { return strings.Contains(text, "hunter2") },
	}}
}

// useMemory calls a tool and returns the text of its result.
func useMemory(t *testing.T, h builtin.Host, name string, args object) string {
	t.Helper()
	r, err := lookup(t, h, name).Run(t.Context(), tool.Call{Args: raw(t, args)})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	text := ""
	for _, part := range r.Content {
		text += part.(llm.Text).Text
	}
	return fmt.Sprint(r.Error, " ", text)
}

func TestMemoryTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := "ada"
		h := memoryHost(&user)
		today := time.Now().UTC().Format(time.DateOnly)
		for _, c := range []struct {
			user, tool string
			args       object
			want       string
		}{
			{"ada", "memory__search", object{}, `false {"output":"nothing is remembered about this"}`},
			{"ada", "memory__save", object{"key": "colour", "value": "Ada likes blue."}, `false {"output":"saved under the key \"colour\""}`},
			{"ada", "memory__save", object{"key": "address", "value": `{"city": "Kyiv"}`, "days": 2}, `false {"output":"saved under the key \"address\""}`},
			{"ada", "memory__search", object{"query": "what does she like"}, `false [{"key":"colour","value":"Ada likes blue.","saved":"` + today + `"}]`},
			{"ada", "memory__search", object{"query": "city"}, `false [{"key":"address","value":{"city":"Kyiv"},"saved":"` + today + `"}]`},
			{"bob", "memory__search", object{"query": "blue city"}, `false {"output":"nothing is remembered about this"}`},
			{"", "memory__search", object{}, `false {"output":"nothing is remembered about this"}`},
			{"ada/", "memory__search", object{}, `false {"output":"nothing is remembered about this"}`},
			{"bob", "memory__forget", object{"key": "colour"}, `false {"output":"nothing is remembered under the key \"colour\""}`},
			{"ada", "memory__save", object{"key": "x", "value": "the password is hunter2"}, "true secret"},
			{"ada", "memory__save", object{"key": "hunter2", "value": "x"}, "true secret"},
			{"ada", "memory__save", object{"key": "x", "value": "x", "days": 0}, "true days"},
			{"ada", "memory__save", object{"key": "x\x1b", "value": "x"}, "true control characters"},
			{"ada", "memory__search", object{"query": "x", "limit": -1}, "true limit"},
			{"ada", "memory__forget", object{"key": "colour"}, `false {"output":"forgot what was under the key \"colour\""}`},
			{"ada", "memory__search", object{}, `false [{"key":"address","value":{"city":"Kyiv"},"saved":"` + today + `"}]`},
		} {
			user = c.user
			got := useMemory(t, h, c.tool, c.args)
			if failed, part, _ := strings.Cut(c.want, " "); got != c.want && (failed == "false" || !strings.HasPrefix(got, "true") || !strings.Contains(got, part)) {
				t.Errorf("%s: %s %v: %s, want %s", c.user, c.tool, c.args, got, c.want)
			}
		}
		time.Sleep(48 * time.Hour)
		user = "ada"
		if got := useMemory(t, h, "memory__search", object{}); !strings.Contains(got, "nothing") {
			t.Errorf("after its days: %s", got)
		}
	})
}

func TestMemoryIsMissing(t *testing.T) {
	for _, h := range []builtin.Host{{}, {Memory: &builtin.Memory{Open: func() (memory.Store, error) { return nil, errors.New("the disk is full") }}}} {
		for _, name := range []string{"memory__save", "memory__search", "memory__forget"} {
			if _, err := lookup(t, h, name).Run(t.Context(), tool.Call{Args: raw(t, object{"key": "k", "value": "v"})}); err == nil {
				t.Errorf("%s works without a memory", name)
			}
		}
	}
}

// TestMemoryRules: a rule allows the writes, or denies them.
func TestMemoryRules(t *testing.T) {
	user := "ada"
	save := lookup(t, memoryHost(&user), "memory__save")
	call := tool.Call{Args: raw(t, object{"key": "k", "value": "v"})}
	policy := permission.Policy{Workspace: "/w"}
	d, err := policy.Decide(t.Context(), save, call)
	if err != nil || d.Verdict != permission.Ask || len(d.Grant) == 0 {
		t.Fatalf("%+v, %v, want a question with a grant", d, err)
	}
	for _, text := range append([]string{"memory__save"}, d.Grant...) {
		rule, err := permission.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		policy.Granted = []permission.Rule{rule}
		if d, err := policy.Decide(t.Context(), save, call); err != nil || d.Verdict != permission.Allow {
			t.Errorf("with the rule %s: %+v, %v", text, d, err)
		}
	}
	policy = permission.Policy{Workspace: "/w", Mode: permission.ModePlan}
	if d, err := policy.Decide(t.Context(), save, call); err != nil || d.Verdict != permission.Deny {
		t.Errorf("in the mode plan: %+v, %v", d, err)
	}
}

// petModel is an embedding model for which dogs and pets are the same. It may fail.
type petModel struct{ failed *bool }

func (petModel) Model() string { return "pets" }

func (m petModel) Embed(_ context.Context, _ bool, texts []string) ([][]float32, error) {
	if *m.failed {
		return nil, errors.New("no network")
	}
	var vectors [][]float32
	for _, text := range texts {
		v := []float32{0, 1}
		if strings.Contains(text, "dog") || strings.Contains(text, "pet") {
			v = []float32{1, 0}
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}

// With an embedding model entries are found by meaning, and if it fails, by words.
func TestMemoryByMeaning(t *testing.T) {
	user, failed := "ada", false
	h := memoryHost(&user)
	h.Memory.Embedder = func() memory.Embedder { return petModel{&failed} }
	useMemory(t, h, "memory__save", object{"key": "rex", "value": "a dog"})
	useMemory(t, h, "memory__save", object{"key": "tea", "value": "green"})
	if got := useMemory(t, h, "memory__search", object{"query": "which pet"}); !strings.Contains(got, "rex") || strings.Contains(got, "tea") {
		t.Errorf("by meaning: %s", got)
	}
	failed = true
	useMemory(t, h, "memory__save", object{"key": "tom", "value": "a cat"})
	if got := useMemory(t, h, "memory__search", object{"query": "cats"}); !strings.Contains(got, "tom") || strings.Contains(got, "rex") {
		t.Errorf("by words: %s", got)
	}
	if got := useMemory(t, h, "memory__search", object{"query": "which pet"}); !strings.Contains(got, "nothing") {
		t.Errorf("by words: %s", got)
	}
}
