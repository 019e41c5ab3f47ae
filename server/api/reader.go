package api

import (
	"bytes"
	"context"
	"net/http"
	"sync"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/replay"
	"raddle.dev/internal/storage/runs"
)

// A Reader answers the requests of the API that show one run, without a server. The run must not change: its journal is
// passed over and executed again once, however many of its moments are asked for.
type Reader struct {
	run string
	mux *http.ServeMux
}

// A keptRun is what a [Reader] knows of its run.
type keptRun struct {
	id      string
	moments []runs.Moment
	words   *describer
	play    sync.Once // executes the run again
	asked   *replay.Requests
	failed  error // of play
}

// playOnce returns what the run has asked of models.
func (k *keptRun) playOnce(ctx context.Context, h *handler) (*replay.Requests, error) {
	k.play.Do(func() {
		fresh := *h
		fresh.kept = nil
		k.asked, k.failed = fresh.playRequests(ctx, k.id)
	})
	return k.asked, k.failed
}

// NewReader returns a reader of a run in the store of a process.
func NewReader(ctx context.Context, p *app.Process, run string) (*Reader, error) {
	h := &handler{process: p}
	v, err := p.Runs.ReadView(ctx, run)
	if err != nil {
		return nil, err
	}
	moments := v.Moments()
	h.kept = &keptRun{id: v.Run, moments: moments, words: h.describeStory(ctx, v.Detail, moments)}
	r := &Reader{v.Run, http.NewServeMux()}
	h.openAPI(r.mux)
	h.addShow()
	h.addStates()
	h.addTimeline()
	return r, nil
}

// Read answers a request for a path below that of the run, such as "/state?at=4"; "" is the run itself.
func (r *Reader) Read(ctx context.Context, path string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, prefix+"/runs/"+r.run+path, nil)
	if err != nil {
		return 0, nil, err
	}
	w := answerBuffer{header: http.Header{}, status: http.StatusOK}
	r.mux.ServeHTTP(&w, request)
	return w.status, w.text.Bytes(), ctx.Err()
}

// An answerBuffer keeps an answer.
type answerBuffer struct {
	header http.Header
	status int
	text   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (b *answerBuffer) Header() http.Header { return b.header }

// WriteHeader implements [http.ResponseWriter].
func (b *answerBuffer) WriteHeader(status int) { b.status = status }

// Write implements [http.ResponseWriter].
func (b *answerBuffer) Write(text []byte) (int, error) { return b.text.Write(text) }
