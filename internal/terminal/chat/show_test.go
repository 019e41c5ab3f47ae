package chat

import "testing"

// /theme without a name says that one is missing, not that the empty name is unknown.
func TestThemeWithoutName(t *testing.T) {
	err := changeTheme(t.Context(), &Session{}, "")
	if err == nil || err.Error() != "/theme needs the name of a theme" {
		t.Errorf("the error is %v", err)
	}
}
