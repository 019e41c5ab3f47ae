package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxStarts is the number of places of a line at which a message is looked for behind
// other text.
const maxStarts = 8

// replyStarts are the beginnings of messages that may follow other text on a line.
var replyStarts = [][]byte{[]byte(`{"jsonrpc"`), []byte(`{"result"`), []byte(`{"error"`), []byte(`{"id"`)}

// An inbox finds the messages in the output of a server, and knows which requests of raddle
// have no answer yet. It is safe for concurrent use.
type inbox struct {
	reject func(text []byte) // gets everything that is not a message; safe for concurrent use
	// progress gets what the server reports of a call, before an answer that follows
	// is returned: the SDK would handle the report after that.
	progress func(*sdk.ProgressNotificationParams)

	mu      sync.Mutex
	pending map[jsonrpc.ID]bool // our requests without an answer
}

func newInbox(reject func(text []byte), progress func(*sdk.ProgressNotificationParams)) *inbox {
	return &inbox{reject: reject, progress: progress, pending: map[jsonrpc.ID]bool{}}
}

// recordRequest records a request until its answer or its cancellation.
func (in *inbox) recordRequest(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if request.IsCall() {
		in.pending[request.ID] = true
		return
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	if request.Method == "notifications/cancelled" && json.Unmarshal(request.Params, &cancelled) == nil {
		if id, err := jsonrpc.MakeID(cancelled.ID); err == nil {
			delete(in.pending, id)
		}
	}
}

// parseMessages returns the messages of a line, or of the lines of one value. Everything
// else of the text is rejected.
func (in *inbox) parseMessages(line []byte) (list []jsonrpc.Message) {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.ToValidUTF8(line, []byte("\uFFFD")), []byte("\uFEFF")))
	if json.Valid(line) {
		return in.parseValue(line, false)
	}
	if value, rest, ok := cutValue(line); ok {
		list = in.parseValue(value, true)
		line = rest
	}
	// A progress bar or a text without an end of line may stand before an answer.
	for range maxStarts {
		at := -1
		for _, start := range replyStarts {
			if i := bytes.Index(line, start); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		in.rejectText(line[:at])
		value, rest, ok := cutValue(line[at:])
		if !ok {
			in.rejectText(line[at : at+1])
			line = line[at+1:]
			continue
		}
		list = append(list, in.parseValue(value, true)...)
		line = rest
	}
	in.rejectText(line)
	return list
}

// cutValue returns the JSON object or list that a text begins with, and what follows it.
func cutValue(text []byte) (value json.RawMessage, rest []byte, ok bool) {
	if !startsValue(text) {
		return nil, nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if dec.Decode(&value) != nil {
		return nil, nil, false
	}
	return value, text[dec.InputOffset():], true
}

func (in *inbox) rejectText(text []byte) {
	if text = bytes.TrimSpace(text); len(text) > 0 {
		in.reject(text)
	}
}

// parseValue returns the messages of a JSON value: an object is one, a list may hold several.
// Of a value that follows other text only answers count, because servers also print
// the requests that they get.
func (in *inbox) parseValue(value json.RawMessage, onlyReplies bool) []jsonrpc.Message {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	} else if len(list) == 0 {
		in.rejectText(value)
	}
	var messages []jsonrpc.Message
	for _, item := range list {
		var fields map[string]json.RawMessage
		var m jsonrpc.Message
		if json.Unmarshal(item, &fields) == nil && fields != nil {
			if fields["method"] == nil {
				m = in.parseReply(fields)
			} else if !onlyReplies {
				m, _ = jsonrpc.DecodeMessage(item) // anything other than a message is rejected below
			}
		}
		if m == nil {
			in.rejectText(item)
			continue
		}
		if !in.takeProgress(m) {
			messages = append(messages, m)
		}
	}
	return messages
}

// takeProgress passes on a report of progress, and reports whether the message is one.
func (in *inbox) takeProgress(m jsonrpc.Message) bool {
	note, ok := m.(*jsonrpc.Request)
	if !ok || note.IsCall() || note.Method != "notifications/progress" {
		return false
	}
	var p sdk.ProgressNotificationParams
	if err := json.Unmarshal(note.Params, &p); err != nil {
		in.rejectText(note.Params)
	} else {
		in.progress(&p)
	}
	return true
}

// parseReply returns the answer to a request of raddle, or nil if the fields are not one. If the
// answer is not valid, the request gets an error.
func (in *inbox) parseReply(fields map[string]json.RawMessage) jsonrpc.Message {
	result := nonNull(fields["result"])
	failure := nonNull(fields["error"])
	versioned := string(fields["jsonrpc"]) == `"2.0"`
	if result == nil && failure == nil && !versioned {
		return nil // a line of a log that happens to have an id
	}
	id, ok := in.takePending(fields["id"], failure != nil)
	if !ok {
		return nil
	}
	switch {
	case failure != nil:
		return &jsonrpc.Response{ID: id, Error: wireError(failure)}
	case result == nil:
		return &jsonrpc.Response{ID: id, Error: unreadableError("it has neither a result nor an error")}
	}
	return &jsonrpc.Response{ID: id, Result: result}
}

// nonNull returns a value, or nil if it is null.
func nonNull(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// takePending removes the request that an answer with this id is for from the pending ones, and
// returns its id. A number that has become a string is the number. A failure without an id is for
// the only request that there is.
func (in *inbox) takePending(raw json.RawMessage, failed bool) (jsonrpc.ID, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if nonNull(raw) == nil {
		if failed && len(in.pending) == 1 {
			for id := range in.pending {
				delete(in.pending, id)
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
	if text, ok := v.(string); ok && !in.pending[id] {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			id, _ = jsonrpc.MakeID(float64(n)) // a number always is an id
		}
	}
	known := in.pending[id]
	delete(in.pending, id)
	return id, known
}

// tooLong fails the request that a line above the limit answers.
func (in *inbox) tooLong(long *longLineError) []jsonrpc.Message {
	var id jsonrpc.ID
	ok := false
	if long.isReply {
		id, ok = in.takePending(long.id, false)
	}
	if !ok {
		in.reject(slices.Concat(long.start, []byte(" ...")))
		return nil
	}
	return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: unreadableError(
		fmt.Sprintf("it has %.1f MiB, and the limit is %d MiB; ask for less at once", float64(long.size)/(1<<20), maxLine>>20))}}
}

// unreadableError returns the error of a request whose answer cannot be read.
func unreadableError(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer cannot be read: " + reason}
}

// sdkCodes are the codes with which the SDK reports that a connection ends or refuses a request.
// They have no meaning in the answer of a server.
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
	_ = json.Unmarshal(raw, &text) // anything other than a string stays JSON
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}
