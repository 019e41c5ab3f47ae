package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// applyEnvironment applies the environment's values instead of those of the file. The
// names of the variables start with the agent's name, as its directory has it
// or else as its file has it. A value that cannot be read causes a warning, and
// the file's value stays.
func applyEnvironment(c *spec.Config, dir string, getenv func(string) string) {
	o := &envOverrides{config: c, getenv: getenv, prefixes: []string{envPrefix(dir)}}
	if own := envPrefix(c.Name); own != o.prefixes[0] {
		o.prefixes = append(o.prefixes, own)
	}
	o.overrideText("MODEL", &c.Sampling.Model)
	o.overrideText("REASONING_EFFORT", &c.Sampling.ReasoningEffort)
	o.overrideFloat("TEMPERATURE", &c.Sampling.Temperature)
	o.overrideFloat("TOP_P", &c.Sampling.TopP)
	o.overrideSession()
	o.overrideNames("GLOBAL_TOOLS", &c.GlobalTools)
	o.overrideNames("MCP_SERVERS", &c.MCPServers)
	if _, _, ok := o.lookupEnv("SPAWNABLE_AGENTS"); ok {
		var names []string
		if o.overrideNames("SPAWNABLE_AGENTS", &names) {
			c.Team.Spawnable = &names
		}
	}
	o.overrideText("INSTRUCTIONS", &c.Prompting.Instructions)
	o.overrideVariables()
}

// envPrefix returns the prefix of the environment variables for an agent.
func envPrefix(agent string) string {
	return strings.ToUpper(strings.ReplaceAll(agent, "-", "_")) + "_"
}

// replacingSuffixes are the ends of the names of variables that replace values of an agent.
var replacingSuffixes = []string{"_MODEL", "_REASONING_EFFORT", "_TEMPERATURE", "_TOP_P", "_GLOBAL_TOOLS", "_MCP_SERVERS", "_SPAWNABLE_AGENTS", "_INSTRUCTIONS", "_AGENT_SESSION", "_VARIABLES"}

// ReplacesValues reports whether a variable of the environment may be one that replaces a value of an agent, or is
// shown in its instructions. What a run has recorded of its environment may come from anyone: no other name in it is a
// variable of an agent.
func ReplacesValues(name string) bool {
	return slices.Contains(TextVariables, name) || slices.ContainsFunc(replacingSuffixes, func(end string) bool { return strings.HasSuffix(name, end) })
}

// unset is the value that removes a setting of the file.
const unset = "null"

type envOverrides struct {
	config   *spec.Config
	getenv   func(string) string
	prefixes []string
}

func (o *envOverrides) lookupEnv(suffix string) (name, value string, ok bool) {
	for _, p := range o.prefixes {
		if v := o.getenv(p + suffix); v != "" {
			return p + suffix, v, true
		}
	}
	return "", "", false
}

func (o *envOverrides) warnInvalid(name string, err error) {
	o.config.Findings = append(o.config.Findings, strictyaml.Finding{
		Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "environment", Pos: strictyaml.Pos{File: o.config.Path, Line: 1, Col: 1},
		Message: fmt.Sprintf("the environment variable %s is not used: %v", name, err),
	})
}

func (o *envOverrides) overrideText(suffix string, field *string) {
	switch _, v, ok := o.lookupEnv(suffix); {
	case !ok:
	case v == unset:
		*field = ""
	default:
		*field = v
	}
}

func (o *envOverrides) overrideFloat(suffix string, field **float64) {
	name, v, ok := o.lookupEnv(suffix)
	switch {
	case !ok:
		return
	case v == unset:
		*field = nil
		return
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		o.warnInvalid(name, fmt.Errorf("%q is not a number", v))
		return
	}
	*field = &f
}

// overrideSession reads the session. An empty value also removes the host's default.
func (o *envOverrides) overrideSession() {
	_, v, ok := o.lookupEnv("AGENT_SESSION")
	switch {
	case !ok:
	case v == unset:
		o.config.Session = new(string)
	default:
		o.config.Session = &v
	}
}

func (o *envOverrides) overrideNames(suffix string, field *[]string) bool {
	name, v, ok := o.lookupEnv(suffix)
	if !ok {
		return false
	}
	list, err := parseNames(v)
	if err != nil {
		o.warnInvalid(name, err)
		return false
	}
	*field = list
	return true
}

// overrideVariables replaces the declared variables. Variables that have a value in the
// environment keep it as their default.
func (o *envOverrides) overrideVariables() {
	name, v, ok := o.lookupEnv("VARIABLES")
	if !ok {
		return
	}
	parsed, err := jsonvalue.Parse([]byte(v))
	if err != nil {
		o.warnInvalid(name, err)
		return
	}
	list, ok := parsed.([]any)
	if !ok {
		o.warnInvalid(name, fmt.Errorf("it must be a JSON list of objects with a name, and is of type %s", jsonvalue.TypeName(parsed)))
		return
	}
	variables := make([]spec.Variable, 0, len(list))
	for i, item := range list {
		variable, err := envVariable(item)
		if err != nil {
			o.warnInvalid(name, fmt.Errorf("element %d: %w", i+1, err))
			return
		}
		variables = append(variables, variable)
	}
	o.config.Variables = variables
}

func envVariable(item any) (spec.Variable, error) {
	obj, ok := item.(*jsonvalue.Object)
	if !ok {
		return spec.Variable{}, fmt.Errorf("it must be an object with a name, and is of type %s", jsonvalue.TypeName(item))
	}
	text := func(key string) (string, bool) {
		v, _ := obj.Get(key)
		if v == nil {
			return "", false
		}
		return string(spec.AppendValue(nil, v)), true
	}
	var v spec.Variable
	if v.Name, ok = text("name"); !ok || v.Name == "" {
		return v, fmt.Errorf("it has no name")
	}
	v.Description, _ = text("description")
	for _, key := range []string{"default", "value"} {
		if value, ok := text(key); ok {
			v.Default = &value
		}
	}
	return v, nil
}

func parseNames(text string) ([]string, error) {
	v, err := jsonvalue.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it must be a JSON list of names: %w", err)
	}
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("it must be a JSON list of names, and is of type %s", jsonvalue.TypeName(v))
	}
	names := make([]string, len(items))
	for i, item := range items {
		if names[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("it must be a JSON list of names, and element %d is of type %s", i+1, jsonvalue.TypeName(item))
		}
	}
	return names, nil
}
