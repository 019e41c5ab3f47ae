package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
)

// agentName matches the names that an agent's directory may have.
var agentName = pattern.CompileLater(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// NewAgent writes the files of a new agent: in the agents directory if agent is a
// name, otherwise at the path. It does not change files that exist.
func (p *Process) NewAgent(agent string, graph bool) (Place, []string, error) {
	dir := filepath.Join(p.Dirs.Agents, agent)
	if IsPath(agent) {
		dir = p.Dirs.AbsPath(agent)
	}
	place := Place{Name: filepath.Base(dir), Dir: dir}
	if !agentName().MatchString(place.Name) {
		return place, nil, failure.NewUsage("use letters, digits, - and _", "%q cannot be the name of an agent", place.Name)
	}
	if hasDefinition(dir) {
		return place, nil, failure.NewUsage("choose another name, or edit what is there", "there is an agent in %s already", p.Dirs.ShortPath(dir))
	}
	tests := place.Name + ".test.yaml"
	files := []newFile{{"config.yaml", schemaLine("agent") + "name: " + place.Name + "\n" + newConfig}, {"tools.sh", newTools}, {tests, schemaLine("test") + newConfigTests}}
	if graph {
		files = []newFile{{"graph.yaml", schemaLine("graph") + "name: " + place.Name + "\n" + newGraph}, {tests, schemaLine("test") + newGraphTests}}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return place, nil, err
	}
	var made []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		err := writeNew(path, f.text)
		if errors.Is(err, fs.ErrExist) {
			continue // a script or a test that existed before
		}
		if err != nil {
			return place, made, err
		}
		made = append(made, path)
	}
	return place, made, nil
}

// schemaLine returns the line from which an editor learns the schema of a file.
func schemaLine(name string) string {
	return "# yaml-language-server: $schema=https://raddle.dev/schema/" + name + ".json\n"
}

// newFile is the first version of a file.
type newFile struct{ name, text string }

func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

const newConfig = `description: Says what the agent is for.
# model: openai:gpt-5-mini   # else the caller's: --model, RADDLE_MODEL, config.yaml

instructions: |
  You help with what you are asked.
  Look things up with your tools before you answer.

global_tools:                # "raddle tools ls" lists them
  - get_current_time

conversation_starters:
  - How long is the word "shuttle"?
`

const newTools = `#!/usr/bin/env bash
# The agent's own tools: a function each, described by the comments above it.
set -euo pipefail

# @cmd Count the letters of a word.
# raddle: read-only
# @option --word! The word
count_letters() {
    echo "${#argc_word}" >>"$LLM_OUTPUT"
}
`

const newGraph = `description: Says what the graph is for.
# model: openai:gpt-5-mini   # else the caller's: --model, RADDLE_MODEL, config.yaml
start: answer
nodes:
  answer:
    type: llm
    instructions: You answer in one sentence.
    prompt: "{{initial_prompt}}"
    state_updates: {answer: "{{output}}"}
    next: done
  done:
    type: end
    output: "{{answer}}"
`

const newConfigTests = `# What the agent must do, without a model: raddle test DIR, and raddle help testing.
prompt: How long is the word "shuttle"?
tests:
  - name: answers with its tool
    replies:
      - tool_calls: [{name: count_letters, args: {word: shuttle}}]
      - {after: "7", text: Seven letters.}
    real: [count_letters]
    expect:
      calls: [count_letters: {word: shuttle}]
      output: Seven letters.
`

const newGraphTests = `# What the graph must do, without a model: raddle test DIR, and raddle help testing.
prompt: Why is the sky blue?
tests:
  - name: answers the prompt
    nodes: {answer: Blue light is scattered most.}
    expect:
      path: [answer, done]
      prompts: {answer: {contains: sky}}
      output: Blue light is scattered most.
`
