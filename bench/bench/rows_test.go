//go:build peers

package bench

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"peers/floor"
	"peers/padk"
	"peers/peino"
	"peers/ptrpc"
	"peers/work"
)

// TestRows counts the rows one 20-step checkpointed run leaves, so that bytes
// per step can be read as bytes per checkpoint.
func TestRows(t *testing.T) {
	for _, c := range []struct {
		p      work.Peer
		tables []string
	}{
		{floor.Peers()[0], []string{"ck"}}, {floor.Peers()[1], []string{"ck"}},
		{ptrpc.Peers()[0], []string{"checkpoints", "checkpoint_writes"}},
		{peino.Peers()[0], []string{"ck"}}, {padk.Peers()[0], []string{"events"}},
	} {
		e := &work.Env{Dir: t.TempDir(), Saver: work.SQLite}
		run, err := c.p.Ckpt(e, 20, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		e.Close()
		files, _ := filepath.Glob(filepath.Join(e.Dir, "*.db"))
		db, err := sql.Open("sqlite3", files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range c.tables {
			var n int
			if err := db.QueryRow("SELECT count(*) FROM " + tab).Scan(&n); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d rows in %s after 20 steps", c.p.Name, n, tab)
		}
		db.Close()
		os.RemoveAll(e.Dir)
	}
}
