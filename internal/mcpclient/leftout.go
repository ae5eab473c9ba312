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

// A leftOut counts the entries of tools/list that are no tools, by reason.
type leftOut [len(reasons)]struct {
	n     int
	names []string // of the first entries that have one
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
	l[reason].n++
	if name != "" && len(l[reason].names) < maxNamed {
		l[reason].names = append(l[reason].names, name)
	}
	return true
}

// warnLeftOut logs how many entries of the server's list were left out and why,
// once for as long as the list is wrong in the same way.
func (s *server) warnLeftOut(ctx context.Context, l *leftOut) {
	total := 0
	var all []string
	for i, entries := range l {
		if entries.n == 0 {
			continue
		}
		total += entries.n
		text := fmt.Sprintf("%s: %d", reasons[i], entries.n)
		var names []string
		for _, name := range entries.names {
			names = append(names, spell.Quote(s.redact.Text(name)))
		}
		if len(names) > 0 && entries.n > len(names) {
			names = append(names, "…")
		}
		if len(names) > 0 {
			text += " (" + strings.Join(names, ", ") + ")"
		}
		all = append(all, text)
	}
	text := strings.Join(all, "; ")
	s.mu.Lock()
	known := text == s.warned
	s.warned = text
	s.mu.Unlock()
	if total > 0 && !known {
		s.log.WarnContext(ctx, fmt.Sprintf("Left out %s of the tools of %s: %s", plural(total, "entry", "entries"), s.cfg.ID, text))
	}
}
