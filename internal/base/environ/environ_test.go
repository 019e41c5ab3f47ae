package environ

import (
	"slices"
	"testing"
)

// Names are compared as the system compares them, in every method.
func TestNames(t *testing.T) {
	e := Environ{"=C:=C:\\work", "Path=/bin", "Key=one", "KEY=two", "empty=", "USERPROFILE=/users/ada"}
	for _, tt := range []struct {
		system  string
		hasCase bool
		path    string // of PATH
		key     string // of Key
		isSet   bool   // EMPTY
		without []string
		home    string
	}{
		{"with case", true, "", "one", false, []string{"=C:=C:\\work", "Path=/bin", "Key=one", "empty=", "USERPROFILE=/users/ada"}, ""},
		{"without case", false, "/bin", "two", true, []string{"=C:=C:\\work", "empty=", "USERPROFILE=/users/ada"}, "/users/ada"},
	} {
		t.Run(tt.system, func(t *testing.T) {
			defer func(was bool) { hasCase = was }(hasCase)
			hasCase = tt.hasCase
			if got := e.Get("PATH"); got != tt.path {
				t.Errorf("Get(PATH) = %q, want %q", got, tt.path)
			}
			if got := e.Get("Key"); got != tt.key {
				t.Errorf("Get(Key) = %q, want %q", got, tt.key)
			}
			if got, ok := e.Lookup("EMPTY"); got != "" || ok {
				t.Errorf("Lookup(EMPTY) = %q, %v", got, ok)
			}
			if got := e.IsSet("EMPTY"); got != tt.isSet {
				t.Errorf("IsSet(EMPTY) = %v, want %v", got, tt.isSet)
			}
			if got, _ := e.LookupFirst([]string{"NONE", "PATH", "KEY"}); got != map[bool]string{true: "two", false: "/bin"}[tt.hasCase] {
				t.Errorf("LookupFirst = %q", got)
			}
			if got := e.WithoutNames("PATH", "KEY"); !slices.Equal(got, tt.without) {
				t.Errorf("WithoutNames = %q, want %q", got, tt.without)
			}
			if got := e.FindHome(); got != tt.home {
				t.Errorf("FindHome = %q, want %q", got, tt.home)
			}
			if got := e.FindName("C:\\work"); got != "" {
				t.Errorf("the directory of a drive is the variable %q", got)
			}
			if got := e.FindName("/bin"); got != "Path" {
				t.Errorf("FindName = %q", got)
			}
		})
	}
}
