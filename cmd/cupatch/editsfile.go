package main

import (
	"bytes"
	"io"
	"os"
)

// An editsFile is a report or a listing: a file, of which nothing but the beginning is in
// memory, or what standard input or a pipe held.
type editsFile struct {
	io.ReadSeeker
	head []byte
	file *os.File // or nil
}

// openEdits opens a report or a listing.
func (e *env) openEdits(path string) (*editsFile, error) {
	out := &editsFile{}
	if st, err := os.Stat(path); path != "-" && err == nil && st.Mode().IsRegular() {
		if out.file, err = os.Open(path); err != nil {
			return nil, err
		}
		out.ReadSeeker = out.file
	} else {
		data, err := e.readFile(path)
		if err != nil {
			return nil, err
		}
		out.ReadSeeker = bytes.NewReader(data)
	}
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(out, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		out.Close()
		return nil, err
	}
	out.head = head[:n]
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// Close closes the file.
func (f *editsFile) Close() {
	if f.file != nil {
		f.file.Close()
	}
}
