package load

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// slidesText returns the text of a PPTX file, under a heading for each slide, with the speaker's notes.
func slidesText(data []byte, most int64) (string, error) {
	a, err := openArchive(data, "PPTX", most)
	if err != nil {
		return "", err
	}
	slides := a.numberedFiles("ppt/slides/slide")
	if len(slides) == 0 {
		return "", a.brokenError(errors.New("it holds no slides"))
	}
	var w markdownWriter
	for i, name := range slides {
		fmt.Fprintf(&w.out, "## Slide %d\n\n", i+1)
		if err := a.readSlide(name, &w); err != nil {
			return "", err
		}
		notes := "ppt/notesSlides/notesSlide" + strings.TrimPrefix(path.Base(name), "slide")
		if a.hasFile(notes) {
			if err := a.readSlide(notes, &w); err != nil {
				return "", err
			}
		}
	}
	return w.trimmedText(), nil
}

// numberedFiles lists the files whose names are prefix, a number and .xml, by the number.
func (a *archive) numberedFiles(prefix string) (names []string) {
	number := func(name string) int {
		middle, isXML := strings.CutSuffix(strings.TrimPrefix(name, prefix), ".xml")
		n, err := strconv.Atoi(middle)
		if !isXML || err != nil || !strings.HasPrefix(name, prefix) {
			return -1
		}
		return n
	}
	for _, f := range a.zip.File {
		if number(f.Name) >= 0 {
			names = append(names, f.Name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(number(x), number(y)) })
	return names
}

// readSlide adds the paragraphs of a slide.
func (a *archive) readSlide(name string, w *markdownWriter) error {
	return a.visitXML(name, w.visitor(func(string, func(string) string) {}))
}
