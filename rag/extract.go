package rag

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"raddle.dev/llm"
)

// maxFailures is how many consecutive failures stop a build: of calls that might succeed at another time, or of all
// answers so far. So many failures are not caused by single chunks.
const maxFailures = 10

// An ExtractError is a failure of an extractor model that would happen again for every other chunk. The build stops.
// The answers so far are kept.
type ExtractError struct {
	Model string
	Err   error
}

// Error returns a message with the name of the model and the cause.
func (e *ExtractError) Error() string { return "extractor model " + e.Model + ": " + e.Err.Error() }

// Unwrap returns the failure.
func (e *ExtractError) Unwrap() error { return e.Err }

// An extraction holds the calls with which one build asks a model about its chunks. Each answer is stored as a row as
// soon as it arrives, under the hash of the chunk's text. An unusable answer is a row without data. The model is not
// asked again about a text that has a row. A call that failed stores no row.
type extraction struct {
	*builder
	recipe string
	model  llm.Model
	chunks map[textHash][]int64 // that have a text, by its hash
	paths  map[textHash]string  // of the first document with the text
	todo   []textHash
	lost   map[textHash]bool    // texts without a row
	texts  map[int64][]textHash // of the documents that the model was not asked about, by their id

	answered, useless, down int // in this build; down: consecutive failed calls
}

// recipeOf returns an identifier of the model and the prompt.
func recipeOf(s *Settings) string {
	prompt := "built-in"
	if s.ExtractorPrompt != "" {
		prompt = fmt.Sprintf("%x", sha256.Sum256([]byte(s.ExtractorPrompt)))
	}
	return "1 " + prompt + " " + s.ExtractorModel
}

// extractEntities asks the model about all chunks that it was not asked about yet.
func (w *builder) extractEntities(ctx context.Context) error {
	if w.settings.ExtractorModel == "" {
		return nil
	}
	e := &extraction{builder: w, recipe: recipeOf(&w.settings), chunks: map[textHash][]int64{}, paths: map[textHash]string{},
		lost: map[textHash]bool{}, texts: map[int64][]textHash{}}
	for _, s := range w.order {
		if s.extracted == e.recipe {
			continue
		}
		if err := e.planCalls(ctx, s); err != nil {
			return err
		}
		w.extract = e
	}
	return e.askChunks(ctx)
}

// planCalls adds the chunks of a document whose text has no row yet to the plan, and links the others to their rows.
func (e *extraction) planCalls(ctx context.Context, s storedDocument) error {
	return runTransaction(ctx, e.base.db, func(tx *sql.Tx) error {
		chunks, err := textsOf(ctx, tx, s.id)
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE document SET extracted = '' WHERE id = ? AND extracted <> ''", s.id)
		}
		if err != nil {
			return err
		}
		e.texts[s.id] = nil
		for _, c := range chunks {
			e.texts[s.id] = append(e.texts[s.id], c.hash)
			var row int64
			err := tx.QueryRowContext(ctx, "SELECT id FROM extract WHERE recipe = ? AND hash = ?", e.recipe, c.hash[:]).Scan(&row)
			switch {
			case err == nil:
				err = e.linkChunk(ctx, tx, c.id, row)
			case errors.Is(err, sql.ErrNoRows):
				if e.chunks[c.hash] == nil {
					e.todo, e.paths[c.hash] = append(e.todo, c.hash), s.path
				}
				e.chunks[c.hash] = append(e.chunks[c.hash], c.id)
				err = e.linkChunk(ctx, tx, c.id, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// linkChunk links a chunk to the row with its facts; nil: to none.
func (e *extraction) linkChunk(ctx context.Context, tx *sql.Tx, chunk int64, row any) error {
	_, err := tx.ExecContext(ctx, "UPDATE chunk SET extract = ?1 WHERE id = ?2 AND extract IS NOT ?1", row, chunk)
	return err
}

// A hashedChunk is the row of a chunk with the hash of its text.
type hashedChunk struct {
	id   int64
	hash textHash
}

func textsOf(ctx context.Context, tx *sql.Tx, document int64) (chunks []hashedChunk, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT id, text FROM chunk WHERE document = ? ORDER BY place", document)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		chunks = append(chunks, hashedChunk{id, hashText(text)})
	}
	return chunks, rows.Err()
}

// An answer is the outcome of one call.
type answer struct {
	hash  textHash
	facts facts
	err   error
}

// askChunks makes all calls, some at a time, and stores each answer when it arrives.
func (e *extraction) askChunks(ctx context.Context) error {
	if len(e.todo) == 0 {
		return nil
	}
	if err := e.openExtractor(ctx); err != nil {
		return &ExtractError{e.settings.ExtractorModel, err}
	}
	e.reportProgress("", nil)
	ctx, cancel := context.WithCancel(ctx)
	todo := make(chan textHash)
	answers := make(chan answer)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	for range min(e.base.o.Extraction.Calls, len(e.todo)) {
		wait.Go(func() {
			for h := range todo {
				f, err := e.askChunk(ctx, e.chunks[h][0])
				select {
				case answers <- answer{h, f, err}:
				case <-ctx.Done():
				}
			}
		})
	}
	wait.Go(func() {
		defer close(todo)
		for _, h := range e.todo {
			select {
			case todo <- h:
			case <-ctx.Done():
				return
			}
		}
	})
	for range e.todo {
		select {
		case a := <-answers:
			if err := e.handleAnswer(ctx, a); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// openExtractor opens the model.
func (e *extraction) openExtractor(ctx context.Context) (err error) {
	open := e.base.o.Extraction.Open
	if open == nil {
		return errors.New("it cannot be opened: Extraction.Open is not set")
	}
	e.model, err = open(ctx, e.settings.ExtractorModel)
	return err
}

// errChunkLost is the error of a chunk that can no longer be read.
var errChunkLost = errors.New("another build has removed what this one prepared: build again")

// askChunk asks about a chunk.
func (e *extraction) askChunk(ctx context.Context, chunk int64) (facts, error) {
	var text string
	if err := e.base.db.QueryRowContext(ctx, "SELECT text FROM chunk WHERE id = ?", chunk).Scan(&text); err != nil {
		return facts{}, fmt.Errorf("%w: %w", errChunkLost, err)
	}
	prompt := e.settings.ExtractorPrompt
	if prompt == "" {
		prompt = extractPrompt
	}
	prompt = strings.ReplaceAll(prompt, ChunkMark, text)
	if redact := e.base.o.Extraction.Redact; redact != nil {
		prompt = redact(prompt)
	}
	var reply llm.Reply
	_, err := retryCall(ctx, e.base.o.Attempts, func() (err error) {
		reply, err = llm.Generate(ctx, e.model, llm.Request{Messages: []llm.Message{llm.User(prompt)}, Temperature: new(0.0)})
		return err
	})
	if err != nil {
		return facts{}, err
	}
	f, err := readFacts(reply.Text())
	if err != nil && reply.Stop == llm.StopLength {
		err = fmt.Errorf("%w: it was cut off at the model's limit: a smaller chunk_size helps", err)
	}
	return f, err
}

// handleAnswer stores an answer, and decides whether to continue after a failure.
func (e *extraction) handleAnswer(ctx context.Context, a answer) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.report.Asked++
	var failure *llm.Error
	isModelError := errors.As(a.err, &failure)
	switch {
	case errors.Is(a.err, errChunkLost):
		return a.err
	case isModelError && affectsEveryChunk(failure):
		return &ExtractError{e.settings.ExtractorModel, a.err}
	case a.err == nil:
		e.answered++
		e.down = 0
		if err := e.storeFacts(ctx, a.hash, &a.facts); err != nil {
			return err
		}
		e.reportProgress(e.paths[a.hash], nil)
		return nil
	case errors.Is(a.err, errAnswer), isModelError && finalClasses[failure.Class]:
		e.useless++
		if err := e.storeFacts(ctx, a.hash, nil); err != nil {
			return err
		}
	default:
		e.down++
		e.lost[a.hash] = true
	}
	e.report.Missed++
	e.reportProgress(e.paths[a.hash], a.err)
	if e.down >= maxFailures || e.answered == 0 && e.useless+e.down >= maxFailures {
		return &ExtractError{e.settings.ExtractorModel, fmt.Errorf("it has failed %d times in a row, the last time with: %w", maxFailures, a.err)}
	}
	return nil
}

// affectsEveryChunk reports whether a failure would happen for every other chunk, too: a wrong key, a model that does
// not exist.
func affectsEveryChunk(e *llm.Error) bool {
	return e.Class == llm.Auth || e.Status == http.StatusNotFound
}

// storeFacts writes the row of a text and links its chunks to it. A row without facts also means that the model is not
// asked about the text again.
func (e *extraction) storeFacts(ctx context.Context, h textHash, f *facts) error {
	var data any
	if f != nil {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		data = string(text)
	}
	return runTransaction(ctx, e.base.db, func(tx *sql.Tx) error {
		var row int64
		err := tx.QueryRowContext(ctx, `INSERT INTO extract (recipe, hash, data) VALUES (?, ?, ?)
			ON CONFLICT (recipe, hash) DO UPDATE SET recipe = recipe RETURNING id`, e.recipe, h[:], data).Scan(&row)
		for _, chunk := range e.chunks[h] {
			if err == nil {
				err = e.linkChunk(ctx, tx, chunk, row)
			}
		}
		return err
	})
}

// isComplete reports whether all chunks of a document have a row now.
func (e *extraction) isComplete(document int64) bool {
	texts, planned := e.texts[document]
	return planned && !slices.ContainsFunc(texts, func(h textHash) bool { return e.lost[h] })
}

// hasNewFacts reports whether there are facts to publish.
func (e *extraction) hasNewFacts() bool {
	return e != nil && (e.answered > 0 || slices.ContainsFunc(e.order, func(s storedDocument) bool { return e.isComplete(s.id) }))
}

// markComplete marks the documents that are complete, so that the next build skips them.
func (e *extraction) markComplete(ctx context.Context, tx *sql.Tx) error {
	if e == nil {
		return nil
	}
	for _, s := range e.order {
		if !e.isComplete(s.id) {
			continue
		}
		if _, err := tx.ExecContext(ctx, "UPDATE document SET extracted = ? WHERE id = ?", e.recipe, s.id); err != nil {
			return err
		}
	}
	return nil
}

// reportProgress reports how many calls are done.
func (e *extraction) reportProgress(path string, failure error) {
	e.progress(Progress{Path: path, Done: e.done, Total: e.total, Embedded: e.report.Embedded,
		Asked: e.report.Asked, ToAsk: len(e.todo), Missed: failure})
}
