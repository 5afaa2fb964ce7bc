package patch

import "github.com/cupatch/cupatch/elfx"

// Prune returns the content of a file without the entries that keep refuses, and what is
// left. See [elfx.File.Prune]. The proof compares every byte of the entries that stay.
func Prune(f *elfx.File, keep func(*elfx.Entry) bool) (*Content, []*elfx.Entry, error) {
	out, rep, err := f.Prune(keep)
	if err != nil {
		return nil, nil, err
	}
	return &Content{rep.Why, out, comparison{old: f, kept: rep.Kept, extent: headers}}, rep.Kept, nil
}

// Recompress returns the content of a file with its entries compressed in another way. See
// [elfx.File.Recompress]. The proof compares every entry after decompression.
func Recompress(f *elfx.File, how elfx.Compression, level int) (*Content, error) {
	out, rep, err := f.Recompress(how, level)
	if err != nil {
		return nil, err
	}
	proof := comparison{old: f, kept: f.Entries(), extent: headers, repack: true, recode: true, fill: true}
	return &Content{rep.Why, out, proof}, nil
}
