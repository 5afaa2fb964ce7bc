// Package recipe reads recipes: TOML files that keep rules with parameters, guards and
// tests. Mistakes in a recipe come with file, line and column.
package recipe
