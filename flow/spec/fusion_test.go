package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/spec"
)

func TestFusionIsRead(t *testing.T) {
	half := 0.5
	for text, want := range map[string]spec.Fusion{
		"version: 1":                                   {},
		"fusion: ranks":                                {Method: "ranks"},
		"weights: {meaning: 0.5}":                      {Meaning: &half},
		"fusion: scores\nweights: {words: 0.5}":        {Method: "scores", Words: &half},
		"fusion: null\nweights: null":                  {},
		"weights: {entities: 0.5, words: null}":        {Entities: &half},
		"weights: {meaning: 0, words: 0, entities: 1}": {Meaning: new(0.0), Words: new(0.0), Entities: new(1.0)},
	} {
		c, err := spec.ParseConfig("config.yaml", []byte("name: a\n"+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, c.Documents.Fusion); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string][2]string{
		"fusion: best":                                 [2]string{`fusion: unknown fusion "best": write one of scores, ranks, model`, "line 2 column 9"},
		"weights: 0.7":                                 [2]string{"weights: invalid type", "line 2 column 10"},
		"weights:\n  meaning: -1":                      [2]string{"weights.meaning: invalid weight -1: write a number, at least 0", "line 3 column 12"},
		"weights:\n  words: .inf":                      [2]string{"weights.words: invalid", "line 3 column 10"},
		"weights:\n  words: much":                      [2]string{"weights.words: invalid type", "line 3 column 10"},
		"weights:\n  wrods: 1":                         [2]string{"weights: there are weights of meaning, words and entities only", "line 3 column 3"},
		"weights: {meaning: 0, words: 0, entities: 0}": [2]string{"weights: all weights are 0, so that nothing is ever found", "line 2 column 10"},
	} {
		_, err := spec.ParseConfig("config.yaml", []byte("name: a\n"+text))
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
