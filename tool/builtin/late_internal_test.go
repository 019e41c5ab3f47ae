package builtin

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/base/box"
	"raddle.dev/tool"
)

// A change that was found later is recorded with what the file was, as far as that was kept and may be told.
func TestImageBeforeOfLateChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := Host{Workspace: dir, Hidden: func(string) func(string) bool {
		return func(path string) bool { return filepath.Base(path) == "hidden" }
	}}
	kept := &box.OldFile{Mode: 0o640, Size: 4, Data: []byte("old\n"), Kept: true}
	for name, c := range map[string]struct {
		old      *box.OldFile
		text     string
		withheld tool.WithheldReason
	}{
		"kept":   {kept, "old\n", ""},
		"hidden": {kept, "", tool.WithheldSecret},
		"large":  {&box.OldFile{Mode: 0o640, Size: 1 << 20}, "", tool.WithheldSecret},
		"new":    {nil, "", ""},
	} {
		image := imageBefore(h, box.PathChange{Path: name, Kind: box.Changed, Late: true, Old: c.old}, filepath.Join(dir, name))
		if (image.image == nil) != (c.old == nil) || image.withheld != c.withheld {
			t.Errorf("%s: %+v", name, image)
		}
		if image.image != nil && (image.image.Text != c.text || image.image.Mode != 0o640) {
			t.Errorf("%s: %+v", name, *image.image)
		}
	}
}
