package recipe

import "testing"

// FuzzRecipe checks that no recipe text makes a panic.
func FuzzRecipe(f *testing.F) {
	f.Add(sinkRecipe)
	f.Fuzz(func(t *testing.T, text string) {
		if rc, err := Parse("r.toml", []byte(text)); err == nil {
			_, _ = rc.Combinations(nil, 100)
		}
	})
}
