package config

import (
	"testing"

	"raddle.dev/internal/base/environ"
)

// Windows has the directories of a user under names whose case differs from program to program.
func TestWindowsDirs(t *testing.T) {
	for _, env := range []environ.Environ{
		{`APPDATA=C:\u\r`, `LOCALAPPDATA=C:\u\l`, `USERPROFILE=C:\u`},
		{`AppData=C:\u\r`, `LocalAppData=C:\u\l`, `UserProfile=C:\u`},
		{`=C:=C:\work`, `appdata=C:\u\r`, `localappdata=C:\u\l`, `userprofile=C:\u`, `home=C:\u`},
	} {
		d, err := FindDirs(env, `C:\work`)
		if err != nil {
			t.Errorf("%q: %v", env, err)
		}
		if d.Config != `C:\u\r\raddle` || d.State != `C:\u\l\raddle` || d.Cache != `C:\u\l\raddle` || d.Home != `C:\u` {
			t.Errorf("%q: %+v", env, d)
		}
	}
}
