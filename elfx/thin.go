package elfx

import "fmt"

// BuildFatbin returns fatbins with the given entries and no others: one container for
// each container that they come from, in the order given. Headers and payloads are
// those of the entries; cubins that stood by themselves, and parts of a concatenation,
// get a header of their own and are stored.
func BuildFatbin(entries []*Entry) (*Output, error) {
	out := &Output{}
	for i := 0; i < len(entries); {
		body := &Output{}
		c := entries[i].Container
		for ; i < len(entries) && entries[i].Container == c; i++ {
			if err := appendEntry(body, entries[i]); err != nil {
				return nil, err
			}
		}
		out.add(fatbinHeader(body.size))
		out.append(body)
	}
	return out, nil
}

// appendEntry adds one entry with its header.
func appendEntry(body *Output, e *Entry) error {
	if e.Err != nil {
		return fmt.Errorf("%s: %w", e.place(), e.Err)
	}
	if e.Parent == nil && e.Container.Kind == ContainerFatbin {
		data := e.File.root().data
		body.add(data[e.Offset : e.PayloadOffset+e.PayloadSize])
		return nil
	}
	data, err := e.Data()
	if err != nil {
		return err
	}
	padded := alignUp(int64(len(data)), 8)
	body.add(e.plainHeader(padded))
	body.add(data)
	body.zeros(padded - int64(len(data)))
	return nil
}

// plainHeader returns a header for the entry's bytes stored as they are.
func (e *Entry) plainHeader(padded int64) []byte {
	name := []byte(e.Name)
	size := int64(entryHeaderSize)
	if len(name) > 0 {
		size = alignUp(size+int64(len(name))+1, 8)
	}
	kind := e.RawKind
	flags := e.Flags &^ (FlagLZ4 | FlagZstd | FlagOldPacking)
	if e.Container.Kind == ContainerCubin {
		kind = rawELF
		flags = Flag64Bit | FlagLinux
		if e.Suffix == "a" {
			flags |= FlagAccel
		}
	}
	h := make([]byte, size)
	le.PutUint16(h, kind)
	le.PutUint16(h[2:], 0x0101)
	le.PutUint32(h[4:], uint32(size))
	le.PutUint64(h[offPayloadSize:], uint64(padded))
	le.PutUint16(h[24:], uint16(e.Minor))
	le.PutUint16(h[26:], uint16(e.Major))
	le.PutUint32(h[28:], uint32(e.SM))
	if len(name) > 0 {
		le.PutUint32(h[32:], entryHeaderSize)
		le.PutUint32(h[36:], uint32(len(name)))
		copy(h[entryHeaderSize:], name)
	}
	le.PutUint64(h[offFlags:], flags)
	return h
}
