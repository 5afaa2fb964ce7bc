package edit

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestApplyChecksFirst sees that a wrong old word leaves everything as it was.
func TestApplyChecksFirst(t *testing.T) {
	data := make([]byte, 48)
	before := bytes.Clone(data)
	edits := []Edit{{Offset: 0, New: isa.Word{Lo: 1}}, {Offset: 16, Old: isa.Word{Lo: 9}, New: isa.Word{Lo: 1}}}
	if err := Apply(data, edits); !errors.Is(err, ErrOldWord) {
		t.Errorf("got %v", err)
	}
	if err := Apply(data, []Edit{{Offset: 40}}); err == nil {
		t.Error("an edit beyond the end is applied")
	}
	if !bytes.Equal(data, before) {
		t.Error("a failed Apply changed something")
	}
}
