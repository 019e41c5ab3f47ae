package llmtest

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/llm"
)

// A vendor's own search is in the reply, with its sources and its number, survives JSON, goes back to the vendor, and is a text for others.
func TestProvidedSearch(t *testing.T) {
	words := map[string]string{"OpenAI responses": `{"type":"web_search"}`, "Anthropic": `{"type":"web_search_20250305","name":"web_search"`, "Gemini": `{"googleSearch":{}}`}
	for _, plain := range []Vendor{OpenAIResponses(), Anthropic(), Gemini()} {
		v := Searching(plain)
		t.Run(v.Name, func(t *testing.T) {
			turns := []Turn{{Text: "search"}, {Text: "continue"}, {Thought: "enough", Text: "over"}}
			if v.Name != "Anthropic" { // only it pauses
				turns = append(turns[:1], turns[2:]...)
			}
			s := StartServer(t, v, turns...)
			m := openModel(t, v, s.URL)
			r := llm.Request{Messages: []llm.Message{llm.User("look")}, Tools: strictTools(1), Provided: []string{llm.ToolWebSearch}}
			reply, err := llm.Generate(t.Context(), m, r)
			if err != nil {
				t.Fatal(err)
			}
			var sources []llm.Source
			var said []string
			for _, p := range reply.Message.Parts {
				switch p := p.(type) {
				case llm.Text:
					sources = append(sources, p.Sources...)
				case llm.Item:
					said = append(said, p.Text)
				}
			}
			if reply.Text() != "Found it." || reply.Usage.Searches != 1 || len(sources) != 1 || sources[0] != (llm.Source{URL: SearchedPage, Title: "Horses"}) || !strings.Contains(strings.Join(said, " "), `searched the web for "horses"`) {
				t.Errorf("%q, %+v, sources %v, items %q", reply.Text(), reply.Usage, sources, said)
			}
			if reply.Stop != llm.StopEnd {
				t.Errorf("it stops because of %s", reply.Stop)
			}
			data, err := json.Marshal(reply.Message)
			if err != nil {
				t.Fatal(err)
			}
			var kept llm.Message
			if err := json.Unmarshal(data, &kept); err != nil {
				t.Fatal(err)
			}
			r.Messages = append(r.Messages, kept, llm.User("thanks"))
			if _, err := llm.Generate(t.Context(), m, r); err != nil {
				t.Fatal(err)
			}
			bodies := s.RequestBodies()
			last := string(bodies[len(bodies)-1])
			if !strings.Contains(last, words[v.Name]) || !strings.Contains(last, "horses") {
				t.Errorf("the last request is %s", last)
			}
			for _, other := range Vendors() {
				if other.Name == v.Name {
					continue
				}
				s := StartServer(t, other, Turn{Text: "ok"})
				if _, err := llm.Generate(t.Context(), openModel(t, other, s.URL), llm.Request{Messages: r.Messages}); err != nil {
					t.Errorf("%s: %v", other.Name, err)
				}
				if body := string(s.RequestBodies()[0]); !strings.Contains(body, "searched the web for") {
					t.Errorf("%s does not read of the search: %s", other.Name, body)
				}
			}
		})
	}
}

// A tool that a wire does not have is refused before anything is sent.
func TestProvidedToolsThatAreMissing(t *testing.T) {
	for _, v := range Vendors() {
		t.Run(v.Name, func(t *testing.T) {
			m := openModel(t, v, "http://127.0.0.1:1")
			_, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}, Provided: []string{"time_machine"}})
			if err == nil || !strings.Contains(err.Error(), `the provider's tool "time_machine"`) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
