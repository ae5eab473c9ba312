package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"knowhow/internal/spell"
)

// maxNamed is the number of entries that are named for each reason.
const maxNamed = 5

// reasons are the reasons why an entry of tools/list is not a valid tool.
var reasons = [...]string{"not an object", "a member of a wrong type", "no name", "a name that occurred before"}

// A leftOut counts the entries of tools/list that are not valid tools.
type leftOut struct {
	n      int
	counts [len(reasons)]int
	names  [len(reasons)][]string // of the first entries that have one
}

// refuse reports whether an entry is not a valid tool, and counts it. name and
// err are the results of decoding it; seen contains the previous names.
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

// describe returns the number of entries that were left out and the reasons, or
// "" if there are none. show makes a name printable.
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

// warnLeftOut logs which entries are not valid tools, once until they change.
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
