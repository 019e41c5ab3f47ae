package shareview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/server/api"
)

// answers are what the page of a run requests: the form is that of src/share.ts in package studio.
type answers struct {
	Run     string            `json:"run"`
	Version string            `json:"version"`
	Written time.Time         `json:"written"`
	Values  []json.RawMessage `json:"values"`
	Answers map[string][]int  `json:"answers"` // by path below the run: the place of the value, and the status if it is not 200
}

// A collector collects the answers about one run.
type collector struct {
	answers
	pack    *pack
	reader  *api.Reader
	secrets *redact.Set
	status  string // of the run: what a copy cannot know
}

// collectAnswers answers all that the page of a run requests. The answers are made from a copy of the journal without secrets,
// and then searched for them again: what is computed from the files of the agent may have some.
func collectAnswers(ctx context.Context, p *app.Process, run string) (*answers, error) {
	d, err := p.Runs.ReadRunDetail(ctx, run)
	if err != nil {
		return nil, err
	}
	f, err := runfile.Collect(ctx, runfile.Source{Archive: p.Runs, Run: run, Version: app.Version(), Secrets: p.Tools.SecretSet(), Learn: p.NewLearner()})
	if err != nil {
		return nil, err
	}
	own, err := app.Open(app.Options{Environ: p.Environ(), Work: p.Dirs.Work, Store: "memory:"})
	if err != nil {
		return nil, err
	}
	defer own.Close()
	st, err := own.Runs.OpenStore()
	if err != nil {
		return nil, err
	}
	if d.Foreign != nil { // its record must not choose what is read on this machine
		if err := foreign.Put(ctx, st, f.Thread, *d.Foreign); err != nil {
			return nil, err
		}
	}
	if err := f.CopyThreads(ctx, st); err != nil {
		return nil, err
	}
	reader, err := api.NewReader(ctx, own, f.Run.Run)
	if err != nil {
		return nil, err
	}
	c := &collector{pack: newPack(), reader: reader, secrets: p.Tools.SecretSet(), status: d.Status}
	c.answers = answers{Run: f.Run.Run, Version: app.Version(), Written: f.Exported, Answers: map[string][]int{}}
	if err := c.addAll(ctx); err != nil {
		return nil, err
	}
	c.Values = c.pack.values
	return &c.answers, nil
}

// addAll adds every answer.
func (c *collector) addAll(ctx context.Context) error {
	var line struct {
		Items []moment `json:"items"`
	}
	text, err := c.addAnswer(ctx, "/timeline?after=0")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	paths := []string{"", "/waterfall"}
	for _, theme := range []string{"light", "dark"} {
		paths = append(paths, "/picture.svg?plain=true&fold=true&theme="+theme, "/picture.svg?plain=true&theme="+theme)
	}
	for _, path := range paths {
		if _, err := c.addAnswer(ctx, path); err != nil {
			return err
		}
	}
	return c.addMoments(ctx, line.Items)
}

// A moment is what collecting needs of one in a timeline.
type moment struct {
	Record int64  `json:"record"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Effect string `json:"effect"`
}

// stateless are the kinds of records that leave the state as it is.
var stateless = []string{"claim", "intent", "effect", "failure", "question", "answer", "task"}

// addMoments adds what the page requests about each moment: its record, and the state with what has changed in it since
// the moment that is shown before it.
func (c *collector) addMoments(ctx context.Context, list []moment) error {
	var state, blame, same []int // of the last moment
	shown := int64(0)            // the last moment that the page shows
	changed := false             // whether the state may have changed since
	for _, m := range list {
		if _, err := c.addAnswer(ctx, fmt.Sprintf("/records/%d", m.Record)); err != nil {
			return err
		}
		if m.Effect == "reply" {
			if _, err := c.addAnswer(ctx, fmt.Sprintf("/records/%d/request", m.Record)); err != nil {
				return err
			}
		}
		statePath := fmt.Sprintf("/state?at=%d", m.Record)
		blamePath := fmt.Sprintf("/blame?at=%d", m.Record)
		diffPath := fmt.Sprintf("/diff?a=%d&b=%d", shown, m.Record)
		if state == nil || !slices.Contains(stateless, m.Kind) {
			changed = true
			for _, path := range []string{statePath, blamePath} {
				if _, err := c.addAnswer(ctx, path); err != nil {
					return err
				}
			}
			state = c.Answers[statePath]
			blame = c.Answers[blamePath]
		}
		c.Answers[statePath] = state
		c.Answers[blamePath] = blame
		switch {
		case shown == 0:
		case changed || same == nil:
			if _, err := c.addAnswer(ctx, diffPath); err != nil {
				return err
			}
			if !changed {
				same = c.Answers[diffPath]
			}
		default:
			c.Answers[diffPath] = same
		}
		if m.Text != "" {
			shown = m.Record
			changed = false
		}
	}
	return nil
}

// addAnswer adds the answer to a request, and returns its JSON text, or the text that it is.
func (c *collector) addAnswer(ctx context.Context, path string) ([]byte, error) {
	status, text, err := c.reader.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	if json.Valid(text) {
		text = redact.RedactJSON(text, c.secrets.Text)
	} else if text, err = json.Marshal(string(c.secrets.Bytes(text))); err != nil {
		return nil, err
	}
	if path == "" && status == http.StatusOK {
		if text, err = setStatus(text, c.status); err != nil {
			return nil, err
		}
	}
	at, err := c.pack.addText(text)
	if err != nil {
		return nil, fmt.Errorf("the answer to %q: %w", path, err)
	}
	if c.Answers[path] = []int{at}; status != http.StatusOK {
		c.Answers[path] = []int{at, status}
	}
	return text, nil
}

// setStatus sets the status in the description of a run: the copy of a run that is driven has no driver.
func setStatus(text []byte, status string) ([]byte, error) {
	v, err := jsonvalue.ParseStored(text)
	if err != nil {
		return nil, err
	}
	if o, ok := v.(*jsonvalue.Object); ok {
		o.Set("status", status)
	}
	return jsonvalue.Append(nil, v)
}
