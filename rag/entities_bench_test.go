//go:build unix

package rag

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
	"raddle.dev/rag/load"
)

// namer is a model in this process that finds the names that chunks were made with.
type namer struct{}

func (namer) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		_, passage, _ := strings.Cut(r.Messages[0].Text(), "Passage:\n")
		f := facts{Entities: []entity{}, Relations: []relation{}}
		names := capital.FindAllString(passage, -1)
		for i, name := range names {
			f.Entities = append(f.Entities, entity{name, "CONCEPT", "One of those who occur next to " + names[0] + "."})
			if i > 0 {
				f.Relations = append(f.Relations, relation{names[i-1], name, "BESIDE", 0.5 + float64(len(name)%5)/10})
			}
		}
		text, err := json.Marshal(f)
		yield(llm.Delta{Done: &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: string(text)}}}}}, err)
	}
}

// benchChunks and benchNames are the size of the base: every chunk names eight of the names, some far more often than others.
const (
	benchChunks = 20_000
	benchNames  = 30_000
)

func benchName(i int) string {
	return fmt.Sprintf("%c%s %c%s", 'A'+i%26, strings.Repeat(string(rune('a'+i/26%26)), 3), 'A'+i/676%26, strings.Repeat(string(rune('a'+i/17576%26)), 4))
}

func namesBase(b *testing.B) *Base {
	b.Helper()
	dir := b.TempDir()
	random := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(random, 1.1, 20, benchNames-1)
	for d := range 200 {
		var text strings.Builder
		for range benchChunks / 200 {
			for range 8 {
				fmt.Fprintf(&text, "of %s was said that it %s; ", benchName(int(zipf.Uint64())), []string{"grows", "shines", "ends", "turns"}[random.IntN(4)])
			}
			text.WriteString("\n\n")
		}
		testfile.WriteFile(b, filepath.Join(dir, fmt.Sprintf("docs/%03d.txt", d)), text.String())
	}
	return benchBase(b, Options{ChunkSize: 400, Load: load.Options{Dir: dir}, Extraction: Extraction{Model: "namer",
		Open: func(context.Context, string) (llm.Model, error) { return namer{}, nil }}})
}

// BenchmarkEntities searches a base with entities for names, and for words where nothing is named; and builds it again after one document has
// changed, which writes all rows of entities again.
func BenchmarkEntities(b *testing.B) {
	base := namesBase(b)
	defer base.Close()
	start := time.Now()
	report := benchBuild(b, base)
	b.Logf("%d chunks, %d entities and %d relations built in %s", report.Chunks, report.Entities, report.Relations, time.Since(start))
	for name, query := range map[string]func(i int) string{
		"named":    func(i int) string { return "What was said of " + benchName(i%300) + " and what of it shines?" },
		"rare":     func(i int) string { return "What was said of " + benchName(20_000+i%300) + "?" },
		"by words": func(i int) string { return "what grows and turns " + fmt.Sprint(i) },
	} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				benchSearch(b, base, query(i))
				i++
			}
		})
	}
	b.Run("words alone", func(b *testing.B) {
		base.view.entities = false // as in a base without
		defer func() { base.view.entities = true }()
		for b.Loop() {
			benchSearch(b, base, "What was said of "+benchName(7)+" and what of it shines?")
		}
	})
	b.Run("change", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			testfile.WriteFile(b, filepath.Join(base.o.Load.Dir, "docs/000.txt"), fmt.Sprintf("Nothing but Number %d.", n))
			if r := benchBuild(b, base); r.Asked != 1 {
				b.Fatalf("%+v", r)
			}
		}
	})
}
