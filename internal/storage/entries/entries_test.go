package entries

import (
	"slices"
	"testing"
	"time"

	"raddle.dev/memory"
)

func TestTable(t *testing.T) {
	st := memory.New()
	ctx := t.Context()
	a := NewTable[int](st, "numbers", "a/b")
	other := NewTable[string](st, "numbers", "c")
	if err := a.PutValue(ctx, "one", 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := other.PutValue(ctx, "word", "x", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"two", "two"} {
		if got, err := a.AddValue(ctx, key, 2+len(key)-3, time.Hour); got != 2 || err != nil {
			t.Errorf("Add: %d, %v", got, err)
		}
	}
	if got, err := a.AddValue(ctx, "one", 9, 0); got != 1 || err != nil {
		t.Errorf("Add over a value: %d, %v", got, err)
	}
	if v, ok, err := a.ReadValue(ctx, "one"); v != 1 || !ok || err != nil {
		t.Errorf("Read: %d, %v, %v", v, ok, err)
	}
	if _, ok, err := a.ReadValue(ctx, "none"); ok || err != nil {
		t.Errorf("Read of nothing: %v, %v", ok, err)
	}
	if list, err := NewTable[int](st, "numbers").ListValues(ctx); !slices.Equal(list, []int{1, 2}) || err != nil {
		t.Errorf("the list, without what is no number, is %v, %v", list, err)
	}
	for _, want := range []bool{true, false} {
		if got, err := a.RemoveValue(ctx, "one"); got != want || err != nil {
			t.Errorf("Remove: %v, %v", got, err)
		}
	}
	if _, _, err := NewTable[int](st, "numbers", "c").ReadValue(ctx, "word"); err == nil {
		t.Error("a text is read as a number")
	}
	if _, err := st.GetEntry(ctx, Root+"/numbers/a%2Fb", "two"); err != nil {
		t.Error(err)
	}
}
