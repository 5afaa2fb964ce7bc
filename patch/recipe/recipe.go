package recipe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/internal/ascii"
	"github.com/cupatch/cupatch/patch/rule"
	"github.com/pelletier/go-toml/v2"
)

// A Recipe is a tuning kept in a file: rules with parameters, guards and tests.
type Recipe struct {
	Name        string // of the file, for errors
	Description string
	Arch        []string // architectures that the recipe is for; empty: all
	Toolkit     []string // toolkit versions that it was made for; empty: any
	Params      []Param
	Tests       []Test

	file  fileTable
	index tomlIndex
}

// A Param is a parameter of a recipe: ${name} in match, if and set stands for its
// value.
type Param struct {
	Name    string
	Values  []string // those that it may have; the first is the default unless Default says
	Default string
	Note    string
}

// A Error is a mistake in a recipe, with its place.
type Error struct {
	Pos string // file:line:column
	Msg string
}

func (e *Error) Error() string { return e.Pos + ": " + e.Msg }

// fileTable is the form of the TOML file.
type fileTable struct {
	Description string                `toml:"description"`
	Arch        any                   `toml:"arch"`
	Toolkit     any                   `toml:"toolkit"`
	Allow       any                   `toml:"allow"`
	Param       map[string]paramTable `toml:"param"`
	Rule        []ruleTable           `toml:"rule"`
	Test        []testTable           `toml:"test"`
	Guard       guardTable            `toml:"guard"`
}

type paramTable struct {
	Values  []any  `toml:"values"`
	Default any    `toml:"default"`
	Note    string `toml:"note"`
}

type ruleTable struct {
	Name   string `toml:"name"`
	Match  string `toml:"match"`
	If     string `toml:"if"`
	Set    string `toml:"set"`
	Arch   any    `toml:"arch"`
	Last   bool   `toml:"last"`
	Expect any    `toml:"expect"`
	Note   string `toml:"note"`
}

type testTable struct {
	Name   string         `toml:"name"`
	Arch   string         `toml:"arch"`
	Kernel string         `toml:"kernel"`
	Regs   int            `toml:"registers"`
	Param  map[string]any `toml:"param"`
	Allow  any            `toml:"allow"`
	Before string         `toml:"before"`
	After  string         `toml:"after"`
	Error  string         `toml:"error"`
	Note   string         `toml:"note"`
}

type guardTable struct {
	Kernels map[string]any `toml:"kernels"`
}

// Parse reads a recipe and checks all that can be checked without knowing the
// architecture. Errors name the file, the line and the column.
func Parse(name string, data []byte) (*Recipe, error) {
	rc := &Recipe{Name: name}
	dec := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields()
	if err := dec.Decode(&rc.file); err != nil {
		return nil, tomlError(name, err)
	}
	var err error
	if rc.index, err = indexTOML(data); err != nil {
		return nil, &Error{name, err.Error()}
	}
	rc.Description = rc.file.Description
	if rc.Arch, err = rc.arches("arch", rc.file.Arch); err != nil {
		return nil, err
	}
	if rc.Toolkit, err = rc.texts("toolkit", rc.file.Toolkit); err != nil {
		return nil, err
	}
	if err := rc.readParams(); err != nil {
		return nil, err
	}
	if err := rc.checkRules(); err != nil {
		return nil, err
	}
	if err := rc.checkAllow(); err != nil {
		return nil, err
	}
	if err := rc.checkGuard(); err != nil {
		return nil, err
	}
	return rc, rc.readTests()
}

// tomlError gives an error of the TOML library its place in one line.
func tomlError(name string, err error) error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		e := missing.Errors[0]
		line, col := e.Position()
		return &Error{fmt.Sprintf("%s:%d:%d", name, line, col), fmt.Sprintf("unknown key %s", strings.Join(e.Key(), "."))}
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		line, col := de.Position()
		return &Error{fmt.Sprintf("%s:%d:%d", name, line, col), strings.TrimPrefix(de.Error(), "toml: ")}
	}
	return &Error{name, strings.TrimPrefix(err.Error(), "toml: ")}
}

// errorf returns an error at the value of a key, such as rule[2].match.
func (rc *Recipe) errorf(path, format string, args ...any) error {
	return &Error{rc.index.pos(rc.Name, path), fmt.Sprintf(format, args...)}
}

// texts reads a value that is a text or a list of texts.
func (rc *Recipe) texts(path string, v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var out []string
		for i, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, rc.errorf(fmt.Sprintf("%s[%d]", path, i), "want text, not %v", x)
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, rc.errorf(path, "want text or a list of texts, not %v", v)
}

// arches reads a value that is an architecture or a list of them.
func (rc *Recipe) arches(path string, v any) ([]string, error) {
	list, err := rc.texts(path, v)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		a, err := rule.TargetArch(s)
		if err != nil {
			return nil, rc.errorf(fmt.Sprintf("%s[%d]", path, i), "%v", err)
		}
		list[i] = a.String()
	}
	return list, nil
}

// scalar returns a parameter's value as text.
func (rc *Recipe) scalar(path string, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", rc.errorf(path, "a parameter's value is text or a number, not %v", v)
}

func (rc *Recipe) readParams() error {
	for _, name := range slices.Sorted(maps.Keys(rc.file.Param)) {
		path := "param." + name
		p := rc.file.Param[name]
		if !isParamName(name) {
			return rc.errorf(path, "a parameter's name is made of letters, digits and _")
		}
		out := Param{Name: name, Note: p.Note}
		for i, v := range p.Values {
			at := fmt.Sprintf("%s.values[%d]", path, i)
			s, err := rc.scalar(at, v)
			if err != nil {
				return err
			}
			if slices.Contains(out.Values, s) {
				return rc.errorf(at, "value %s is listed twice", s)
			}
			out.Values = append(out.Values, s)
		}
		switch {
		case p.Default != nil:
			s, err := rc.scalar(path+".default", p.Default)
			if err != nil {
				return err
			}
			if len(out.Values) > 0 && !slices.Contains(out.Values, s) {
				return rc.errorf(path+".default", "default %s is none of the values %s", s, strings.Join(out.Values, ", "))
			}
			out.Default = s
		case len(out.Values) > 0:
			out.Default = out.Values[0]
		default:
			return rc.errorf(path, "parameter %s has neither values nor a default", name)
		}
		rc.Params = append(rc.Params, out)
	}
	return nil
}

func isParamName(s string) bool {
	for i := range len(s) {
		if !ascii.Name(s[i]) {
			return false
		}
	}
	return s != "" && ascii.NameStart(s[0])
}

// checkRules checks what does not depend on parameters, and that every parameter is
// used.
func (rc *Recipe) checkRules() error {
	if len(rc.file.Rule) == 0 {
		return &Error{rc.Name + ":1:1", "no [[rule]]"}
	}
	names := map[string]bool{}
	used := map[string]bool{}
	for i, r := range rc.file.Rule {
		path := fmt.Sprintf("rule[%d]", i)
		switch {
		case r.Name == "":
			return rc.errorf(path, "a rule needs a name")
		case names[r.Name]:
			return rc.errorf(path+".name", "two rules have the name %q", r.Name)
		case r.Match == "":
			return rc.errorf(path, "rule %q has no match", r.Name)
		}
		names[r.Name] = true
		for _, part := range []struct{ key, text string }{{"match", r.Match}, {"if", r.If}, {"set", r.Set}} {
			found, err := paramsIn(part.text)
			if err != nil {
				return rc.errorf(path+"."+part.key, "rule %q: %s: %v", r.Name, part.key, err)
			}
			for _, name := range found {
				if _, ok := rc.file.Param[name]; !ok {
					return rc.errorf(path+"."+part.key, "rule %q: %s: no parameter %s; %s", r.Name, part.key, name, listParams(rc.file.Param))
				}
				used[name] = true
			}
		}
	}
	for _, p := range rc.Params {
		if !used[p.Name] {
			return rc.errorf("param."+p.Name, "no rule uses the parameter %s", p.Name)
		}
	}
	_, err := rc.Rules(nil)
	return err
}

// listParams says which parameters there are.
func listParams[V any](m map[string]V) string {
	if len(m) == 0 {
		return "the recipe has none"
	}
	return "there are: " + strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// paramsIn returns the names of the parameters that a text refers to.
func paramsIn(s string) ([]string, error) {
	var out []string
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return out, nil
		}
		name, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok || !isParamName(name) {
			return nil, fmt.Errorf("${ starts the name of a parameter: ${name}")
		}
		out = append(out, name)
		s = rest
	}
}

// values completes the values of parameters: those given, else the defaults.
func (rc *Recipe) values(given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range rc.Params {
		v, ok := given[p.Name]
		if !ok {
			v = p.Default
		}
		if len(p.Values) > 0 && !slices.Contains(p.Values, v) {
			return nil, fmt.Errorf("%s: parameter %s=%s: want one of %s", rc.Name, p.Name, v, strings.Join(p.Values, ", "))
		}
		out[p.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("%s: no parameter %s; %s", rc.Name, name, listParams(out))
		}
	}
	return out, nil
}

// Rules returns the recipe's rules with values for its parameters; those not given
// have their defaults.
func (rc *Recipe) Rules(params map[string]string) ([]*rule.Rule, error) {
	vals, err := rc.values(params)
	if err != nil {
		return nil, err
	}
	var subst []string
	for _, name := range slices.Sorted(maps.Keys(vals)) {
		subst = append(subst, "${"+name+"}", vals[name])
	}
	replace := strings.NewReplacer(subst...)
	var rules []*rule.Rule
	for i, r := range rc.file.Rule {
		path := fmt.Sprintf("rule[%d]", i)
		part := func(key, text string) rule.Part {
			return rule.Part{Text: replace.Replace(text), Pos: rc.index.pos(rc.Name, path+"."+key)}
		}
		rule, err := rule.ParseParts(rule.Parts{Name: r.Name, Number: i + 1, Last: r.Last,
			Match: part("match", r.Match), If: part("if", r.If), Set: part("set", r.Set)})
		if err != nil {
			return nil, err
		}
		if rule.Arch, err = rc.arches(path+".arch", r.Arch); err != nil {
			return nil, err
		}
		if rule.Expect, err = rc.expect(path+".expect", r.Expect); err != nil {
			return nil, err
		}
		if len(rule.Arch) == 0 {
			rule.Arch = rc.Arch
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (rc *Recipe) expect(path string, v any) (*rule.Expectation, error) {
	var s string
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		s = v
	case int64:
		s = strconv.FormatInt(v, 10)
	default:
		return nil, rc.errorf(path, "expect takes a number or text such as \">=1\"")
	}
	e, err := rule.ParseExpect(s)
	if err != nil {
		return nil, rc.errorf(path, "%v", err)
	}
	e.Pos = rc.index.pos(rc.Name, path)
	return e, nil
}

// Combinations returns every combination of the values of the recipe's parameters
// except those fixed. More than limit is an error.
func (rc *Recipe) Combinations(fixed map[string]string, limit int) ([]map[string]string, error) {
	if _, err := rc.values(fixed); err != nil {
		return nil, err
	}
	out := []map[string]string{{}}
	for _, p := range rc.Params {
		vals := p.Values
		if v, ok := fixed[p.Name]; ok {
			vals = []string{v}
		} else if len(vals) == 0 {
			vals = []string{p.Default}
		}
		if len(out)*len(vals) > limit {
			return nil, fmt.Errorf("%s: more than %d combinations of parameters", rc.Name, limit)
		}
		var next []map[string]string
		for _, m := range out {
			for _, v := range vals {
				n := map[string]string{p.Name: v}
				for k, w := range m {
					n[k] = w
				}
				next = append(next, n)
			}
		}
		out = next
	}
	return out, nil
}

// Allow returns what the recipe allows.
func (rc *Recipe) Allow() check.Allow {
	list, _ := rc.texts("allow", rc.file.Allow) // Parse has checked both
	a, _ := check.ParseAllow(strings.Join(list, ","))
	return a
}

// checkAllow checks the names of what the recipe allows.
func (rc *Recipe) checkAllow() error {
	list, err := rc.texts("allow", rc.file.Allow)
	if err != nil {
		return err
	}
	if _, err := check.ParseAllow(strings.Join(list, ",")); err != nil {
		return rc.errorf("allow", "%v", err)
	}
	return nil
}

// Wants reports whether the recipe is for a cubin's architecture.
func (rc *Recipe) Wants(c *elfx.Cubin) bool {
	return len(rc.Arch) == 0 || slices.Contains(rc.Arch, c.Arch)
}
