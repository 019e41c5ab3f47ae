//go:build linux

package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/testkit/pgtest"
)

// If the disk of the server is full, a run stops with an error that says so. When there is space
// again, it continues: what was recorded is not repeated, and nothing is lost. It needs root, to mount a small disk.
func TestOptionalFullDisk(t *testing.T) {
	disk, err := os.MkdirTemp("", "full-") // the user of the server cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(disk); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() { // after the server has ended
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s := open(t, pgtest.Start(t).NewDatabaseIn(t, disk))
	filler := filepath.Join(disk, "filler")
	fill := func() {
		f, err := os.Create(filler)
		for chunk := bytes.Repeat([]byte("f"), 64<<10); err == nil; {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		_ = f.Close() // the disk is full
	}
	files := graph.Append[[]byte]("files")
	ran := map[string]int{}
	add := func(name string, before func()) graph.Node {
		return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			before()
			file, err := graph.Do(ctx, name, func(context.Context) ([]byte, error) {
				ran[name]++
				file := make([]byte, 1<<20)
				_, err := rand.Read(file) // so that it cannot be compressed
				return file, err
			})
			return graph.Put(files.Set([][]byte{file})), err
		}}
	}
	g, err := graph.Compile(graph.Def{
		Name: "three", Keys: []graph.AnyKey{files}, Start: []string{"a"},
		Nodes: []graph.Node{add("a", func() {}), add("b", func() {
			if ran["b"] == 0 {
				fill()
			}
		}), add("c", func() {})},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{"c"}}, {From: []string{"c"}, To: []string{graph.End}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: s, StoreAway: func(_ string, err error) {
		if err != nil { // the run waits until there is room
			expectError(t, err, "postgres: append to thread \"t\"", "the disk of the server is full", "free some space")
			if err := os.Remove(filler); err != nil {
				t.Error(err)
			}
		}
	}}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v: %v", res.Status, err)
	}
	if got := fmt.Sprint(len(files.Get(res.State)), ran); got != "3 map[a:1 b:1 c:1]" {
		t.Errorf("%s: want each once", got)
	}
}
