package site

import "strings"

// minValues is the number of values of a parameter, on one page, after which it is
// believed that the parameter changes no text.
const minValues = 3

// A learner finds the parameters of queries that change no text, such as those of
// sessions. A parameter is one of them if minValues of its values have led to the same
// text and no two to different ones, everything else in the address being equal.
type learner struct {
	groups map[string]*valueGroup // by parameter, and address without it
	varies map[string]bool        // parameters that change a text
}

// A valueGroup is the addresses that differ in one parameter only.
type valueGroup struct {
	text   string
	values map[string]bool
}

func newLearner() *learner {
	return &learner{groups: map[string]*valueGroup{}, varies: map[string]bool{}}
}

// add adds a page with its text, and returns the parameters that are known from now on
// to change no text.
func (l *learner) add(address, text string) (learned []string) {
	file, query, ok := strings.Cut(address, "?")
	if !ok {
		return nil
	}
	for p := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(p, "=")
		if l.varies[name] {
			continue
		}
		rest, _ := withoutParameters(query, func(n string) bool { return n == name })
		key := name + " " + file + "?" + rest
		g := l.groups[key]
		if g == nil {
			g = &valueGroup{text, map[string]bool{}}
			l.groups[key] = g
		}
		if g.text != text {
			l.varies[name] = true
			continue
		}
		if g.values[value] = true; len(g.values) == minValues {
			learned = append(learned, name)
		}
	}
	return learned
}
