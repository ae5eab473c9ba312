package mcpsettings

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// maxTimeout is the longest time limit that a file may set.
const maxTimeout = 7 * 24 * time.Hour

// text returns a string.
func (d *decoder) text(v node, path string) (string, error) {
	if v.kind != text {
		return "", d.src.mismatch(v, path, "a string")
	}
	return v.text, nil
}

// texts returns a list of strings.
func (d *decoder) texts(v node, path string) ([]string, error) {
	if v.kind != list {
		return nil, d.src.mismatch(v, path, "a list of strings")
	}
	var all []string
	for i, n := range v.items {
		s, err := d.text(n, item(path, i))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// table adds the members of an object to into. Numbers, true and false become
// text, as in VS Code; null leaves a name out.
func (d *decoder) table(into map[string]string, v node, path string) (map[string]string, error) {
	if v.kind != object {
		return nil, d.src.mismatch(v, path, "an object with strings")
	}
	if into == nil && len(v.members) > 0 {
		into = map[string]string{}
	}
	for _, m := range v.members {
		at := key(path, m.name)
		if _, twice := into[m.name]; twice {
			return nil, d.src.fail(m.at, at, "given twice; remove one")
		}
		if c := bad(m.name, "="); c != "" || m.name == "" {
			return nil, d.src.fail(m.at, at, "the name must not be empty or have an equals sign or a control character")
		}
		switch m.value.kind {
		case null:
		case text, number:
			into[m.name] = m.value.text
		case boolean:
			into[m.name] = strconv.FormatBool(m.value.truth)
		default:
			return nil, d.src.mismatch(m.value, at, "a string")
		}
	}
	return into, nil
}

// variables reads an object whose values name environment variables.
func (d *decoder) variables(v node, path string) (map[string]string, error) {
	names, err := d.table(nil, v, path)
	for _, k := range slices.Sorted(maps.Keys(names)) {
		if !isName(names[k]) {
			return nil, d.src.fail(v.at, key(path, k), "want the name of an environment variable")
		}
	}
	return names, err
}

// variable returns the name of an environment variable. A value that is none
// may be the secret itself and is not shown.
func (d *decoder) variable(v node, path string) (string, error) {
	name, err := d.text(v, path)
	if err == nil && !isName(name) {
		err = d.src.fail(v.at, path, "want the name of an environment variable, not a value")
	}
	return name, err
}

// timeout reads a time limit. Gemini CLI, OpenCode and Claude Code give
// milliseconds, Cline and Roo Code seconds, 1 to 3600, under the same key.
func (d *decoder) timeout(v node, path, name string) (time.Duration, error) {
	if v.kind == object { // OpenCode 2
		v, _ = v.get("request")
		if v.kind == "" {
			return 0, nil
		}
	}
	n, err := strconv.ParseFloat(v.text, 64)
	if v.kind != number || err != nil || !(n >= 0) {
		return 0, d.src.mismatch(v, path, "a number that is not negative")
	}
	unit := time.Millisecond
	if name == "tool_timeout_sec" || n <= 3600 && d.settings.Dialect != "gemini" && d.settings.Dialect != "opencode" {
		unit = time.Second
	}
	if n > float64(maxTimeout/unit) {
		return 0, d.src.fail(v.at, path, "want at most %d, which is a week", maxTimeout/unit)
	}
	return time.Duration(n * float64(unit)), nil
}
