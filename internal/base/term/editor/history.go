package editor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/term"
)

// A History is the texts that were sent, oldest first. The zero value is empty and saves nothing.
type History struct {
	path   string
	redact func(string) string
	texts  []string
}

// maxHistory is how many texts a history keeps, and maxSaved how many bytes of one are saved.
const (
	maxHistory = 1000
	maxSaved   = 16 << 10
)

// OpenHistory returns the history in a file, which Add creates. redact removes what must not be saved; nil removes
// nothing. A file that cannot be read is an empty history: it only helps to type.
func OpenHistory(path string, redact func(string) string) *History {
	h := &History{path: path, redact: redact}
	text, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 8*maxSaved)
	for lines.Scan() {
		var entry string
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry != "" {
			h.texts = append(h.texts, entry)
		}
	}
	if len(h.texts) > maxHistory {
		h.texts = slices.Clone(h.texts[len(h.texts)-maxHistory:])
		h.rewrite()
	}
	return h
}

// Len returns the number of texts.
func (h *History) Len() int { return len(h.texts) }

// Add adds a text, unless it is empty or the newest one already, and saves it. A text that cannot be saved is still
// kept until the end.
func (h *History) Add(text string) {
	if text = strings.TrimSpace(text); text == "" || len(h.texts) > 0 && h.texts[len(h.texts)-1] == text {
		return
	}
	h.texts = append(h.texts, text)
	if h.path == "" || len(text) > maxSaved {
		return
	}
	if os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(h.encodeLine(text)) // the next session has no use for a part of it, and skips it
	_ = f.Close()
}

func (h *History) encodeLine(text string) []byte {
	if h.redact != nil {
		text = h.redact(text)
	}
	line, _ := json.Marshal(text) // a string can always be written
	return append(line, '\n')
}

// rewrite replaces the file with the texts that are kept.
func (h *History) rewrite() {
	var all []byte
	for _, text := range h.texts {
		all = append(all, h.encodeLine(text)...)
	}
	next := h.path + ".new"
	if os.WriteFile(next, all, 0o600) == nil {
		_ = os.Rename(next, h.path)
	}
}

// showOlder shows the text before the one that is shown.
func (e *Editor) showOlder() {
	if e.place == 0 {
		return
	}
	if e.place == e.history.Len() {
		e.draft = e.Text()
	}
	e.showPlace(e.place - 1)
}

// showNewer shows the text after the one that is shown; after the newest one, what the person had typed.
func (e *Editor) showNewer() {
	if e.place < e.history.Len() {
		e.showPlace(e.place + 1)
	}
}

func (e *Editor) showPlace(place int) {
	text := e.draft
	if place < e.history.Len() {
		text = e.history.texts[place]
	}
	e.SetText(text)
	e.place = place
}

// A search finds texts of the history.
type search struct {
	words string
	found []string // newest first
	at    int
}

// startSearch begins to search the history.
func (e *Editor) startSearch() {
	e.menu = menu{}
	e.search = &search{}
	e.search.find(e.history.texts)
}

// find finds the texts that contain all words, in any case, each text once.
func (s *search) find(texts []string) {
	s.found = nil
	s.at = 0
	words := strings.Fields(strings.ToLower(s.words))
	seen := map[string]bool{}
	for _, text := range slices.Backward(texts) {
		low := strings.ToLower(text)
		if !seen[text] && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(low, w) }) {
			seen[text] = true
			s.found = append(s.found, text)
		}
	}
}

// handleSearchKey handles a key of a search. It returns false for a key that ends the search and means something to the
// editor.
func (e *Editor) handleSearchKey(k tea.KeyPressMsg) bool {
	s := e.search
	switch name := k.String(); name {
	case "esc", "ctrl+c":
		e.search = nil
	case "enter", "tab", "right":
		e.search = nil
		if s.at < len(s.found) {
			e.SetText(s.found[s.at])
		}
	case "up", "ctrl+r", "ctrl+p":
		s.at = min(s.at+1, max(len(s.found)-1, 0))
	case "down", "ctrl+n", "ctrl+s":
		s.at = max(s.at-1, 0)
	case "backspace", "ctrl+h":
		if runes := []rune(s.words); len(runes) > 0 {
			s.words = string(runes[:len(runes)-1])
			s.find(e.history.texts)
		}
	default:
		if k.Text == "" {
			e.search = nil
			return false
		}
		s.words += k.Text
		s.find(e.history.texts)
	}
	return true
}

// viewSearch returns the lines of a search: the newest text is next to the words.
func (e *Editor) viewSearch() ([]string, term.Cursor) {
	s := e.search
	head := term.CutEnd("history: "+term.CleanLine(s.words), e.width-1)
	at := term.Cursor{Column: term.TextWidth(head)}
	lines := []string{head}
	if len(s.found) == 0 {
		return append(lines, term.PaintText(term.Dim, "  nothing found")), at
	}
	m := menu{chosen: s.at}
	for _, text := range s.found {
		m.Candidates = append(m.Candidates, Candidate{Text: strings.Join(strings.Fields(text), " ")})
	}
	return append(lines, m.view(e.width)...), at
}
