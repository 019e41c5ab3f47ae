package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mostStarts is the number of places of a line at which a message is looked for behind
// other text.
const mostStarts = 8

// replyStarts are the beginnings of messages that may follow other text on a line.
var replyStarts = [][]byte{[]byte(`{"jsonrpc"`), []byte(`{"result"`), []byte(`{"error"`), []byte(`{"id"`)}

// messages returns the messages of a line. Everything else of the line is rejected.
func (p *pipe) messages(line []byte) (list []jsonrpc.Message) {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.ToValidUTF8(line, []byte("\uFFFD")), []byte("\uFEFF")))
	if json.Valid(line) {
		return p.value(line, false)
	}
	// A progress bar or a text without an end of line may stand before an answer.
	for range mostStarts {
		at := -1
		for _, start := range replyStarts {
			if i := bytes.Index(line, start); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		p.rejectText(line[:at])
		dec := json.NewDecoder(bytes.NewReader(line[at:]))
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			p.rejectText(line[at : at+1])
			line = line[at+1:]
			continue
		}
		list = append(list, p.value(value, true)...)
		line = line[at+int(dec.InputOffset()):]
	}
	p.rejectText(line)
	return list
}

func (p *pipe) rejectText(text []byte) {
	if text = bytes.TrimSpace(text); len(text) > 0 {
		p.reject(text)
	}
}

// value returns the messages of a JSON value: an object is one, a list may hold several.
// Of a value that follows other text only answers count, because servers also print
// the requests that they get.
func (p *pipe) value(value json.RawMessage, onlyReplies bool) []jsonrpc.Message {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	} else if len(list) == 0 {
		p.rejectText(value)
	}
	var messages []jsonrpc.Message
	for _, item := range list {
		var fields map[string]json.RawMessage
		var m jsonrpc.Message
		if json.Unmarshal(item, &fields) == nil && fields != nil {
			if fields["method"] == nil {
				m = p.reply(fields)
			} else if !onlyReplies {
				m, _ = jsonrpc.DecodeMessage(item) // what is no message is rejected below
			}
		}
		if m == nil {
			p.rejectText(item)
			continue
		}
		messages = append(messages, m)
	}
	return messages
}

// reply returns the answer to one of our requests, nil if the fields are none. What
// is wrong with the answer becomes the error of the request.
func (p *pipe) reply(fields map[string]json.RawMessage) jsonrpc.Message {
	result, failure := present(fields["result"]), present(fields["error"])
	versioned := string(fields["jsonrpc"]) == `"2.0"`
	if result == nil && failure == nil && !versioned {
		return nil // a line of a log that happens to have an id
	}
	id, ok := p.answered(fields["id"], failure != nil)
	if !ok {
		return nil
	}
	switch {
	case failure != nil:
		return &jsonrpc.Response{ID: id, Error: wireError(failure)}
	case result == nil:
		return &jsonrpc.Response{ID: id, Error: unreadable("it has neither a result nor an error")}
	}
	return &jsonrpc.Response{ID: id, Result: result}
}

// present is a value that is there and not null.
func present(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// answered returns the request that an answer with this id is for, and takes it from
// the pending ones. A number that has become a string is the number. A failure without an id is for
// the only request that there is.
func (p *pipe) answered(raw json.RawMessage, failed bool) (jsonrpc.ID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if present(raw) == nil {
		if failed && len(p.pending) == 1 {
			for id := range p.pending {
				delete(p.pending, id)
				return id, true
			}
		}
		return jsonrpc.ID{}, false
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	if text, ok := v.(string); ok && !p.pending[id] {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			id, _ = jsonrpc.MakeID(float64(n)) // a number always is an id
		}
	}
	known := p.pending[id]
	delete(p.pending, id)
	return id, known
}

// tooLong fails the request that a line above the limit answers.
func (p *pipe) tooLong(long *longLineError) []jsonrpc.Message {
	var id jsonrpc.ID
	ok := false
	if long.isReply {
		id, ok = p.answered(long.id, false)
	}
	if !ok {
		p.reject(slices.Concat(long.start, []byte(" ...")))
		return nil
	}
	return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: unreadable(
		fmt.Sprintf("it has %.1f MiB, and the limit is %d MiB; ask for less at once", float64(long.size)/(1<<20), maxLine>>20))}}
}

// unreadable is the error of a request whose answer has come and is of no use.
func unreadable(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer cannot be read: " + reason}
}

// sdkCodes are the codes by which the SDK says that a connection ends or refuses a request.
// An answer of a server cannot mean that.
var sdkCodes = []int64{-32003, -32004, rejected}

// wireError reads the error of an answer, whatever its form.
func wireError(raw json.RawMessage) *jsonrpc.Error {
	var e jsonrpc.Error
	if json.Unmarshal(raw, &e) == nil {
		if e.Code == 0 || slices.Contains(sdkCodes, e.Code) {
			e.Code = jsonrpc.CodeInternalError
		}
		e.Message = cmp.Or(e.Message, "an error without a message")
		return &e
	}
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // what is no string stays JSON
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}
