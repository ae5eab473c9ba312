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

// A leftOut counts the entries of tools/list that are no tools, by reason.
type leftOut struct {
	noObjects, unreadable, nameless, repeated excluded
}

// excluded are the entries left out for one reason.
type excluded struct {
	n     int
	names []string // of the first
}

// add counts an entry. Its name is "" where it has none.
func (e *excluded) add(name string) {
	e.n++
	if name != "" && len(e.names) < maxNamed {
		e.names = append(e.names, name)
	}
}

// refuse reports whether an entry cannot be a tool, and counts it. name and err
// are what reading it gave, seen the names before it.
func (l *leftOut) refuse(raw json.RawMessage, name string, err error, seen map[string]bool) bool {
	switch {
	case !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")):
		l.noObjects.add("")
	case err != nil:
		l.unreadable.add(name)
	case name == "":
		l.nameless.add("")
	case seen[name]:
		l.repeated.add(name)
	default:
		return false
	}
	return true
}

// describe says how many entries were left out and why, "" for none. show makes
// a name fit to be shown.
func (l *leftOut) describe(show func(string) string) string {
	var reasons []string
	for _, r := range []struct {
		excluded
		why string
	}{
		{l.noObjects, "that are no object"},
		{l.unreadable, "with members of a wrong type"},
		{l.nameless, "without a name"},
		{l.repeated, "with a name that came before"},
	} {
		if r.n == 0 {
			continue
		}
		reason := fmt.Sprintf("%d %s", r.n, r.why)
		if len(r.names) > 0 {
			shown := make([]string, 0, len(r.names)+1)
			for _, name := range r.names {
				shown = append(shown, show(name))
			}
			if r.n > len(r.names) {
				shown = append(shown, "…")
			}
			reason += " (" + strings.Join(shown, ", ") + ")"
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, "; ")
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
	if n := l.noObjects.n + l.unreadable.n + l.nameless.n + l.repeated.n; n > 0 {
		s.log.WarnContext(ctx, fmt.Sprintf("Left out %d entries of the tools of %s: %s", n, s.cfg.ID, text))
	}
}
