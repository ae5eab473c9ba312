package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"knowhow/internal/spell"
)

// maxNamed is how many of the entries left out for one reason are named.
const maxNamed = 5

// reasons are why an entry of tools/list cannot be a tool.
var reasons = [...]string{"no object", "a member of a wrong type", "no name", "a name that came before"}

// A leftOut counts the entries of tools/list that are no tools.
type leftOut struct {
	n      int
	counts [len(reasons)]int
	names  [len(reasons)][]string // of the first entries, where they have one
}

// refuse reports whether an entry cannot be a tool, and counts it. name and err
// are what reading it gave, seen the names before it.
func (l *leftOut) refuse(raw json.RawMessage, name string, err error, seen map[string]bool) bool {
	reason := -1
	switch {
	case !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")):
		reason, name = 0, ""
	case err != nil:
		reason = 1
	case name == "":
		reason = 2
	case seen[name]:
		reason = 3
	default:
		return false
	}
	l.n++
	l.counts[reason]++
	if name != "" && len(l.names[reason]) < maxNamed {
		l.names[reason] = append(l.names[reason], name)
	}
	return true
}

// describe says how many entries were left out and why, "" for none. show makes
// a name fit to be shown.
func (l *leftOut) describe(show func(string) string) string {
	var all []string
	for i, n := range l.counts {
		if n == 0 {
			continue
		}
		var names []string
		for _, name := range l.names[i] {
			names = append(names, show(name))
		}
		text := fmt.Sprintf("%s: %d", reasons[i], n)
		switch {
		case len(names) > 0 && n > len(names):
			text += " (" + strings.Join(names, ", ") + ", …)"
		case len(names) > 0:
			text += " (" + strings.Join(names, ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// warnLeftOut says what the server's list has that is no tool, once for as long
// as the list is wrong in the same way.
func (s *server) warnLeftOut(ctx context.Context, l *leftOut) {
	text := l.describe(func(name string) string { return spell.Quote(s.redact.Text(name)) })
	s.mu.Lock()
	known := text == s.warned
	s.warned = text
	s.mu.Unlock()
	if known {
		return
	}
	if l.n > 0 {
		s.log.WarnContext(ctx, fmt.Sprintf("Left out %s of the tools of %s: %s", plural(l.n, "entry", "entries"), s.cfg.ID, text))
	}
}
