package load

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
)

const maxChapter = 8 << 20 // bytes of markup

// bookText returns the text of an EPUB file: its chapters in the order of reading.
func bookText(data []byte, most int64) (string, error) {
	a, err := openArchive(data, "EPUB", most)
	if err != nil {
		return "", err
	}
	chapters, err := a.listChapters()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range chapters {
		chapter, err := a.readChapter(name)
		if err != nil {
			return "", err
		}
		text, err := pageText(chapter, most)
		if err != nil {
			return "", a.brokenError(fmt.Errorf("%s: %w", name, err))
		}
		if text = strings.TrimSpace(text); text != "" {
			out.WriteString(text + "\n\n")
		}
		if int64(out.Len()) > most {
			return "", tooLarge(int64(out.Len()), most)
		}
	}
	if out.Len() == 0 {
		return "", errors.New("an EPUB file without text, perhaps of pictures alone, or one that is encrypted")
	}
	return out.String(), nil
}

// readChapter reads a file of the book.
func (a *archive) readChapter(name string) (string, error) {
	f, err := a.zip.Open(name)
	if err != nil {
		return "", a.brokenError(fmt.Errorf("it holds no %s", name))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(&markupReader{archive: a, from: f, piece: -1}, maxChapter+1))
	if err != nil {
		return "", a.brokenError(fmt.Errorf("%s: %w", name, err))
	}
	if len(data) > maxChapter {
		return "", tooLarge(int64(len(data)), maxChapter)
	}
	page, _, err := pageSource(data)
	return page, err
}

// listChapters lists the files of the book in the order of reading.
func (a *archive) listChapters() (names []string, err error) {
	nothing := visitor{end: func(string) {}, text: func([]byte) {}, size: func() int { return 0 }}
	container := nothing
	contents := nothing
	at := ""
	container.start = func(name string, attribute func(string) string) {
		if name == "rootfile" && at == "" {
			at = attribute("full-path")
		}
	}
	if err := a.visitXML("META-INF/container.xml", container); err != nil {
		return nil, err
	}
	files := map[string]string{}
	contents.start = func(name string, attribute func(string) string) {
		switch name {
		case "item":
			if href, err := url.PathUnescape(attribute("href")); err == nil && strings.Contains(attribute("media-type"), "html") && len(files) < maxParts {
				files[attribute("id")] = path.Join(path.Dir(at), href)
			}
		case "itemref":
			if file := files[attribute("idref")]; file != "" && len(names) < maxParts {
				names = append(names, file)
				delete(files, attribute("idref")) // each once
			}
		}
	}
	if err := a.visitXML(at, contents); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, a.brokenError(errors.New("it names no chapters"))
	}
	return names, nil
}
