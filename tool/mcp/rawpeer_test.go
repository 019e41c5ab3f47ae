//go:build unix

package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A rawPeer is a server that writes its messages by itself, so that it can write them
// wrong: the tool "misbehave" does what its argument "how" names.
type rawPeer struct {
	in    *bufio.Scanner
	seen  []string // methods, in the order of their messages
	stray string   // printed before every message
}

// lines are what is written for a way to misbehave; %d is the id of the call. A line
// may have several, and a way without a line answers nothing.
var lines = map[string]string{
	"unknown content type":       `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"video","uri":"a:b"}]}}`,
	"image that is no base64":    `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","mimeType":"image/png","data":"%%%%%%"}]}}`,
	"audio that is no base64":    `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":"-"}]}}`,
	"blob that is no base64":     `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"?"}}]}}`,
	"content without a type":     `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"text":"x"}]}}`,
	"content that is null":       `{"jsonrpc":"2.0","id":%d,"result":{"content":[null]}}`,
	"content that is a string":   `{"jsonrpc":"2.0","id":%d,"result":{"content":"x"}}`,
	"text that is a number":      `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":3}]}}`,
	"resource that is null":      `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"resource","resource":null}]}}`,
	"result that is a list":      `{"jsonrpc":"2.0","id":%d,"result":[]}`,
	"result that is a string":    `{"jsonrpc":"2.0","id":%d,"result":"done"}`,
	"result that is null":        `{"jsonrpc":"2.0","id":%d,"result":null}`,
	"neither result nor error":   `{"jsonrpc":"2.0","id":%d}`,
	"no content":                 `{"jsonrpc":"2.0","id":%d,"result":{}}`,
	"error that is a string":     `{"jsonrpc":"2.0","id":%d,"error":"no luck"}`,
	"error with a code in words": `{"jsonrpc":"2.0","id":%d,"error":{"code":"E_NO","message":"no luck"}}`,
	"error without a message":    `{"jsonrpc":"2.0","id":%d,"error":{}}`,
	"error without an id":        `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no luck"}}`,
	"error of our codes":         `{"jsonrpc":"2.0","id":%d,"error":{"code":-32004,"message":"no luck"}}`,
	"error that is null":         `{"jsonrpc":"2.0","id":%d,"error":null,"result":{"content":[{"type":"text","text":"done"}]}}`,
	"no version":                 `{"id":%d,"result":{"content":[{"type":"text","text":"done"}]}}`,
	"another version":            `{"jsonrpc":"1.0","id":%d,"result":{"content":[{"type":"text","text":"done"}]}}`,
	"id that is a string":        `{"jsonrpc":"2.0","id":"%d","result":{"content":[{"type":"text","text":"done"}]}}`,
	"id that is a fraction":      `{"jsonrpc":"2.0","id":%d.0,"result":{"content":[{"type":"text","text":"done"}]}}`,
	"ids of nobody": `{"jsonrpc":"2.0","id":99999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":{},"result":{}}` + "\n" +
		`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}` + "\n" + done,
	"answer given twice":     done + "\n" + done,
	"list of messages":       `[{"jsonrpc":"2.0","method":"notifications/x"},null,3,[],` + done + `]`,
	"text before an answer":  `Loading 100%% ` + done,
	"text behind an answer":  done + ` <- sent`,
	"bytes that are no text": `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"done` + "\xff\xfe" + `"}]}}`,
	"unknown request": `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":{}}` + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":[]}` + "\n" + done,
	"unknown notifications": `{"jsonrpc":"2.0","method":"x/y"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[],"progress":"x"}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/message","params":3}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}` + "\n" + done,
	"method that is a number":  `{"jsonrpc":"2.0","id":5,"method":7}` + "\n" + done,
	"nothing":                  ``,
	"half a line and the end":  `{"jsonrpc":"2.0","id":%d,"resu`,
	"the end without a word":   ``,
	"huge result":              `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"` + large + `"}]}}`,
	"huge result before an id": `{"result":{"id":3,"content":[{"type":"text","text":"\"id\":4` + large + `"}]},"id":%d,"jsonrpc":"2.0"}`,
	"huge line of a log":       large + "\n" + `{"level":"info","msg":"` + large + `"}` + "\n" + done,
	"deep result":              `{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}}`,
}

const done = `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"done"}]}}`

// large is longer than one message may be.
var large = strings.Repeat("large ", 3<<20)

// strays are lines that are no messages.
var strays = []string{
	"Server is starting ...", "[info] {not json", `{"level":"info","msg":"x"}`, `{"level":"info","id":1,"msg":"x"}`, `[]`, `[[]]`, `[1,2]`, `{}`, `null`, `true`, `3`, `"text"`,
	`{"method":"GET","path":"/"}`, `{"id":3,"method":"tools/call"}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","method":"x"}`, `{"jsonrpc":2,"id":1}`,
	"\x1b[32mgreen\x1b[0m", "\x00\x01\x02", "\xff\xfe", `{"jsonrpc":"2.0","id":1,"result`, "-> " + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "", "\t", "\xEF\xBB\xBF",
}

func serveRaw(mode string) error {
	p := &rawPeer{in: bufio.NewScanner(os.Stdin)}
	if mode == "raw strays" {
		p.stray = strings.Join(strays, "\n") + "\n"
	}
	p.in.Buffer(nil, 64<<20)
	for p.in.Scan() {
		var m struct {
			ID     *int
			Method string
			Params struct {
				Name      string
				Arguments struct{ How string }
				RequestID int
			}
		}
		if err := json.Unmarshal(p.in.Bytes(), &m); err != nil {
			continue
		}
		p.seen = append(p.seen, m.Method)
		switch {
		case m.ID == nil || m.Method == "":
		case m.Method == "initialize" && mode == "raw version":
			p.say(*m.ID, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "initialize":
			p.say(*m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "tools/list":
			p.say(*m.ID, `{"tools":[{"name":"misbehave","inputSchema":{"type":"object"}},{"name":"seen","inputSchema":{"type":"object"}},null]}`)
			if mode == "raw deaf" {
				<-make(chan struct{}) // nobody reads from here on
			}
		case m.Params.Name == "seen":
			text, _ := json.Marshal(fmt.Sprint(os.Getpid(), p.seen))
			p.say(*m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))
		case m.Params.Name == "misbehave":
			p.misbehave(m.Params.Arguments.How, *m.ID)
		case mode != "raw quiet":
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`+"\n", *m.ID)
		}
	}
	return p.in.Err()
}

func (p *rawPeer) say(id int, result string) {
	fmt.Printf("%s"+`{"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", p.stray, id, result)
}

func (p *rawPeer) misbehave(how string, id int) {
	text := lines[how]
	args := slices.Repeat([]any{id}, strings.Count(strings.ReplaceAll(text, "%%", ""), "%d"))
	text = fmt.Sprintf(text, args...)
	switch how {
	case "nothing":
		return
	case "half a line and the end", "the end without a word":
		fmt.Print(text)
		fmt.Fprint(os.Stderr, "\nthe licence has run out")
		os.Exit(3)
	}
	fmt.Println(text)
}

// serveLate is a server of the newest protocol that starts slowly: it reads the first
// request when the client has given up waiting and has sent "initialize". A start after
// that is a quick one.
func serveLate() error {
	if err := os.WriteFile("started", nil, 0o600); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     *int
			Method string
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return err
		}
		if m.Method == "initialize" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"}}`+"\n", *m.ID)
		}
	}
	return nil
}
