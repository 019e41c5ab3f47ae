package dataset_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/proving/dataset"
)

// The same two items in each format, also with the names of other programs.
func TestFormats(t *testing.T) {
	const want = `{"id":"sum","prompt":"2+2?","state":{"lang":"de"},"expect":"4","tags":["easy","math"]}
{"prompt":"the \"sea\"","variables":{"tone":"dry"},"files":["a.txt"],"expect":{"contains":"blue"},"metadata":{"level":3}}
`
	for name, text := range map[string]string{
		"own.jsonl": want,
		"own.json": `[{"id": "sum", "prompt": "2+2?", "state": {"lang": "de"}, "expect": "4", "tags": ["easy", "math"]},
			{"prompt": "the \u0022sea\u0022", "variables": {"tone": "dry"}, "files": "a.txt", "expect": {"contains": "blue"}, "metadata": {"level": 3}}]`,
		"own.yaml": `
items:
  - id: sum
    prompt: 2+2?
    state: {lang: de}
    expect: "4"
    tags: [easy, math]
  - prompt: the "sea"
    variables: {tone: dry}
    files: a.txt
    expect: {contains: blue}
    metadata: {level: 3}
`,
		"list.yml": `
- {id: sum, question: 2+2?, initial_state: {lang: de}, answer: "4", tags: [easy, math]}
- {query: the "sea", vars: {tone: dry}, files: [a.txt], target: {contains: blue}, metadata: {level: 3}}
`,
		"langsmith.jsonl": `{"id": "sum", "inputs": {"question": "2+2?"}, "outputs": {"answer": "4"}, "state": {"lang": "de"}, "tags": ["easy", "math"]}

{"inputs": {"input": "the \"sea\""}, "reference_outputs": {"contains": "blue"}, "variables": {"tone": "dry"}, "files": ["a.txt"], "metadata": {"level": 3}}
`,
		"promptfoo.csv": "id,question,__expected,state.lang,tags,variables.tone,files,metadata\n" +
			"sum,2+2?,equals: 4,de,\"easy, math\",,,\n" +
			",\"the \"\"sea\"\"\",contains: blue,,,dry,a.txt,\"{\"\"level\"\": 3}\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := dataset.Read(name, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := write(t, file.Items...); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if file.Items[1].ID != "2" {
				t.Errorf("the second item has the id %q", file.Items[1].ID)
			}
			if failed := file.Items[1].Expect.Check("output", "blue and wide", true); len(failed) > 0 {
				t.Error(failed)
			}
			if failed := file.Items[1].Expect.Check("output", "grey", true); len(failed) == 0 {
				t.Error("the output grey was accepted")
			}
		})
	}
}

// Every problem of a file is reported at once, each with its place.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a.jsonl": {
			"{\"promt\": \"a\"}\n{\"prompt\": [1]}\n{\"prompt\": \"a\", \"input\": \"b\"}\n{\"prompt\": \"ü\", oops}\n{\"expect\": 1}\n" +
				"{\"id\":\"x\",\"prompt\":\"a\"}\n{\"id\":\"x\",\"prompt\":\"a\",\"from\":\"1ab@no\"}\n{\"prompt\":\"a\"\n{\"prompt\":\"a\"} {}\n{\"tags\":1,\"tags\":2}\n{\"from\":\"1ab@7\",\"files\":[\"a\"]}\n",
			`a.jsonl:1:2: error: unknown key "promt" in the item (did you mean prompt?)
a.jsonl:2:12: error: the prompt must be a text, not a list
a.jsonl:3:26: error: "prompt" and "input" are the same field (remove one of them)
a.jsonl:4:17: error: this is not JSON: invalid character 'o'
a.jsonl:5:1: error: the item gives the agent nothing
a.jsonl:7:1: error: the id "x" is that of another item, in line 6
a.jsonl:7:31: error: from: "1ab@no" names no checkpoint
a.jsonl:8:14: error: the JSON value has no end
a.jsonl:9:16: error: there is more text after the end of the JSON value
a.jsonl:10:11: error: the member "tags" is there twice
a.jsonl:11:1: error: the item begins in the middle of a run, which has its variables and files already (remove them`,
		},
		"a.csv": {
			"prompt,quetion,input,colour,expect\na,b,c\n\"ü\",b,c,d,\"{\"\"pattern\"\": \"\"(\"\"}\"\n",
			`a.csv:1:8: error: unknown column "quetion" (did you mean question?)
a.csv:1:16: error: the columns "prompt" and "input" are the same field (remove one of them)
a.csv:1:22: error: unknown column "colour" (call it variables.colour, state.colour or metadata.colour, or remove it)
a.csv:2:1: error: the line has not as many cells as the first line has columns
a.csv:3:23: error: the pattern is not a regular expression`,
		},
		"b.csv":  {"prompt,__expected\na,llm-rubric: is kind\n", `b.csv:2:3: error: the assertion llm-rubric is not read from a cell (write it as one of the scorers of the data set: raddle help improving)`},
		"a.yaml": {"item:\n  - prompt: a\n", `a.yaml:1:1: error: unknown key "item" in the file (did you mean items?)`},
		"b.yaml": {"items:\n  - prompt: a\n    state: 3\n  - {}\n", "b.yaml:3:12: error: state must be a mapping, not a single value\nb.yaml:4:5: error: the item gives the agent nothing"},
		"c.yaml": {"scorers: [exact]\n", "c.yaml:1:1: error: the file has no `items`"},
		"a.txt":  {"a", `a.txt:1:1: error: ".txt" is not the end of the name of a data set`},
		"e.json": {" \n", `e.json:1:1: error: the file is empty`},
		"f.json": {"[]", `f.json:1:1: error: the data set has no items`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dataset.Read(name, []byte(c.text))
			file, ok := errors.AsType[*strictyaml.FileError](err)
			if !ok {
				t.Fatalf("no problems: %v", err)
			}
			var got []string
			for _, f := range file.ListFindings() {
				got = append(got, f.String())
			}
			want := strings.Split(c.want, "\n")
			for n := range max(len(want), len(got)) {
				switch {
				case n >= len(want):
					t.Errorf("more: %s", got[n])
				case n >= len(got):
					t.Errorf("missing: %s", want[n])
				case !strings.HasPrefix(got[n], want[n]):
					t.Errorf("got  %s\nwant %s", got[n], want[n])
				}
			}
		})
	}
}

// What is written is read as the same items, whatever their texts are.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("a\"\\\n\t,:{}[]#'é😀\u2028-1 ")
	text := func() string {
		var b strings.Builder
		for range 1 + random.IntN(8) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	for range 500 {
		item := &dataset.Item{
			ID:        "item " + text(),
			Prompt:    text(),
			State:     jsonvalue.NewObject(jsonvalue.Member{Key: text(), Value: []any{text(), int64(3), 1.5, nil, true}}),
			Variables: []strictyaml.Pair{{Key: text(), Value: text()}},
			Files:     []string{text()},
			Tags:      []string{text(), text()},
			Expected:  jsonvalue.NewObject(jsonvalue.Member{Key: "equal", Value: text()}),
			Metadata:  jsonvalue.NewObject(jsonvalue.Member{Key: text(), Value: text()}),
		}
		if random.IntN(2) == 0 { // in the middle of a run
			item.From = "1abc@7"
			item.Variables = nil
			item.Files = nil
		}
		line := write(t, item)
		file, err := dataset.Read("a.jsonl", []byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := write(t, file.Items...); got != line {
			t.Fatalf("wrote %sread  %s", line, got)
		}
	}
}

func write(t *testing.T, items ...*dataset.Item) string {
	t.Helper()
	var text []byte
	for _, i := range items {
		var err error
		if text, err = dataset.AppendLine(text, i); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}
