package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// responsesEvent is one event of a reply. Fields that it does not use are of other kinds of events.
type responsesEvent struct {
	Type         string          `json:"type"`
	OutputIndex  wire.Count      `json:"output_index"`
	ContentIndex wire.Count      `json:"content_index"`
	SummaryIndex wire.Count      `json:"summary_index"`
	Delta        json.RawMessage `json:"delta"` // a text, or an object in events that are not read
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
	Code         wire.Word       `json:"code"` // of an error
	Message      wire.Word       `json:"message"`
}

// responseObject is a whole response, as the last event has it.
type responseObject struct {
	ID                wire.Word         `json:"id"`
	Model             wire.Word         `json:"model"`
	Output            []json.RawMessage `json:"output"`
	Error             json.RawMessage   `json:"error"`
	IncompleteDetails struct {
		Reason wire.Word `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		InputTokens        wire.Count `json:"input_tokens"`
		OutputTokens       wire.Count `json:"output_tokens"`
		InputTokensDetails struct {
			CachedTokens     wire.Count `json:"cached_tokens"`
			CacheWriteTokens wire.Count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputTokensDetails struct {
			ReasoningTokens wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// outputItem is one item of the output.
type outputItem struct {
	Type             string          `json:"type"`
	CallID           wire.Word       `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        json.RawMessage `json:"arguments"`
	EncryptedContent wire.Word       `json:"encrypted_content"`
	Content          []struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Refusal     string          `json:"refusal"`
		Annotations json.RawMessage `json:"annotations"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Action struct {
		Type    string   `json:"type"`
		Query   string   `json:"query"`
		Queries []string `json:"queries"`
		URL     string   `json:"url"`
	} `json:"action"`
	Code string `json:"code"` // of a program that ran
}

// A responsesDecoder reads the events of one reply. Each item of the output has as many slots of the assembly as it may
// have pieces of content.
type responsesDecoder struct {
	client  *wire.Client
	parts   *wire.Assembly
	origin  string
	seen    map[int]bool // the items that are complete
	id      string
	model   string
	stop    llm.StopReason // "" before the end
	refused bool
	usage   llm.Usage

	searches int
}

// slots is the number of slots of one item: more pieces of content than any reply has.
const slots = 1 << 10

func slotOf(item, content wire.Count) int { return int(item)*slots + min(int(content), slots-1) }

// Complete implements wire.Decoder: the end of a reply is an event of its own.
func (d *responsesDecoder) Complete() bool { return d.stop != "" }

// Event implements wire.Decoder. Kinds of events that raddle does not know say nothing that the complete items do not
// say.
func (d *responsesDecoder) Event(ev wire.Event) (done bool, err error) {
	if strings.HasPrefix(string(ev.Data), "[DONE]") { // of compatible servers
		return true, nil
	}
	var e responsesEvent
	if err := d.client.Decode(ev, &e); err != nil {
		return false, err
	}
	text := deltaText(e.Delta)
	switch e.Type {
	case "response.output_text.delta":
		return false, d.parts.AddText(slotOf(e.OutputIndex, e.ContentIndex), text)
	case "response.refusal.delta":
		d.refused = true
		return false, d.parts.AddText(slotOf(e.OutputIndex, e.ContentIndex), text)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, d.parts.AddReasoning(slotOf(e.OutputIndex, 0), text)
	case "response.reasoning_summary_part.added":
		return false, d.separateSummary(e)
	case "response.output_item.added":
		return false, d.openItem(e)
	case "response.function_call_arguments.delta":
		return false, d.parts.AddCall(slotOf(e.OutputIndex, 0), "", "", text)
	case "response.output_item.done":
		return false, d.closeItem(e.OutputIndex, e.Item)
	case "error":
		return false, d.failure(errorDocument(string(e.Code), string(e.Message)))
	case "response.created", "response.completed", "response.incomplete", "response.failed":
		return e.Type != "response.created", d.applyResponse(e)
	}
	return false, nil
}

// deltaText returns the text of a delta; that of an event which has none is "".
func deltaText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// separateSummary puts a blank line between two parts of a summary.
func (d *responsesDecoder) separateSummary(e responsesEvent) error {
	if e.SummaryIndex == 0 {
		return nil
	}
	return d.parts.AddReasoning(slotOf(e.OutputIndex, 0), "\n\n")
}

// openItem announces a tool call, whose arguments follow.
func (d *responsesDecoder) openItem(e responsesEvent) error {
	var item outputItem
	if json.Unmarshal(e.Item, &item) != nil || item.Type != "function_call" {
		return nil
	}
	return d.parts.AddCall(slotOf(e.OutputIndex, 0), string(item.CallID), item.Name, "")
}

// closeItem adds what the complete item n has and its events have not said.
func (d *responsesDecoder) closeItem(n wire.Count, raw json.RawMessage) error {
	if d.seen[int(n)] {
		return nil
	}
	d.seen[int(n)] = true
	var item outputItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return d.client.MalformedError("the stream contains an item of an unknown form", err)
	}
	slot := slotOf(n, 0)
	switch item.Type {
	case "message":
		return d.closeMessage(n, item, raw)
	case "reasoning":
		return d.closeReasoning(slot, item, raw)
	case "function_call":
		return d.closeCall(slot, item, raw)
	}
	if item.Type == "web_search_call" && (item.Action.Type == "search" || item.Action.Type == "" && item.Action.Query != "") {
		d.searches++
	}
	kept := withoutMembers(raw, "id")
	return d.parts.AddPart(llm.Item{Kind: item.Type, Text: describeItem(item), Raw: kept, Origin: d.origin}, len(kept))
}

func (d *responsesDecoder) closeMessage(n wire.Count, item outputItem, raw json.RawMessage) error {
	members := withoutMembers(raw, "id", "type", "role", "status", "content")
	for i, content := range item.Content {
		slot := slotOf(n, wire.Count(i))
		text := content.Text
		if content.Type == "refusal" {
			d.refused = true
			text = content.Refusal
		}
		if rest, ok := strings.CutPrefix(text, d.parts.ReadText(slot)); ok {
			if err := d.parts.AddText(slot, rest); err != nil {
				return err
			}
		}
		if err := d.addSources(slot, content.Annotations); err != nil {
			return err
		}
		if err := d.parts.SetExtra(slot, withAnnotations(members, content.Annotations)); err != nil {
			return err
		}
	}
	return nil
}

// addSources adds the pages that annotations of a text name.
func (d *responsesDecoder) addSources(slot int, annotations json.RawMessage) error {
	var list []struct{ Type, URL, Title string }
	_ = json.Unmarshal(annotations, &list) // they are kept in any form
	for _, a := range list {
		if a.Type != "url_citation" {
			continue
		}
		if err := d.parts.AddSource(slot, llm.Source{URL: a.URL, Title: a.Title}); err != nil {
			return err
		}
	}
	return nil
}

func (d *responsesDecoder) closeReasoning(slot int, item outputItem, raw json.RawMessage) error {
	var texts []string
	for _, part := range item.Summary {
		texts = append(texts, part.Text)
	}
	if len(texts) == 0 {
		for _, part := range item.Content { // servers of open models
			texts = append(texts, part.Text)
		}
	}
	if rest, ok := strings.CutPrefix(strings.Join(texts, "\n\n"), d.parts.ReadText(slot)); ok {
		if err := d.parts.AddReasoning(slot, rest); err != nil {
			return err
		}
	}
	if err := d.parts.Seal(slot, string(item.EncryptedContent)); err != nil {
		return err
	}
	return d.parts.SetExtra(slot, withoutMembers(raw, "id", "type", "status", "encrypted_content"))
}

func (d *responsesDecoder) closeCall(slot int, item outputItem, raw json.RawMessage) error {
	args := deltaText(item.Arguments)
	if strings.HasPrefix(string(item.Arguments), "{") { // an object on some servers
		args = string(item.Arguments)
	}
	rest, ok := strings.CutPrefix(args, d.parts.ReadText(slot))
	if !ok {
		rest = ""
	}
	if err := d.parts.AddCall(slot, string(item.CallID), item.Name, rest); err != nil {
		return err
	}
	return d.parts.SetExtra(slot, withoutMembers(raw, "id", "type", "status", "call_id", "name", "arguments"))
}

// withoutMembers returns a JSON object without the named members and without those that are null; nil if none is left.
func withoutMembers(raw json.RawMessage, names ...string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for _, name := range names {
		delete(members, name)
	}
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return nil
	}
	data, _ := json.Marshal(members) // it was JSON
	return data
}

// withAnnotations returns the members of a message with the annotations of one piece of its content, such as the
// sources of a search.
func withAnnotations(members, annotations json.RawMessage) json.RawMessage {
	if list := string(annotations); list == "" || list == "null" || list == "[]" {
		return members
	}
	all := map[string]json.RawMessage{}
	if len(members) > 0 && json.Unmarshal(members, &all) != nil {
		return members
	}
	all["annotations"] = annotations
	data, _ := json.Marshal(all) // it was JSON
	return data
}

// describeItem returns what a person should know about an item that the provider has worked on by itself.
func describeItem(item outputItem) string {
	switch {
	case item.Type == "web_search_call" && len(item.Action.Queries) > 0:
		return wire.DescribeSearch(item.Action.Queries...)
	case item.Type == "web_search_call" && item.Action.Query != "":
		return wire.DescribeSearch(item.Action.Query)
	case item.Type == "web_search_call" && item.Action.URL != "":
		return wire.DescribeFetch(item.Action.URL)
	case item.Type == "code_interpreter_call":
		return wire.DescribeCode(item.Code)
	}
	return ""
}

// applyResponse reads an event about the whole response.
func (d *responsesDecoder) applyResponse(e responsesEvent) error {
	var r responseObject
	if err := json.Unmarshal(e.Response, &r); err != nil {
		return d.client.MalformedError("the stream contains a response of an unknown form", err)
	}
	d.id = string(r.ID)
	d.model = string(r.Model)
	if e.Type == "response.created" {
		return nil
	}
	if e.Type == "response.failed" {
		if document, ok := r.Error, len(r.Error) > 0; ok && string(document) != "null" {
			return d.failure([]byte(`{"error":` + string(document) + `}`))
		}
		return d.failure(errorDocument("server_error", "the response failed"))
	}
	for i, raw := range r.Output { // servers that do not stream each item
		if err := d.closeItem(wire.Count(i), raw); err != nil {
			return err
		}
	}
	u := r.Usage
	d.usage = llm.Usage{
		Input:     int(u.InputTokens),
		Output:    int(u.OutputTokens),
		Cached:    int(u.InputTokensDetails.CachedTokens),
		Written:   int(u.InputTokensDetails.CacheWriteTokens),
		Reasoning: int(u.OutputTokensDetails.ReasoningTokens),
		Searches:  d.searches,
	}
	d.stop = llm.StopEnd
	if e.Type == "response.incomplete" {
		d.stop = llm.StopReason(r.IncompleteDetails.Reason)
		switch d.stop {
		case "max_output_tokens", "":
			d.stop = llm.StopLength
		case "content_filter":
			d.stop = llm.StopFilter
		}
	}
	return nil
}

// errorDocument returns the document of an error that an event reports without one.
func errorDocument(code, message string) []byte {
	data, _ := json.Marshal(object{"error": object{"code": code, "message": message}}) // texts
	return data
}

// failure returns the failure that an error document describes.
func (d *responsesDecoder) failure(document []byte) error {
	if err := d.client.EventError(document); err != nil {
		return err
	}
	return d.client.MalformedError("the stream reports a failure", errors.New("it has no error"))
}

func (d *responsesDecoder) buildReply(turn int) llm.Reply {
	stop := d.stop
	if d.refused {
		stop = llm.StopFilter
	}
	message := d.parts.Message(turn, stop)
	if stop == llm.StopEnd && len(message.ToolCalls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{ID: d.id, Message: message, Usage: d.usage, Stop: stop, Model: d.model}
}
