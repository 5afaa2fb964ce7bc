package recipe

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A tomlIndex finds the place of a value in a TOML file by its path, such as
// rule[2].match.
type tomlIndex map[string]unstable.Position

// indexTOML walks the file's keys. Values of inline tables are found by the table.
func indexTOML(data []byte) (tomlIndex, error) {
	var p unstable.Parser
	p.Reset(data)
	idx := tomlIndex{}
	prefix := ""
	counts := map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, at := tomlKey(e.Key(), "")
			if e.Kind == unstable.ArrayTable {
				n := counts[path]
				counts[path]++
				path = fmt.Sprintf("%s[%d]", path, n)
			} else if i := counts[parentTable(path)]; i > 0 {
				parent := parentTable(path)
				path = fmt.Sprintf("%s[%d]%s", parent, i-1, path[len(parent):])
			}
			prefix = path
			idx[prefix] = p.Shape(at).Start
		case unstable.KeyValue:
			path, at := tomlKey(e.Key(), prefix)
			idx[path] = p.Shape(at).Start
			v := e.Value()
			if v.Raw.Length > 0 {
				idx[path] = p.Shape(v.Raw).Start
			}
			if v.Kind == unstable.Array {
				it := v.Children()
				for i := 0; it.Next(); i++ {
					if n := it.Node(); n.Raw.Length > 0 {
						idx[fmt.Sprintf("%s[%d]", path, i)] = p.Shape(n.Raw).Start
					}
				}
			}
		}
	}
	return idx, p.Error()
}

// parentTable returns the first name of a dotted path.
func parentTable(path string) string {
	for i := range len(path) {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return ""
}

// tomlKey joins a dotted key and returns the place of its first part.
func tomlKey(it unstable.Iterator, prefix string) (path string, at unstable.Range) {
	path = prefix
	for it.Next() {
		n := it.Node()
		if at.Length == 0 {
			at = n.Raw
		}
		if path != "" {
			path += "."
		}
		path += string(n.Data)
	}
	return path, at
}

// pos returns file:line:column of a value, or of the nearest thing around it.
func (idx tomlIndex) pos(file, path string) string {
	for {
		if p, ok := idx[path]; ok {
			return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return file
		}
		path = path[:i]
	}
}
