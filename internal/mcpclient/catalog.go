package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient/redact"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

const (
	maxPages = 100
	maxTools = 10_000
	maxList  = 64 << 20               // bytes of all pages
	maxNamed = 5                      // entries of a list that are named in a warning
	quiet    = 500 * time.Millisecond // time after which a change of the tools is reported
)

// tools returns the catalog. One caller at a time fetches it.
func (s *server) tools(ctx context.Context) (*Catalog, error) {
	if c := s.known(); c != nil {
		return c, nil
	}
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, s.gaveUp("tools/list", context.Cause(ctx))
	}
	if c := s.known(); c != nil {
		return c, nil
	}
	var c *Catalog
	err := s.use(ctx, "tools/list", func(sess *session) (unsent bool, err error) {
		s.mu.Lock()
		intro, changes := s.intro, s.changes
		s.mu.Unlock()
		if c, unsent, err = s.list(ctx, sess, intro); err == nil {
			s.keep(c, sess, changes)
		}
		return unsent, err
	})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, fmt.Sprintf("Fetched %d tools from %s", len(c.Tools), s.cfg.ID))
	return c, nil
}

// plural counts things in English.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// known returns the catalog if it is cached and no change was reported.
func (s *server) known() *Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog
}

// keep caches a catalog for later callers, unless it is already outdated.
func (s *server) keep(c *Catalog, sess *session, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = len(c.Tools)
	if s.sess == sess && s.changes == changes {
		s.catalog = c
	}
}

// list fetches all pages.
func (s *server) list(ctx context.Context, sess *session, intro *introduction) (c *Catalog, unsent bool, err error) {
	c = &Catalog{
		Server: s.cfg.ID, Instructions: intro.Instructions,
		TaskCalls: len(intro.Capabilities.Tasks.Requests.Tools.Call) > 0,
	}
	seen, cursors, size := map[string]bool{}, map[string]bool{}, 0
	var invalid []string
	var params json.RawMessage
	for page := 0; ; page++ {
		result, unsent, err := sess.call(ctx, "tools/list", params, s.timeout())
		if remote, ok := errors.AsType[*RemoteError](err); ok && remote.Code == codeNoMethod &&
			intro.Capabilities.Tools == nil {
			return c, false, nil // it did not announce that it has tools
		}
		if err != nil {
			return nil, unsent, err
		}
		size += len(result)
		cursor, err := s.addPage(c, seen, &invalid, result)
		switch {
		case err != nil:
		case cursor == "":
			if n := len(invalid); n > 0 {
				s.log.WarnContext(ctx, fmt.Sprintf("Left out %s of the tools of %s: %s",
					plural(n, "entry", "entries"), c.Server, strings.Join(invalid[:min(n, maxNamed)], "; ")))
			}
			slices.SortFunc(c.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
			return c, false, nil
		case cursors[cursor]:
			err = errors.New("the list does not end: a cursor was repeated")
		case page+1 == maxPages || len(seen) > maxTools || size > maxList:
			err = fmt.Errorf("the list is too long: more than %d pages, %d tools or %d MiB", maxPages, maxTools,
				maxList>>20)
		}
		if err != nil {
			return nil, false, &ServerError{Server: s.cfg.ID, Op: "tools/list", Stderr: sess.lastWords(), Err: err}
		}
		cursors[cursor] = true
		if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
			return nil, false, err
		}
	}
}

// addPage adds the permitted tools of a page to the catalog and returns the
// cursor of the next page. Entries that cannot be called, and those with a name
// that occurred before, are described in invalid.
func (s *server) addPage(c *Catalog, seen map[string]bool, invalid *[]string, result json.RawMessage) (
	cursor string, err error) {
	var page struct {
		Tools  []json.RawMessage `json:"tools"`
		Cursor string            `json:"nextCursor"`
	}
	if err := json.Unmarshal(result, &page); err != nil {
		return "", fmt.Errorf("the list cannot be read: %s", redact.Escape(err.Error()))
	}
	for _, raw := range page.Tools {
		var t struct {
			Tool
			Execution struct {
				TaskSupport string `json:"taskSupport"`
			} `json:"execution"`
		}
		why := ""
		switch err := json.Unmarshal(raw, &t); {
		case err != nil:
			why = "is not an object with members of the right types"
		case t.Name == "":
			why = "has no name"
		case seen[t.Name]:
			why = "has a name that occurred before"
		}
		if why != "" {
			what := "an entry"
			if t.Name != "" {
				what = spell.Quote(s.redact.Text(t.Name))
			}
			*invalid = append(*invalid, what+" "+why)
			continue
		}
		seen[t.Name] = true
		if len(seen) > maxTools {
			return "", fmt.Errorf("the list is too long: more than %d tools", maxTools)
		}
		if s.offers(t.Name) {
			t.TaskSupport = t.Execution.TaskSupport
			c.Tools = append(c.Tools, t.Tool)
		}
	}
	return page.Cursor, nil
}

// permits refuses a call of a tool that the settings leave out.
func (s *server) permits(method string, params json.RawMessage) error {
	if method != "tools/call" || len(s.cfg.Include) == 0 && len(s.cfg.Exclude) == 0 {
		return nil
	}
	var p struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return &errkind.Argument{Name: "params", Want: "a JSON object with the name of a tool"}
	}
	if !s.offers(p.Name) {
		return fmt.Errorf("the settings of server %q leave out its tool %s: %w", s.cfg.ID, spell.Quote(p.Name),
			errkind.Denied)
	}
	return nil
}

// offers reports whether the settings permit a tool: Include is empty or a
// pattern in it matches, and no pattern in Exclude does.
func (s *server) offers(tool string) bool {
	matches := func(p *regexp.Regexp) bool { return p.MatchString(tool) }
	return (len(s.include) == 0 || slices.ContainsFunc(s.include, matches)) && !slices.ContainsFunc(s.exclude, matches)
}

// patterns compiles patterns in which * matches any text and ? any character.
func patterns(globs []string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, glob := range globs {
		expression := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
		all = append(all, regexp.MustCompile(`(?s)^`+expression+`$`))
	}
	return all
}

// listChanged drops the cached catalog and reports the change. Changes in quick
// succession are reported once.
func (s *server) listChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalog = nil
	s.changes++
	if s.pool.o.ToolsChanged != nil && !s.reporting {
		s.reporting = s.pool.run(s.reportChange)
	}
}

// reportChange reports a change after a while, together with the changes until
// then.
func (s *server) reportChange() {
	select {
	case <-time.After(quiet):
	case <-s.pool.stop:
		return
	}
	s.mu.Lock()
	s.reporting = false
	s.mu.Unlock()
	s.pool.o.ToolsChanged(s.cfg.ID)
}
