// Package patch changes files with GPU code: it opens any container, plans the edits that
// rules or an edited listing make, writes the file as a whole or not at all, and proves
// that nothing else changed.
//
// The packages below it have one subject each: [edit] the change of one word, [code] the
// instructions of a kernel, [listing] text, [check] what is refused and warned of,
// [rule] the rule language, [recipe] the files that keep rules, [report] the files that
// keep edits. None of them needs this one.
//
// # Security
//
// Files and listings may come from anywhere. No input makes the package panic or run
// without bound.
//
// [edit]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/edit
// [code]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/code
// [listing]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/listing
// [check]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/check
// [rule]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/rule
// [recipe]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/recipe
// [report]: https://pkg.go.dev/github.com/cupatch/cupatch/patch/report
package patch
