package provider

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// Each type of clients has one wire, and each provider has a type.
func TestEveryTypeHasAWire(t *testing.T) {
	types := config.ClientTypes()
	for _, p := range config.Providers {
		if !slices.Contains(types, p.ClientType()) {
			t.Errorf("%s: there is no type %s", p.Name, p.ClientType())
		}
		if w, found := wires[p.ClientType()]; !found || w.tools == nil {
			t.Errorf("%s: type %s has no wire", p.Name, p.ClientType())
		}
	}
	for typ := range wires {
		if !slices.Contains(types, typ) {
			t.Errorf("the wire of %s belongs to no type", typ)
		}
	}
}

// No beginning of a key is that of a longer one: the first that matches names its owner.
func TestKeyFormsAreDistinct(t *testing.T) {
	owners := map[string]string{}
	for _, p := range slices.Concat(config.Providers, foreignForms) {
		for _, form := range p.KeyForms {
			for other, owner := range owners {
				if strings.HasPrefix(form, other) || strings.HasPrefix(other, form) {
					t.Errorf("keys of %s and %s begin alike: %s, %s", p.Name, owner, form, other)
				}
			}
			owners[form] = p.Name
		}
	}
}

// A provider is one row and, if it has one of its own, its wire: nothing else knows providers by name.
func TestAProviderIsOneRow(t *testing.T) {
	errToy := errors.New("the wire of toy was opened")
	before := config.Providers
	t.Cleanup(func() {
		config.Providers = before
		delete(wires, "toy")
	})
	config.Providers = append(slices.Clip(before), config.Provider{
		Name:       "toy",
		Settings:   []string{"strict"},
		Keys:       []string{"TOY_API_KEY"},
		Addresses:  []string{"TOY_HOST"},
		Base:       "https://toy.example",
		Suggested:  []string{"toy-1"},
		KeyForms:   []string{"toykey-"},
		ModelForms: []string{"toy-"},
	})
	wires["toy"] = wire{
		open:  func(context.Context, *client, string, llm.Endpoint) (llm.Model, error) { return nil, errToy },
		tools: []string{llm.ToolWebSearch},
	}
	env := environ.Environ{"TOY_API_KEY=toykey-0123456789abcdef"}
	dir := t.TempDir()
	text := "clients:\n- {type: toy, name: mine, strict: auto}\n"
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Load(dir, env)
	if err != nil {
		t.Fatal(err)
	}
	r := NewResolver(&settings, config.Dirs{Config: dir}, env)
	for _, id := range []string{"toy:toy-1", "mine:toy-1"} {
		c, name := r.findClient(id)
		if _, err := r.openClientModel(t.Context(), c, name); !errors.Is(err, errToy) {
			t.Errorf("%s: %v", id, err)
		}
		if tools := r.Facts("", id).Provided; !slices.Equal(tools, []string{llm.ToolWebSearch}) {
			t.Errorf("%s: the tools of the provider are %v", id, tools)
		}
	}
	if list := r.ListChoices("toy"); len(list) != 1 || list[0].ID != "toy:toy-1" {
		t.Errorf("the choices are %v", list)
	}
	if info, known := r.FindKey("toy"); !known || info.Key != "TOY_API_KEY" {
		t.Errorf("the key is from %q", info.Key)
	}
	if why := r.JudgeKeyFor("openai", "toykey-0123456789abcdef"); !strings.Contains(why, "like a key of toy") {
		t.Errorf("the key of toy at another provider: %q", why)
	}
	if name := vendorOf("Toy-2"); name != "toy" {
		t.Errorf("the vendor is %q", name)
	}
	if !slices.Contains(ListKeyVariables(&settings), "TOY_API_KEY") {
		t.Error("scripts would get the key of toy")
	}
}
