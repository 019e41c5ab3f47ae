package mcp

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var shown []string
		v := &progressView{show: func(text string) { shown = append(shown, text+" after "+time.Since(began).String()) }}
		defer v.stop()
		v.addReport("1")
		v.addReport("2")
		v.addReport("3") // only the newest is shown, when the pause is over
		<-v.due()
		v.showLast()
		<-v.due() // nothing new has come
		v.showLast()
		if v.due() != nil {
			t.Error("there is a pause without an end")
		}
		v.addReport("4")
		v.addReport("5")
		v.showLast() // the call is over
		if want := []string{"1 after 0s", "3 after 2s", "4 after 4s", "5 after 4s"}; !slices.Equal(shown, want) {
			t.Errorf("shown is %q, want %q", shown, want)
		}
	})
}
