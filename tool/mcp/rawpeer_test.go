//go:build unix

package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A rawPeer is a server that writes its messages by itself, so that it can write them
// wrong: the tool "misbehave" does what its argument "how" names.
type rawPeer struct {
	in    *bufio.Scanner
	seen  []string // methods, in the order of their messages
	stray string   // printed before every message
	held  []int    // ids of calls that have no answer yet
	pages int      // of a list without an end
}

// lines are what is written for a way to misbehave; %d is the id of the call. A line
// may have several.
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
	"method that is a number":                      `{"jsonrpc":"2.0","id":5,"method":7}` + "\n" + done,
	"huge result":                                  `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"` + large + `"}]}}`,
	"huge result before an id":                     `{"result":{"id":3,"content":[{"type":"text","text":"\"id\":4` + large + `"}]},"id":%d,"jsonrpc":"2.0"}`,
	"huge line of a log":                           large + "\n" + `{"level":"info","msg":"` + large + `"}` + "\n" + done,
	"line ends of Windows":                         done + "\r",
	"blank lines and tabs":                         "\n\t\n\t" + done + "\t\n\n",
	"several lines":                                spread,
	"several lines of Windows":                     strings.ReplaceAll(spread, "\n", "\r\n"),
	"several lines behind a log of several lines":  "{\n  \"level\": \"info\",\n  \"id\": %d\n}\n" + spread,
	"several lines behind half a message":          `{"jsonrpc":"2.0","id":1,"result` + "\n" + spread,
	"several lines behind a value that stays open": "{\n" + spread,
	"a message behind a value that stays open":     "{\n  \"level\": [\n" + done,
	"several lines with text behind them":          spread + " <- sent",
	"list of messages over several lines":          "[\n" + done + ",\n" + `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n]",
	"huge result over several lines":               "{\n\"jsonrpc\":\"2.0\",\"result\":{\"id\":3,\"content\":[\n" + strings.Repeat(`{"type":"text","text":"`+large[:len(large)/10]+"\"},\n", 10) + "{}]},\n\"id\":%d\n}",
	"huge line of several":                         "{\n\"jsonrpc\":\"2.0\",\"result\":{\"content\":[\n" + `{"type":"text","text":"` + large + "\"}\n]},\n\"id\":%d\n}",
	"our request cancelled":                        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}` + "\n" + done,
	"a question that cannot be read": `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":3}}}}` + "\n" +
		`{"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{"message":"?","mode":"url","url":"https://x.test/"}}` + "\n" + done,
	"a thousand notices": strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-%d","progress":1}}`+"\n", 1000) + done,
	"deep result": `{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}}`,
}

const done = `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"done"}]}}`

// spread is the same message over several lines.
const spread = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": %d,\n  \"result\": {\n    \"content\": [\n      {\"type\": \"text\", \"text\": \"done\"}\n    ]\n  }\n}"

// acts are what is done for a way to misbehave, instead of writing lines. Each act answers
// the call, unless the server ends.
var acts = map[string]func(id int){
	"nothing": func(int) {},
	"half a line and the end": func(id int) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%d,"resu`, id)
		endServer()
	},
	"the end without a word": func(int) { endServer() },
	"the end of the output": func(int) {
		fmt.Fprintln(os.Stderr, "the licence has run out")
		os.Stdout.Close()
		time.Sleep(time.Hour)
	},
	"the end behind an answer": func(id int) {
		os.Stderr.Close()
		fmt.Printf(done+"\n", id)
		os.Exit(0)
	},
	"an answer in small pieces": func(id int) {
		for _, b := range fmt.Appendf(nil, done+"\r\n", id) {
			os.Stdout.Write([]byte{b})
		}
	},
	"a flood on stdout": func(id int) {
		flood(os.Stdout)
		fmt.Printf("\n"+done+"\n", id)
	},
	"a flood on stderr": func(id int) {
		flood(os.Stderr)
		fmt.Printf(done+"\n", id)
	},
}

func endServer() {
	fmt.Fprint(os.Stderr, "\nthe licence has run out")
	os.Exit(3)
}

// flood writes 16 MiB of short lines, and 128 MiB of a line without an end.
func flood(w io.Writer) {
	for _, part := range []string{"chatter\n", "{\"chatter\": ["} {
		text := []byte(strings.Repeat(part, 1<<20/len(part)))
		for range 16 << (3 * strings.Count(part, "{")) {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	}
}

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
	start := strings.TrimPrefix(mode, "raw start ")
	if start != mode {
		fmt.Fprintln(os.Stderr, "the licence has run out")
	}
	switch start {
	case "closed":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "ends":
		return nil
	}
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
		if m.Params.Arguments.How == "held" {
			p.seen = append(p.seen, "held")
		}
		switch {
		case m.Method == "notifications/cancelled":
			p.answerHeld()
		case m.ID == nil || m.Method == "":
		case starts[start][m.Method] != "":
			fmt.Printf(starts[start][m.Method]+"\n", *m.ID)
		case strings.HasPrefix(mode, "raw pages") && strings.HasSuffix(m.Method, "/list"):
			p.sayPage(*m.ID, strings.TrimPrefix(mode, "raw pages "))
		case m.Method == "initialize" && strings.HasPrefix(mode, "raw pages"):
			p.say(*m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "initialize" && mode == "raw version":
			p.say(*m.ID, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "initialize":
			p.say(*m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "tools/list":
			p.say(*m.ID, `{"tools":[{"name":"misbehave","inputSchema":{"type":"object"}},{"name":"seen","inputSchema":{"type":"object"}},null]}`)
			if mode == "raw deaf" {
				<-make(chan struct{}) // no process reads from here on
			}
		case m.Params.Name == "seen":
			text, _ := json.Marshal(fmt.Sprint(os.Getpid(), p.seen))
			p.say(*m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))
		case m.Params.Name == "misbehave" && m.Params.Arguments.How == "held":
			p.held = append(p.held, *m.ID)
		case m.Params.Name == "misbehave" && m.Params.Arguments.How == "held, and the last first":
			p.held = append(p.held, *m.ID)
			slices.Reverse(p.held)
			p.answerHeld()
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

// answerHeld answers the calls that were held back, each with its id.
func (p *rawPeer) answerHeld() {
	for _, id := range p.held {
		p.say(id, fmt.Sprintf(`{"content":[{"type":"text","text":"answer to %d"}]}`, id))
	}
	p.held = nil
}

// sayPage answers with a page of a list that goes in circles, or has no end.
func (p *rawPeer) sayPage(id int, how string) {
	p.pages++
	name, cursor := "misbehave", ""
	switch how {
	case "with one cursor":
		cursor = "more"
	case "with two cursors":
		cursor = fmt.Sprint("more", p.pages%2)
	case "with one tool":
		cursor = fmt.Sprint("more", p.pages)
	case "without an end":
		name, cursor = fmt.Sprint("tool_", p.pages), fmt.Sprint("more", p.pages)
	}
	item := fmt.Sprintf(`{"name":%q,"uri":"a:%[1]s","uriTemplate":"a:%[1]s{x}","inputSchema":{"type":"object"}}`, name)
	p.say(id, fmt.Sprintf(`{"tools":[%s],"resources":[%[1]s,null],"resourceTemplates":[%[1]s],"prompts":[null,%[1]s],"nextCursor":%q}`, item, cursor))
}

// starts are answers to the first requests with which no server can be used, by the way to
// misbehave and the method.
var starts = map[string]map[string]string{
	"refuses":           {"initialize": `{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"no seat is free"}}`},
	"a string":          {"initialize": `{"jsonrpc":"2.0","id":%d,"result":"welcome"}`},
	"an old version":    {"initialize": `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"raw","version":"1"}}}`},
	"no tools":          {"tools/list": `{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"the catalog is locked"}}`},
	"tools, no list":    {"tools/list": `{"jsonrpc":"2.0","id":%d,"result":{"tools":"many"}}`},
	"a tool, no object": {"tools/list": `{"jsonrpc":"2.0","id":%d,"result":{"tools":["misbehave"]}}`},
}

func (p *rawPeer) misbehave(how string, id int) {
	if act := acts[how]; act != nil {
		act(id)
		return
	}
	text := lines[how]
	args := slices.Repeat([]any{id}, strings.Count(strings.ReplaceAll(text, "%%", ""), "%d"))
	text = fmt.Sprintf(text, args...)
	fmt.Println(text)
}

// refuseFirst is the beginning of a server of the newest protocol that starts slowly: it reads the first request when the client has given up waiting
// and has sent "initialize", which it refuses. It does not start twice.
func refuseFirst() error {
	f, err := os.OpenFile("started", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	for line := []byte{}; ; {
		var one [1]byte
		if _, err := os.Stdin.Read(one[:]); err != nil {
			return err
		}
		if line = append(line, one[0]); one[0] != '\n' {
			continue
		}
		var m struct {
			ID     *int
			Method string
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m.Method == "initialize" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"}}`+"\n", *m.ID)
			return nil
		}
		line = nil
	}
}
