package markup

import (
	"regexp"
	"strings"
)

// set returns the set of the words of s.
func set(s string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(s) {
		words[word] = true
	}
	return words
}

// table returns the words of s by the words before them.
func table(s string) map[string]string {
	words := strings.Fields(s)
	t := make(map[string]string, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		t[words[i]] = words[i+1]
	}
	return t
}

// match returns the match of p in s and its groups, if applies is set.
func match(p *regexp.Regexp, s string, applies bool) []string {
	if !applies {
		return nil
	}
	return p.FindStringSubmatch(s)
}

// replace replaces the matches of p if s contains one of marks, which every
// match contains. Looking for them is much faster.
func replace(p *regexp.Regexp, s, with string, marks ...string) string {
	for _, m := range marks {
		if strings.Contains(s, m) {
			return p.ReplaceAllString(s, with)
		}
	}
	return s
}

// replaceFunc replaces the matches of p by what with returns for a match and its
// groups, if s contains mark.
func replaceFunc(p *regexp.Regexp, s, mark string, with func(m []string) string) string {
	if !strings.Contains(s, mark) {
		return s
	}
	return p.ReplaceAllStringFunc(s, func(m string) string { return with(p.FindStringSubmatch(m)) })
}
