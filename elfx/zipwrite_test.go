package elfx

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wheel returns the path of a wheel with two libraries, one of them in a member whose
// name needs quotes, and its RECORD before the end.
func wheel(t *testing.T, more ...string) (path string, lib []byte) {
	t.Helper()
	lib = hostFile(t)
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	record := fmt.Sprintf("pkg/a.so,%s,%d\r\n\"pkg/b,c.so\",%s,%d\r\npkg/__init__.py,%s,1\r\npkg-1.dist-info/RECORD,,\r\n",
		hash(lib), len(lib), hash(lib), len(lib), hash([]byte("#")))
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	add := func(name string, method uint16, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: time.Date(2024, 5, 6, 7, 8, 10, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	add("pkg/a.so", zip.Deflate, lib)
	add("pkg-1.dist-info/RECORD", zip.Deflate, []byte(record))
	add("pkg/b,c.so", zip.Store, lib)
	add("pkg/__init__.py", zip.Deflate, []byte("#"))
	for _, name := range more {
		add(name, zip.Deflate, []byte("x"))
	}
	if err := z.SetComment("a comment"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "pkg-1-py3-none-any.whl")
	if err := os.WriteFile(path, buf.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path, lib
}

// A rewritten wheel has new members where they are changed, a RECORD that names them, and
// everything else as it was.
func TestRewriteZip(t *testing.T) {
	path, lib := wheel(t)
	want := []byte("something shorter")
	z, err := RewriteZip(path, nil, func(f *File, w io.Writer) (bool, error) {
		if !bytes.Equal(f.Data(), lib) || f.ReadOnly() != "" {
			t.Errorf("%s: %d bytes, read only %q", f.Name, len(f.Data()), f.ReadOnly())
		}
		if strings.HasSuffix(f.Name, "a.so") { // written, and then left
			_, err := w.Write(make([]byte, 1000))
			return false, err
		}
		_, err := w.Write(want)
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out bytes.Buffer
	if err := z.Write(&out); err != nil {
		t.Fatal(err)
	}
	if z.Changed() != 1 {
		t.Errorf("%d members changed, want 1", z.Changed())
	}
	written := filepath.Join(t.TempDir(), "out.whl")
	if err := os.WriteFile(written, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := z.Check(written); err != nil {
		t.Error(err)
	}
	old, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	now, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if now.Comment != "a comment" || len(now.File) != len(old.File) {
		t.Fatalf("comment %q, %d members", now.Comment, len(now.File))
	}
	sum := sha256.Sum256(want)
	for i, m := range old.File {
		n := now.File[i]
		if n.Name != m.Name || n.Method != m.Method || !n.Modified.Equal(m.Modified) || n.Flags != m.Flags {
			t.Errorf("%s: %+v, before %+v", m.Name, n.FileHeader, m.FileHeader)
		}
		a, b := unzipped(t, m), unzipped(t, n)
		switch m.Name {
		case "pkg/b,c.so":
			if !bytes.Equal(b, want) {
				t.Errorf("%s is %q", m.Name, b)
			}
		case "pkg-1.dist-info/RECORD":
			lines := strings.SplitAfter(string(a), "\r\n")
			lines[1] = fmt.Sprintf("\"pkg/b,c.so\",sha256=%s,%d\r\n", base64.RawURLEncoding.EncodeToString(sum[:]), len(want))
			if string(b) != strings.Join(lines, "") {
				t.Errorf("RECORD is\n%s", b)
			}
		default:
			if !bytes.Equal(a, b) || n.CompressedSize64 != m.CompressedSize64 {
				t.Errorf("%s changed", m.Name)
			}
		}
	}
	// The proof sees one bit.
	damaged := out.Bytes()
	at, err := now.File[2].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	damaged[at] ^= 1
	if err := os.WriteFile(written, damaged, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := z.Check(written); err == nil {
		t.Error("a damaged member passes")
	}
}

func unzipped(t *testing.T, m *zip.File) []byte {
	t.Helper()
	r, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRewriteZipRefuses(t *testing.T) {
	change := func(_ *File, w io.Writer) (bool, error) { _, err := w.Write([]byte("x")); return true, err }
	signed, _ := wheel(t, "pkg-1.dist-info/RECORD.jws")
	nested := filepath.Join(t.TempDir(), "a.zip")
	inner := makeZip(t, map[string][]byte{"a.fatbin": mustRead(t, "fatbin/lz4.fatbin")}, "a.fatbin")
	if err := os.WriteFile(nested, makeZip(t, map[string][]byte{"in.zip": inner}, "in.zip"), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{signed: "signed wheel", nested: "inside a zip file"} {
		if _, err := RewriteZip(path, nil, change); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
