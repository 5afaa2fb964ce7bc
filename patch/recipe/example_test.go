package recipe_test

import (
	"fmt"
	"log"

	"github.com/cupatch/cupatch/patch/recipe"
)

// A recipe has rules, parameters and tests.
func ExampleParse() {
	tuning, err := recipe.Parse("hint.toml", []byte(`
description = "cache hint"
[param.hint]
values = ["EF", "EL", "NA"]
[[rule]]
name = "hint"
match = "LDG.E"
set = "evict=${hint}"
`))
	if err != nil {
		log.Fatal(err)
	}
	combinations, err := tuning.Combinations(nil, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, values := range combinations {
		rules, err := tuning.Rules(values)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rules[0].Source())
	}
	// Output:
	// LDG.E => evict=EF
	// LDG.E => evict=EL
	// LDG.E => evict=NA
}
