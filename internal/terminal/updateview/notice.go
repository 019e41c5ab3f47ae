package updateview

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/release"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
)

// A Notice says at most once a day that there is a newer release than this program. It asks for one at most once a day,
// too, during a conversation, and says what an earlier one has found, so that nothing waits for the network.
type Notice struct {
	Path    string // where it remembers what it has asked and said
	Source  *release.Source
	Version string // of this program
	Now     func() time.Time
}

// noticeName is the file below the directory of the cache.
const noticeName = "update.json"

// noticePause is the least time between two requests, and between two notices.
const noticePause = 24 * time.Hour

// noticePatience is how long a server of releases may take for its answer to count.
const noticePatience = 20 * time.Second

// A memo is what is remembered.
type memo struct {
	Asked  time.Time `json:"asked"`
	Said   time.Time `json:"said"`
	Newest string    `json:"newest,omitempty"`
}

// NewNotice returns the notice of this program, or nil if the user has not asked for it, or this program is none of a
// release.
func NewNotice(wanted *bool, cache string) *Notice {
	if wanted == nil || !*wanted || release.Version == "" {
		return nil
	}
	source, err := release.FindSource()
	if err != nil {
		return nil
	}
	return &Notice{Path: filepath.Join(cache, noticeName), Source: source, Version: release.Version, Now: time.Now}
}

// Show says in a conversation that begins what an earlier one has found, and looks for newer releases while it lasts.
// wanted is what the user has said about it, and cache the directory of what raddle can make again.
func Show(ctx context.Context, con *console.Console, wanted *bool, cache string) {
	n := NewNotice(wanted, cache)
	if n == nil {
		return
	}
	if text := n.Say(); text != "" {
		con.PrintNote("%s", text)
	}
	go n.Ask(ctx)
}

// Say returns the notice if it is time for it, "" if not.
func (n *Notice) Say() string {
	m := n.readMemo()
	order, ok := release.Compare(n.Version, m.Newest)
	if !ok || order >= 0 || n.timeSince(m.Said) < noticePause {
		return ""
	}
	m.Said = n.Now()
	if n.writeMemo(m) != nil {
		return "" // it would be said each time
	}
	return "raddle " + m.Newest + " is released (this is " + n.Version + "). To get it: raddle update. To hide this: raddle config set update_notice false"
}

// Ask finds the newest release and remembers it, if it is time to. That it asks is noted first: also a server that does
// not answer is asked once a day.
func (n *Notice) Ask(ctx context.Context) {
	m := n.readMemo()
	if n.timeSince(m.Asked) < noticePause {
		return
	}
	m.Asked = n.Now()
	if n.writeMemo(m) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noticePatience)
	defer cancel()
	newest, err := n.Source.FindNewest(ctx)
	if err != nil {
		return // nothing that a conversation should be disturbed for; raddle update says it
	}
	m = n.readMemo()
	m.Newest = newest.Version
	_ = n.writeMemo(m) // the next day asks again
}

// timeSince returns how long ago a time was. What lies ahead was written under a wrong clock.
func (n *Notice) timeSince(t time.Time) time.Duration {
	if d := n.Now().Sub(t); d >= 0 {
		return d
	}
	return noticePause
}

func (n *Notice) readMemo() (m memo) {
	text, err := plainfile.Read(n.Path, 4096)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return memo{}
	}
	return m
}

func (n *Notice) writeMemo(m memo) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return config.WritePrivate(n.Path, append(text, '\n'))
}
