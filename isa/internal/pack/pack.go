// Package pack turns what package isa knows, text files, into the form in which the
// program carries it.
package pack

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Index is the name of the index of the instruction tables, which isa.IndexTables makes.
const Index = "index"

// folder is the folder, below that of the instruction tables, of what instructions read
// and write.
const folder = "effects"

// Texts returns the instruction tables in the folder dir by the names of their
// architectures.
func Texts(dir string) (map[string]string, error) {
	texts := map[string]string{}
	err := each(dir, func(arch string, text []byte) { texts[arch] = string(text) })
	return texts, err
}

// Effects returns the packed form of the effects below the folder dir: for each
// effects/SM.txt a file SM.effects.zst.
func Effects(dir string) (map[string][]byte, error) {
	// One block at a time, so that the result does not depend on the machine.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	files := map[string][]byte{}
	err = each(filepath.Join(dir, folder), func(arch string, text []byte) { files[arch+".effects.zst"] = enc.EncodeAll(text, nil) })
	return files, err
}

// each calls fn with each text in dir and the name of its architecture.
func each(dir string, fn func(arch string, text []byte)) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fn(strings.TrimSuffix(filepath.Base(name), ".txt"), text)
	}
	return nil
}
