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

// A leftOut counts the entries of tools/list that are not valid tools, by reason.
type leftOut [len(reasons)]struct {
	n     int
	names []string // of the first entries that have one
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
	l[reason].n++
	if name != "" && len(l[reason].names) < maxNamed {
		l[reason].names = append(l[reason].names, name)
	}
	return true
}

// warnLeftOut logs the number of entries of the server's list that were left out
// and the reasons, once until they change.
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
