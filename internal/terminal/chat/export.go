package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"raddle.dev/internal/base/failure"
	"raddle.dev/llm"
)

// lastAnswer returns the last text of the agent.
func (s *Session) lastAnswer(ctx context.Context) (string, error) {
	if s.talk.IsGraph() {
		if s.last.output == "" {
			return "", failure.NewUsage("send a message first", "there is no answer yet")
		}
		return s.last.output, nil
	}
	messages, err := s.talk.Messages(ctx)
	if err != nil {
		return "", err
	}
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == llm.RoleAssistant && strings.TrimSpace(m.Text()) != "" {
			return m.Text(), nil
		}
	}
	return "", failure.NewUsage("send a message first", "there is no answer yet")
}

func copyAnswer(ctx context.Context, s *Session, rest string) error {
	text, err := s.lastAnswer(ctx)
	if err != nil {
		return err
	}
	what := "the answer"
	if rest != "" {
		n, err := strconv.Atoi(rest)
		blocks := codeBlocks(text)
		if err != nil || n < 1 || n > len(blocks) {
			return failure.NewUsage("write a number from 1, or /copy for the whole answer", "the answer has %d code blocks; there is no block %s", len(blocks), rest)
		}
		text = blocks[n-1]
		what = fmt.Sprintf("code block %d", n)
	}
	s.Screen.CopyText(text)
	s.say(fmt.Sprintf("Copied %s, %d characters. If your terminal does not allow this, use /save FILE.", what, len([]rune(text))))
	return nil
}

// codeBlocks returns the contents of the fenced code blocks of a Markdown text.
func codeBlocks(text string) []string {
	var blocks []string
	var block []string
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
			block = nil
		case fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "":
			blocks = append(blocks, strings.Join(block, "\n"))
			fence = ""
		case fence != "":
			block = append(block, line)
		}
	}
	if fence != "" {
		blocks = append(blocks, strings.Join(block, "\n"))
	}
	return blocks
}

func saveAnswer(ctx context.Context, s *Session, path string) error {
	if path == "" || path == "session" {
		s.say("The conversation is saved already: raddle -c continues it. To write the last answer to a file: /save FILE")
		return nil
	}
	text, err := s.lastAnswer(ctx)
	if err != nil {
		return err
	}
	return s.writeFile(ctx, path, []byte(strings.TrimRight(text, "\n")+"\n"))
}

// writeFile writes a file that the person named. It asks before it replaces one.
func (s *Session) writeFile(ctx context.Context, path string, content []byte) error {
	path = strings.Trim(path, `"`)
	full := s.Process.Dirs.AbsPath(path)
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if s.turn != nil {
			return failure.NewUsage("choose another name, or try again when the reply is complete", "%s exists already", path)
		}
		at, asked := s.choose(ctx, path+" exists already. Replace it?", []string{"no", "yes"})
		if asked != nil || at == 0 {
			return asked
		}
		f, err = os.OpenFile(full, os.O_WRONLY|os.O_TRUNC, 0o644)
	}
	if err != nil {
		return failure.NewUsage("", "%v", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return failure.NewUsage("", "%v", err)
	}
	s.say("Wrote " + path + ".")
	return nil
}

func exportTalk(ctx context.Context, s *Session, path string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	if path == "" {
		return failure.NewUsage("write: /export talk.md", "/export: the file is missing")
	}
	messages, err := s.talk.Messages(ctx)
	if err != nil {
		return err
	}
	var content []byte
	switch ext := strings.ToLower(filepath.Ext(strings.Trim(path, `"`))); ext {
	case ".md":
		content = []byte(formatMarkdown(s.talk.Title(), messages))
	case ".json":
		content, err = json.MarshalIndent(map[string]any{"agent": s.agent.Name, "title": s.talk.Title(), "messages": messages}, "", "  ")
		content = append(content, '\n')
	case ".html":
		content, err = formatHTML(s.talk.Title(), messages)
	default:
		return failure.NewUsage("name it FILE.md, FILE.json or FILE.html", "the form %q is unknown", ext)
	}
	if err != nil {
		return err
	}
	return s.writeFile(ctx, path, content)
}

// shareTurn writes the page of the run of the last turn.
func shareTurn(ctx context.Context, s *Session, path string) error {
	run, err := s.talk.LastRun(ctx)
	if err != nil {
		return err
	}
	if run = cmp.Or(run, s.last.run); run == "" {
		return failure.NewUsage("send a message first", "there is no turn yet")
	}
	args := []string{"runs", "share", run}
	if path = strings.Trim(path, `"`); path != "" {
		args = append(args, "-o", path)
	}
	return s.runCLI(ctx, args...)
}

// formatMarkdown returns a conversation as Markdown.
func formatMarkdown(title string, messages []llm.Message) string {
	var b strings.Builder
	b.WriteString("# " + title + "\n")
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			b.WriteString("\n## You\n")
		case llm.RoleAssistant:
			b.WriteString("\n## Agent\n")
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				if text := strings.TrimSpace(p.Text); text != "" {
					b.WriteString("\n" + text + "\n")
				}
			case llm.ToolCall:
				fmt.Fprintf(&b, "\n- called `%s` with `%s`\n", p.Name, strings.ReplaceAll(string(p.Args), "`", "'"))
			}
		}
	}
	return b.String()
}

// formatHTML returns a conversation as a page that loads nothing.
func formatHTML(title string, messages []llm.Message) ([]byte, error) {
	var body bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(formatMarkdown(title, messages)), &body); err != nil {
		return nil, err
	}
	const head = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}pre{overflow-x:auto;padding:.7rem;border:1px solid #8884}table{border-collapse:collapse}td,th{border:1px solid #8884;padding:.2rem .5rem}h2{border-top:1px solid #8884;padding-top:1rem;font-size:1rem}</style>
`
	return append(fmt.Appendf(nil, head, html.EscapeString(title)), body.Bytes()...), nil
}
