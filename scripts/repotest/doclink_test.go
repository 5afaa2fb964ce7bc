package repotest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docLink is a link to a name of the same package, or of another package of this module.
var docLink = regexp.MustCompile(`\[((?:[a-z][a-z0-9]*\.)?[A-Z]\w*[a-z]\w*(?:\.[A-Z]\w*)?)\]`)

// packageDocs returns the documentation of every package of the module, by folder.
func packageDocs(t *testing.T) map[string]*doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	sources := map[string][]*ast.File{}
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		sources[path.Dir(name)] = append(sources[path.Dir(name)], f)
	}
	out := map[string]*doc.Package{}
	for dir, list := range sources {
		p, err := doc.NewFromFiles(fset, list, module+dir)
		if err != nil {
			t.Fatal(err)
		}
		out[dir] = p
	}
	return out
}

// names adds the exported names of a package to set, methods and fields as Type.Name.
func names(p *doc.Package, set map[string]bool) {
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, n := range v.Names {
				set[n] = true
			}
		}
	}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			set[prefix+f.Name] = true
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		set[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		ast.Inspect(typ.Decl, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				for _, id := range f.Names {
					set[typ.Name+"."+id.Name] = true
				}
			}
			return true
		})
	}
}

// TestDocLinks checks that links in doc comments name something that exists.
func TestDocLinks(t *testing.T) {
	docs := packageDocs(t)
	known := map[string]map[string]bool{} // by the name of a package; all of that name
	for _, p := range docs {
		if known[p.Name] == nil {
			known[p.Name] = map[string]bool{}
		}
		names(p, known[p.Name])
	}
	for dir, p := range docs {
		check := func(text string) {
			for _, m := range docLink.FindAllStringSubmatch(text, -1) {
				pkg, name := p.Name, m[1]
				if head, tail, ok := strings.Cut(name, "."); ok && known[head] != nil {
					pkg, name = head, tail
				} else if ok && head == strings.ToLower(head) {
					continue // the standard library
				}
				if !known[pkg][name] {
					t.Errorf("%s: the comment links [%s], which does not exist", dir, m[1])
				}
			}
		}
		check(p.Doc)
		for _, f := range p.Funcs {
			check(f.Doc)
		}
		for _, typ := range p.Types {
			check(typ.Doc)
			for _, f := range append(typ.Funcs, typ.Methods...) {
				check(f.Doc)
			}
			ast.Inspect(typ.Decl, func(n ast.Node) bool {
				if f, ok := n.(*ast.Field); ok {
					check(f.Doc.Text())
					check(f.Comment.Text())
				}
				return true
			})
		}
	}
}
