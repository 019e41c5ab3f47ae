package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"
	"mvdan.cc/sh/v3/shell"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

var (
	clientKeys = []string{"api_base", "api_key", "api_key_command", "cache_ttl", "context", "credentials", "extra_body", "extra_headers", "location", "models", "name", "profile", "project", "proxy", "region", "strict", "type", "wire"}

	// modelKeys are the keys of a model. Some are accepted because configurations contain
	// them, and are ignored.
	modelKeys = []string{
		"name", "type", "extra_body", "reasoning_levels", "reasoning_effort_levels",
		"input_price", "max_input_tokens", "max_output_tokens", "output_price", "require_max_tokens", "strict",
		"supports_function_calling", "supports_reasoning", "supports_vision",
	}
	modelKinds = []string{"chat", "embedding", "reranker"}
)

// readClients reads a list of clients, or a mapping from their names.
func (r *configReader) readClients(n *yaml.Node, c *Config) {
	if n = strictyaml.ResolveAlias(n); n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.readClient(n.Content[i+1], n.Content[i].Value, c)
		}
		return
	}
	for _, item := range r.ReadItems(n, "clients") {
		r.readClient(item, "", c)
	}
}

func (r *configReader) readClient(n *yaml.Node, name string, c *Config) {
	cl := Client{Name: name}
	r.readSetKeys(n, "a client", clientKeys, func(key string, v *yaml.Node) {
		switch key {
		case "models":
			for _, item := range r.ReadItems(v, "models") {
				r.readModel(item, &cl)
			}
			return
		case "extra_headers":
			cl.Headers = map[string]string{}
			r.ReadKeys(v, key, nil, func(name string, value *yaml.Node) { r.readHeader(name, value, cl.Headers) })
			return
		case "extra_body":
			cl.Body = r.readBody(v)
			return
		}
		if key == "api_base" || key == "api_key" {
			r.readAccess(key, v, &cl)
			return
		}
		if key == "api_key_command" {
			r.readKeyCommand(v, &cl)
			return
		}
		s, ok := r.readScalar(v, key)
		switch {
		case !ok:
		case key == "name":
			cl.Name = s
		case key == "type":
			cl.Type = cmp.Or(ClientAliases[s], s)
			if !slices.Contains(ClientTypes(), cl.Type) {
				r.ReportFault(v, cmp.Or(ClientHint(s), wording.SuggestNearest(s, ClientTypes(), "")), "unknown client type %q; the types are %s", s, strings.Join(ClientTypes(), ", "))
			}
		case key == "wire":
			if cl.Wire = s; !slices.Contains(Wires, s) {
				r.ReportFault(v, wording.SuggestNearest(s, Wires, ""), "unknown wire %q; the wires are %s", s, strings.Join(Wires, " and "))
			}
		case key == "profile":
			cl.Profile = s
		case key == "strict":
			cl.Strict = r.readChoice(v, key, s, StrictModes)
		case key == "cache_ttl":
			cl.Cache = r.readChoice(v, key, s, CacheTimes)
		case key == "region", key == "location":
			if r.checkPlace(v, key, s); key == "region" {
				cl.Region = s
			} else {
				cl.Location = s
			}
		case key == "project":
			cl.Project = s
		case key == "credentials":
			if cl.Instance = s == "instance"; !cl.Instance {
				r.ReportFault(v, "leave it out for those of your environment and your files", "credentials must be instance, which means those of the machine or the container")
			}
		case key == "context":
			if n, err := strconv.Atoi(s); err != nil || n <= 0 {
				r.ReportFault(v, "", "context must be a number of tokens, such as 32768")
			} else {
				cl.Context = n
			}
		case key == "proxy":
			if cl.Proxy = s; !isProxy(s) {
				r.ReportFault(v, "", "proxy must be an address with http, https or socks5, such as http://127.0.0.1:3128, or %s", ProxyNone)
			}
		}
	})
	r.completeClient(n, &cl, c)
	c.Clients = append(c.Clients, cl)
}

// readChoice returns a value that must be one of a list.
func (r *configReader) readChoice(v *yaml.Node, key, value string, list []string) string {
	if !slices.Contains(list, value) {
		r.ReportFault(v, wording.SuggestNearest(value, list, ""), "%s must be one of %s, not %q", key, strings.Join(list, ", "), value)
	}
	return value
}

// checkPlace reports a region or a location that cannot be one: it becomes a part of an address.
func (r *configReader) checkPlace(v *yaml.Node, key, text string) {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		r.ReportFault(v, "", "%s must be a name such as us-east-1 or europe-west4", key)
	}
}

// readHeader reads a header of every request of a client.
func (r *configReader) readHeader(name string, v *yaml.Node, headers map[string]string) {
	s, ok := r.readScalar(v, name)
	switch {
	case !ok:
	case !httpguts.ValidHeaderFieldName(name):
		r.ReportFault(v, "", "%q cannot be the name of a header", name)
	case !httpguts.ValidHeaderFieldValue(s):
		r.ReportFault(v, "", "the value of the header %q has characters that a header cannot have", name)
	default:
		headers[name] = s
	}
}

// readBody reads members of a request, which must be an object of JSON.
func (r *configReader) readBody(v *yaml.Node) map[string]any {
	v = strictyaml.ResolveAlias(v)
	if v.Kind != yaml.MappingNode {
		r.ReportFault(v, "", "extra_body must be a mapping of the members that every request gets")
		return nil
	}
	body := map[string]any{}
	if o, ok := strictyaml.DecodeValue(v).(*jsonvalue.Object); ok {
		body = maps.Collect(o.All())
	}
	if _, err := json.Marshal(body); err != nil {
		r.ReportFault(v, "", "extra_body must be values that JSON has: %v", err)
		return nil
	}
	return body
}

// isProxy reports whether a value names a proxy that raddle can use.
func isProxy(value string) bool {
	if value == ProxyNone {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.Host != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}

// readAccess reads the address or the key of a client. A variable without a value is an error of the calls that need
// it.
func (r *configReader) readAccess(key string, v *yaml.Node, cl *Client) {
	s, unset, ok := r.readReference(v, key)
	if !ok {
		return
	}
	if unset != nil {
		cl.Unset = append(cl.Unset, *unset)
	}
	written := strictyaml.ResolveAlias(v).Value
	ref, isReference := environ.ParseReference(written)
	if !isReference && environ.HasReference(written) {
		r.ReportFault(v, "put the whole value into a variable", "%s names a variable in a part of its value", key)
	}
	if key == "api_base" {
		cl.Base = s
		cl.BaseAt = v.Line
		return
	}
	cl.Key = s
	cl.KeyVar = ref.Name
	if s != "" {
		cl.KeyLine = v.Line
	}
}

// readKeyCommand reads a command: a list of words, or a line that is divided into words as a shell does it. No shell
// runs it.
func (r *configReader) readKeyCommand(v *yaml.Node, cl *Client) {
	cl.KeyCommandAt = v.Line
	if strictyaml.ResolveAlias(v).Kind == yaml.SequenceNode {
		for _, item := range r.ReadItems(v, "api_key_command") {
			word, ok := r.readScalar(item, "a word of api_key_command")
			if !ok {
				return
			}
			cl.KeyCommand = append(cl.KeyCommand, word)
		}
	} else if line, ok := r.readScalar(v, "api_key_command"); ok {
		words, err := shell.Fields(line, r.env.Get)
		if err != nil {
			r.ReportFault(v, "quote it as for a shell, or write a list of words; no shell runs it", "api_key_command cannot be divided into words")
			return
		}
		cl.KeyCommand = words
	}
	if len(cl.KeyCommand) == 0 || cl.KeyCommand[0] == "" {
		r.ReportFault(v, "", "api_key_command names no program")
	}
}

// FindUnset returns the variable without a value that a key of the client names, nil if there is none.
func (c *Client) FindUnset(key string) *UnsetVariable {
	for i := range c.Unset {
		if c.Unset[i].Key == key {
			return &c.Unset[i]
		}
	}
	return nil
}

// completeClient checks what can only be checked on the whole client.
func (r *configReader) completeClient(n *yaml.Node, cl *Client, c *Config) {
	switch {
	case cl.Type == "" && slices.Contains(ClientTypes(), cl.Name):
		cl.Type = cl.Name
	case cl.Type == "" && ClientAliases[cl.Name] != "":
		cl.Type = ClientAliases[cl.Name]
	case cl.Type == "":
		r.ReportFault(n, "", "a client needs a type: one of %s", strings.Join(ClientTypes(), ", "))
	case cl.Name == "":
		cl.Name = cl.Type
	}
	misplaced, types := cl.findMisplaced()
	switch {
	case cl.KeyCommand != nil && (cl.KeyLine > 0 || cl.KeyVar != ""):
		r.ReportFault(n, "remove one of them", "client %q has an api_key and an api_key_command", cl.Name)
	case strings.Contains(cl.Name, ":"):
		r.ReportFault(n, "", "the client's name %q has a colon; model ids are CLIENT:MODEL", cl.Name)
	case slices.ContainsFunc(c.Clients, func(o Client) bool { return o.Name == cl.Name }):
		r.ReportFault(n, "give one of them another name", "two clients are named %q", cl.Name)
	case misplaced != nil:
		r.ReportFault(n, "", "client %q: only clients with type %s %s", cl.Name, types, misplaced.says)
	case cl.Type == "openai-compatible" && cl.Base == "" && cl.FindUnset("api_base") == nil:
		r.ReportFault(n, "", "client %q needs an api_base: the address of its server", cl.Name)
	}
}

// readModel reads a model: its name, or a mapping.
func (r *configReader) readModel(n *yaml.Node, cl *Client) {
	m := Model{Kind: "chat"}
	if strictyaml.ResolveAlias(n).Kind == yaml.ScalarNode {
		m.Name, _ = r.readScalar(n, "a model")
		cl.Models = append(cl.Models, m)
		return
	}
	r.readSetKeys(n, "a model", modelKeys, func(key string, v *yaml.Node) {
		switch key {
		case "extra_body":
			m.Body = r.readBody(v)
		case "name":
			m.Name, _ = r.readScalar(v, key)
		case "type":
			m.Kind, _ = r.readScalar(v, key)
			if !slices.Contains(modelKinds, m.Kind) {
				r.ReportFault(v, wording.SuggestNearest(m.Kind, modelKinds, ""), "unknown model type %q; the types are %s", m.Kind, strings.Join(modelKinds, ", "))
			}
		case "reasoning_levels", "reasoning_effort_levels":
			for _, item := range r.ReadItems(v, key) {
				if s, ok := r.readScalar(item, key); ok {
					m.Efforts = append(m.Efforts, s)
				}
			}
		default:
			r.readModelFact(key, v, &m)
		}
	})
	if m.Name == "" {
		r.ReportFault(n, "", "a model needs a name")
	}
	cl.Models = append(cl.Models, m)
}

// readModelFact reads one fact about a model.
func (r *configReader) readModelFact(key string, v *yaml.Node, m *Model) {
	s, ok := r.readScalar(v, key)
	if !ok {
		return
	}
	var err error
	switch key {
	case "max_input_tokens":
		m.Window, err = strconv.Atoi(s)
	case "max_output_tokens":
		m.Output, err = strconv.Atoi(s)
	case "input_price":
		m.InputPrice, err = parseNumber(s, 0, math.MaxFloat64)
	case "output_price":
		m.OutputPrice, err = parseNumber(s, 0, math.MaxFloat64)
	case "strict":
		m.Strict = r.readChoice(v, key, s, StrictModes)
	case "supports_function_calling":
		var can *bool
		can, err = parseBool(s)
		m.NoTools = err == nil && !*can
	}
	if err != nil {
		r.ReportFault(v, "", "%s: %v", key, err)
	}
}
