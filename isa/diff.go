package isa

import "strings"

// A TableDiff says what differs between two tables.
type TableDiff struct {
	Added, Removed []*Variant    // in the order of tables
	Changed        [][2]*Variant // of the same class and opcode, or the same class alone
	Same           int           // variants that both have
}

// DiffTables compares two tables, from a to b.
func DiffTables(a, b *Table) TableDiff {
	var d TableDiff
	full := func(v *Variant) string { return FormatVariant(v) }
	class := func(v *Variant) string { return v.Class }
	as, bs := sortVariants(a.Variants()), sortVariants(b.Variants())
	as, bs, same := pairUp(as, bs, full)
	d.Same = len(same)
	as, bs, d.Changed = pairUp(as, bs, variantKey)
	var more [][2]*Variant
	d.Removed, d.Added, more = pairUp(as, bs, class)
	d.Changed = append(d.Changed, more...)
	return d
}

// pairUp finds pairs of variants, one of a and one of b, with the same key, and
// returns what is left of both.
func pairUp(a, b []*Variant, key func(*Variant) string) (restA, restB []*Variant, pairs [][2]*Variant) {
	byKey := map[string][]*Variant{}
	for _, v := range a {
		k := key(v)
		byKey[k] = append(byKey[k], v)
	}
	taken := map[*Variant]bool{}
	for _, v := range b {
		k := key(v)
		if l := byKey[k]; len(l) > 0 {
			pairs = append(pairs, [2]*Variant{l[0], v})
			taken[l[0]] = true
			byKey[k] = l[1:]
		} else {
			restB = append(restB, v)
		}
	}
	for _, v := range a {
		if !taken[v] {
			restA = append(restA, v)
		}
	}
	return restA, restB, pairs
}

// FormatVariant returns the lines that describe v in a table, except that choices
// stand where they are made instead of the names of lists.
func FormatVariant(v *Variant) string {
	w := tableWriter{label: listText}
	w.variant(v)
	return strings.TrimPrefix(w.out.String(), "\n")
}
