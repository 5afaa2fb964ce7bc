package elfx

import (
	"fmt"
	"slices"
)

// Prune returns the content of the file without the entries that keep refuses. A fatbin
// that loses all of its entries stays as an empty one, so that what registers it still
// finds it. A concatenation stays as long as one of its parts is kept. In host files the
// pointers to fatbins follow, and what is free is cut out of the file; only whole pages
// of programs and libraries can be. Cubins that stand by themselves stay.
func (f *File) Prune(keep func(*Entry) bool) (*Output, *RewriteReport, error) {
	r := f.newRebuild()
	r.shrink = true
	parts := make(map[*Entry]bool) // concatenations with a part that is kept
	for _, e := range f.entries {
		if e.Parent != nil && keep(e) {
			parts[e.Parent] = true
		}
	}
	for _, e := range f.entries {
		if e.Parent == nil && e.Container.Kind == ContainerFatbin && !parts[e] && (e.Kind == KindConcat || !keep(e)) {
			r.dropped[e] = true
			r.regions[e.Container.Region] = true
		}
		if !r.dropped[e] && !r.dropped[e.Parent] {
			r.rep.Kept = append(r.rep.Kept, e)
		}
	}
	return f.relink(r)
}

// Recompress returns the content of the file with every entry compressed in one way:
// Stored, LZ4 or Zstd. Level is 1 (fast) to 19 (small); 0 is as small as it can be done in
// reasonable time. What cannot be decoded, such as obfuscated LTO IR, stays as it is.
func (f *File) Recompress(how Compression, level int) (*Output, *RewriteReport, error) {
	r := f.newRebuild()
	r.shrink = true
	var tasks []*task
	for _, e := range f.entries {
		if e.Err == nil && e.Parent == nil && e.Container.Kind == ContainerFatbin && !e.Obfuscated() &&
			e.Compression != OldPacking && e.Size > 0 {
			tasks = append(tasks, &task{entry: e})
			r.regions[e.Container.Region] = true
		}
	}
	list, err := forEach(tasks, func(t *task) (*payload, error) {
		data, err := t.entry.Data()
		if err != nil {
			return nil, err
		}
		packed, err := packLevel(how, data, level)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.entry.place(), err)
		}
		p := &payload{entry: t.entry, body: &Output{}, size: int64(len(data)), how: how}
		if p.body.add(packed); how == Stored {
			p.body = &Output{}
			p.body.add(slices.Clone(data))
		}
		if int64(len(packed)) >= int64(len(data)) && how != Stored { // nothing is gained
			p.how, p.body = Stored, &Output{}
			p.body.add(slices.Clone(data))
		}
		p.padded = alignUp(p.body.size, 8)
		return p, nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range list {
		r.payloads[p.entry] = p
		r.rep.Changes = append(r.rep.Changes, Change{Entry: p.entry, How: Recompressed, Old: p.entry.StoredSize, New: p.body.size})
	}
	r.list = list
	return f.relink(r)
}

func (f *File) newRebuild() *rebuild {
	return &rebuild{
		payloads: make(map[*Entry]*payload), regions: make(map[*Region]bool), dropped: make(map[*Entry]bool),
		rep: &RewriteReport{OldSize: f.Size},
	}
}

// relink puts the file together anew.
func (f *File) relink(r *rebuild) (*Output, *RewriteReport, error) {
	if why := f.ReadOnly(); why != "" || f.parent != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", f.Name, why, ErrUnsupported)
	}
	if err := f.Damage(); err != nil {
		return nil, nil, err
	}
	for c := range f.containers() {
		if err := c.damage(); err != nil && r.regions[c.Region] {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if len(r.regions) == 0 {
		out := &Output{}
		out.keep(f.data, 0, f.Size)
		r.rep.NewSize = f.Size
		return out, r.rep, nil
	}
	if f.format.relink == nil || f.Kind == FileCubin {
		return nil, nil, fmt.Errorf("%s: a file of kind %s cannot change its size: %w", f.Name, f.Kind, ErrUnsupported)
	}
	out, err := f.format.relink(f, r)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	r.rep.NewSize = out.size
	return out, r.rep, nil
}
