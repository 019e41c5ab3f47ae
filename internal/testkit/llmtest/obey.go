package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"regexp"
	"strings"
)

// Obey answers a request of any wire as a model that does what it is asked for: it calls the tools that the last
// message names, says the word that it should say, the colour of a picture and the word of a PDF, fills in a schema,
// and is cut off by a small limit. It knows no request of a caller, only these orders.
func Obey(body []byte) Turn {
	last := lastMessage(body)
	switch {
	case isResult(last):
		return Turn{Thought: "the tool has answered", Text: "The tool said something."}
	case smallLimit.Match(body):
		return Turn{Text: "one, two, three, fo", Cut: true}
	case bytes.Contains(body, []byte(`"json_schema"`)), bytes.Contains(body, []byte(`"responseJsonSchema"`)), bytes.Contains(body, []byte(`"format":{`)):
		return Turn{Text: fillSchema(body)}
	case bytes.Contains(body, []byte("write only JSON that matches this schema")): // in the instructions, where the wire has no place for it
		return Turn{Text: fillSchema(bytes.ReplaceAll(body, []byte(`\"`), []byte(`"`)))}
	}
	if data := findBase64(last, "iVBORw0KGgo"); data != nil {
		return Turn{Text: nameColour(data)}
	}
	if data := findBase64(last, "JVBERi0"); data != nil {
		return Turn{Text: string(pdfWord.FindSubmatch(data)[1])}
	}
	if order := callOrder.FindStringSubmatch(last); order != nil {
		turn := Turn{Thought: "I look at " + order[2]}
		for i, city := range cityName.FindAllStringSubmatch(order[2], -1) {
			turn.Calls = append(turn.Calls, Call{ID: fmt.Sprintf("abcdefgh%d", i), Name: order[1], Args: `{"city":` + quoteJSON(city[1]) + `}`})
		}
		return turn
	}
	if word := wordOrder.FindStringSubmatch(last); word != nil {
		return Turn{Text: word[1]}
	}
	return Turn{Text: "What shall I do?"}
}

// These match orders, and what they are about.
var (
	smallLimit = regexp.MustCompile(`"(max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens|maxTokens|num_predict)":16\b`)
	callOrder  = regexp.MustCompile(`Call the tool (\w+) (for the city [^".]*)`)
	cityName   = regexp.MustCompile(`for the city (\p{L}+)`)
	wordOrder  = regexp.MustCompile(`Answer with the word: (\w+)`)
	pdfWord    = regexp.MustCompile(`\((\w+)\) Tj`)
	properties = regexp.MustCompile(`"(\w+)":\{"type":"(string|integer)"\}`)
)

// lastMessage returns the last message of a conversation as JSON.
func lastMessage(body []byte) string {
	var r struct{ Messages, Input, Contents []json.RawMessage }
	if json.Unmarshal(body, &r) != nil {
		return ""
	}
	for _, list := range [][]json.RawMessage{r.Messages, r.Input, r.Contents} {
		if len(list) > 0 {
			return string(list[len(list)-1])
		}
	}
	return ""
}

// isResult reports whether a message is the result of a tool and nothing else.
func isResult(message string) bool {
	for _, mark := range []string{`"role":"tool"`, `"tool_result"`, `"function_call_output"`, `"functionResponse"`} {
		if strings.Contains(message, mark) && !wordOrder.MatchString(message) {
			return true
		}
	}
	return false
}

// findBase64 returns the data in a message whose base64 has a beginning.
func findBase64(message, beginning string) []byte {
	_, rest, found := strings.Cut(message, beginning)
	if !found {
		return nil
	}
	text, _, _ := strings.Cut(beginning+rest, `"`)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return data
}

// nameColour returns the colour of the first point of a picture.
func nameColour(data []byte) string {
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return "broken"
	}
	names := []string{"red", "green", "blue"}
	at := 0
	r, g, b, _ := picture.At(0, 0).RGBA()
	for i, value := range []uint32{r, g, b} {
		if value > []uint32{r, g, b}[at] {
			at = i
		}
	}
	return strings.ToUpper(names[at][:1]) + names[at][1:] + "."
}

// fillSchema returns an object with all properties of a schema.
func fillSchema(body []byte) string {
	values := map[string]any{}
	for _, p := range properties.FindAllSubmatch(body, -1) {
		values[string(p[1])] = "x"
		if string(p[2]) == "integer" {
			values[string(p[1])] = 1
		}
	}
	return quoteJSON(values)
}
