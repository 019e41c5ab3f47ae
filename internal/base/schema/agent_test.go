package schema

import (
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/tool"
)

func readAgent(text string) error {
	c, err := spec.ParseConfig("config.yaml", []byte(text))
	if err != nil {
		return err
	}
	return firstUnknownKey(c.Findings)
}

func TestAgentHasTheFieldsOfItsReader(t *testing.T) {
	reader := fieldsRead(t, "../../../flow/spec/config.go", "m", "ReadFields", "readTeam", "readDoubt", "readLimits", "warnUnusedFields")
	reader = append(append(reader, fieldsRead(t, "../../../flow/spec/skills.go", "m", "readSkills")...), "variables", "hooks", "triggers")
	reader = append(reader, fieldsRead(t, "../../../flow/spec/fusion.go", "m", "ReadFusion")...)
	sameFields(t, "the top level", names(properties(t, "agent")), reader)
	sameFields(t, "variables", names(properties(t, "agent", "properties", "variables", "items")), fieldsRead(t, "../../../flow/spec/parse.go", "v", "readVariables"))
	for _, doubt := range tool.Doubts {
		if err := validate(t, compile(t, "agent"), "name: a\nin_doubt: "+doubt); err != nil {
			t.Error(err)
		}
	}
}

func TestAgentAcceptsWhatItsReaderAccepts(t *testing.T) {
	compareWithReader(t, "agent", names(properties(t, "agent")), func(field, value string) string {
		return replaceField("name: a\n", "", field, value)
	}, readAgent)
}

func TestAgentAcceptsTheFilesOfTheRepository(t *testing.T) {
	validateFiles(t, "agent", "config.yaml", 12)
}

func TestAgentRejectsBrokenFiles(t *testing.T) {
	s := compile(t, "agent")
	for _, text := range []string{
		"[]", "description: no name", "name: a\nmodle: b", "name: a\ntimeout: 5m", "name: a\ntimeout: -1", "name: a\ncan_spawn_agents: maybe",
		"name: a\nmax_cost_per_turn: -1", "name: a\nin_doubt: never", "name: a\nescalate: person", "name: a\nvariables: {a: b}",
		"name: a\nvariables: [{name: a, description: b, valu: c}]", "name: a\nglobal_tools: fs_read", "name: a\ninstructions: [a]", "name: a\ntools: [fs_read]",
	} {
		if validate(t, s, text) == nil {
			t.Errorf("the schema accepts\n%s", text)
		}
	}
}
