package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
)

// A referencePlace is a place of config.yaml where a value may name a variable.
type referencePlace struct {
	file  string // with VALUE
	value string // that the file may have there
	use   bool   // a variable without a value is an error of the calls that need it
}

// referencePlaces returns every place: the keys of one value, and the fields of clients and their models.
func referencePlaces(t *testing.T) map[string]referencePlace {
	values := map[string]string{
		"in_doubt": "ask", "theme": "dark", "permission_mode": "edits", "read_timeout": "5", "stream_timeout": "5", "tool_timeout": "5", "retry_patience": "5",
		"retention_done": "5d", "retention_failed": "5d", "temperature": "1", "top_p": "1",
		"box": "true", "function_calling_support": "true", "mcp_server_support": "true", "skills_enabled": "true", "update_notice": "true",
	}
	places := map[string]referencePlace{
		"document_loaders": {file: "document_loaders: {pdf: VALUE}\n", value: "cat $1"},
		"visible_skills":   {file: "visible_skills: [VALUE]\n", value: "a"},
		"the name of a model": {
			file: "clients: [{type: openai, models: [VALUE]}]\n", value: "a",
		},
	}
	for _, s := range settings {
		value := values[s.key]
		if value == "" {
			value = "7"
		}
		places[s.key] = referencePlace{file: s.key + ": VALUE\n", value: value}
	}
	for _, key := range clientKeys {
		place := referencePlace{file: "clients: [{type: openai, " + key + ": VALUE}]\n", value: "a"}
		switch key {
		case "models", "extra_body":
			continue
		case "wire":
			place.value = "chat"
		case "strict":
			place.value = "on"
		case "cache_ttl":
			place = referencePlace{file: "clients: [{type: anthropic, cache_ttl: VALUE}]\n", value: "1h"}
		case "context":
			place.value = "7"
		case "profile":
			place.file = "clients: [{type: openai-compatible, api_base: 'http://a', profile: VALUE}]\n"
		case "proxy":
			place.value = ProxyNone
		case "region":
			place.file = "clients: [{type: bedrock, region: VALUE}]\n"
		case "credentials":
			place = referencePlace{file: "clients: [{type: bedrock, credentials: VALUE}]\n", value: "instance"}
		case "project", "location":
			place.file = "clients: [{type: vertex, " + key + ": VALUE}]\n"
		case "extra_headers":
			place.file = "clients: [{type: openai, extra_headers: {X-Team: VALUE}}]\n"
		case "type":
			place = referencePlace{file: "clients: [{type: VALUE}]\n", value: "openai"}
		case "api_base", "api_key":
			place.use = true
		case "api_key_command":
			place.file = "clients: [{type: openai, api_key_command: [a, VALUE]}]\n"
		}
		places["clients."+key] = place
	}
	for _, key := range modelKeys {
		place := referencePlace{file: "clients: [{type: openai, models: [{name: a, " + key + ": VALUE}]}]\n", value: "1"}
		switch key {
		case "extra_body":
			continue
		case "name":
			place.file = "clients: [{type: openai, models: [{name: VALUE}]}]\n"
		case "type":
			place.value = "chat"
		case "strict":
			place.value = "on"
		case "reasoning_levels", "reasoning_effort_levels":
			place.file = strings.Replace(place.file, "VALUE", "[VALUE]", 1)
		}
		places["clients.models."+key] = place
	}
	return places
}

// Everywhere that a value may name a variable, both notations mean the same: the value of the variable, and without one an error with its place.
func TestReferences(t *testing.T) {
	for name, place := range referencePlaces(t) {
		for _, notation := range []string{"${KEY}", "${ KEY }", "{{KEY}}", "{{ KEY }}"} {
			t.Run(name+" "+notation, func(t *testing.T) {
				dir := writeConfig(t, strings.Replace(place.file, "VALUE", "'"+notation+"'", 1))
				want, err := Load(writeConfig(t, strings.Replace(place.file, "VALUE", "'"+place.value+"'", 1)), nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Load(dir, environ.Environ{"KEY=" + place.value})
				for i := range got.Clients {
					got.Clients[i].KeyVar = ""
				}
				if fmt.Sprintf("%+v", plain(got)) != fmt.Sprintf("%+v", plain(want)) || err != nil {
					t.Errorf("set:\n%+v, %v\nwant:\n%+v", got, err, want)
				}
				column := strings.Index(place.file, "VALUE") + 1
				for state, env := range map[string]environ.Environ{"not set": nil, "empty": {"KEY="}} {
					at := fmt.Sprintf("%s:1:%d: ", filepath.Join(dir, FileName), column)
					c, err := Load(dir, env)
					text := fmt.Sprint(err)
					if place.use {
						if err != nil || len(c.Clients) != 1 || len(c.Clients[0].Unset) != 1 {
							t.Fatalf("%s: %+v, %v", state, c, err)
						}
						text = c.Clients[0].Unset[0].String()
					}
					if !strings.Contains(text, at) || !strings.Contains(text, "names the variable KEY, which is "+state) {
						t.Errorf("%s: %s", state, text)
					}
				}
			})
		}
	}
}

// plain returns a configuration in a form that can be compared as text.
func plain(c Config) (values []string) {
	for _, s := range []any{c.Temperature, c.TopP, c.FunctionCalling, c.UpdateNotice, c.MCP, c.Skills.Enabled, c.RAG.ChunkSize, c.RAG.ChunkOverlap, c.RAG.TopK} {
		switch p := s.(type) {
		case *float64:
			if p != nil {
				values = append(values, fmt.Sprint(*p))
			}
		case *bool:
			if p != nil {
				values = append(values, fmt.Sprint(*p))
			}
		case *int:
			if p != nil {
				values = append(values, fmt.Sprint(*p))
			}
		}
	}
	c.Temperature, c.TopP, c.FunctionCalling, c.UpdateNotice, c.MCP, c.Skills.Enabled, c.RAG.ChunkSize, c.RAG.ChunkOverlap, c.RAG.TopK = nil, nil, nil, nil, nil, nil, nil, nil, nil
	for i := range c.Clients {
		for j := range c.Clients[i].Models {
			m := &c.Clients[i].Models[j]
			for _, p := range []*float64{m.InputPrice, m.OutputPrice} {
				if p != nil {
					values = append(values, fmt.Sprint(*p))
				}
			}
			m.InputPrice, m.OutputPrice = nil, nil
		}
	}
	return append(values, fmt.Sprintf("%+v", c))
}

// A variable in a part of an address or a key is an error, and not sent as it is written.
func TestReferenceInAPart(t *testing.T) {
	for _, key := range []string{"api_base", "api_key"} {
		_, err := Load(writeConfig(t, "clients: [{type: openai, "+key+": 'x{{KEY}}'}]\n"), environ.Environ{"KEY=a"})
		if err == nil || !strings.Contains(err.Error(), key+" names a variable in a part of its value") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A value that names a variable is kept as it is written.
func TestSetReference(t *testing.T) {
	dir := t.TempDir()
	if _, err := SetValue(dir, "temperature", "${WARM}", environ.Environ{"WARM=1"}); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, FileName)); !slices.Contains(strings.Fields(string(text)), "${WARM}") {
		t.Errorf("%s", text)
	}
	if _, err := SetValue(dir, "temperature", "{{COLD}}", environ.Environ{"COLD=ice"}); err == nil || !strings.Contains(err.Error(), "is not a number") {
		t.Errorf("a value that is not a number: %v", err)
	}
	if _, err := SetValue(dir, "temperature", "{{COLD}}", nil); err != nil {
		t.Errorf("a variable of another environment: %v", err)
	}
}
