package site

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/fetch"
)

// Options configure a Mirror.
type Options struct {
	Version string // of the program, for the user agent; "" if it is not known
	Hosts   *Hosts // shared by the mirrors of a process; required

	// Dial and Resolver are for tests; nil means package net.
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Resolver fetch.Resolver
}

// Limits on one answer.
const (
	maxBody     = 20 << 20 // bytes, uncompressed
	requestTime = 30 * time.Second
)

// A Mirror is the copy of a site in a folder. One process at a time may have it open,
// and its methods must not be called concurrently. The documents of a [Snapshot] may
// be read at any time.
type Mirror struct {
	site  Site
	state *state
	rules rules
	fetch *fetch.Fetcher
	host  *host
}

// Open opens the mirror in the folder dir, which is created. Close must be called.
func Open(dir string, site Site, o Options) (*Mirror, error) {
	agent := agent
	if o.Version != "" {
		agent += "/" + o.Version
	}
	f, err := fetch.New(fetch.Options{
		AllowedHosts: []string{site.host}, // no other one is reached
		MaxBytes:     maxBody, Timeout: requestTime,
		UserAgent: agent + " (+https://github.com/knowhow-mcp/knowhow/blob/main/docs/sources.md)",
		Dial:      o.Dial, Resolver: o.Resolver,
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", site, err)
	}
	s, err := openState(dir)
	if err != nil {
		return nil, err
	}
	return &Mirror{site: site, state: s, fetch: f, host: o.Hosts.host(site.host)}, nil
}

// Close ends the use of the mirror. What it has is on disk already.
func (m *Mirror) Close() {
	m.state.close()
	m.fetch.Close()
}

// A Reason is the reason why a page is no document. Its text follows a count, as in
// "12 forbidden by robots.txt".
type Reason string

// Reasons, besides those of Answered.
const (
	Forbidden   Reason = "forbidden by robots.txt"
	Unanswered  Reason = "not answered by the server"
	Outside     Reason = "redirected outside of the source"
	Circle      Reason = "redirected in a circle"
	TooLarge    Reason = "too large for a page"
	OverLimit   Reason = "over the maximum number of pages"
	OverSize    Reason = "over the maximum size of all pages"
	TooDeep     Reason = "more than 100 links away"
	TooMany     Reason = "variants of a page by their queries"
	Excluded    Reason = "excluded by patterns"
	NotIncluded Reason = "not matched by the patterns to include"
	NoText      Reason = "of a kind without text"
	Empty       Reason = "without content"
)

const answered = "answered with status "

// Answered returns the reason of a page that was answered with a status.
func Answered(status int) Reason { return Reason(answered + strconv.Itoa(status)) }

// Refused reports whether a reason is that of pages that the server has, but did not send.
// Pages that do not exist are not refused: sites have links that lead nowhere.
func Refused(r Reason) bool {
	status, ok := strings.CutPrefix(string(r), answered)
	return r == Unanswered || ok && status != "404" && status != "410"
}

// IsReason reports whether a text is one of the reasons of this package.
func IsReason(s string) bool {
	switch Reason(s) {
	case Forbidden, Unanswered, Outside, Circle, TooLarge, OverLimit, OverSize, TooDeep, TooMany, Excluded, NotIncluded, NoText, Empty:
		return true
	}
	return strings.HasPrefix(s, answered)
}

// A Left is a page that is no document.
type Left struct {
	Path   string `json:"path"` // as of a document
	Reason Reason `json:"reason"`
}

// RoundOptions configure a round.
type RoundOptions struct {
	Include, Exclude []string // patterns of .gitignore, on the paths of documents
	MaxPages         int      // 0 means DefaultMaxPages

	// Report is called with the number of pages that were visited, and of those known.
	Report func(done, known int)

	// Changed is called from time to time after pages have changed, but not at the end.
	// The next page is asked for after it has returned.
	Changed func(ctx context.Context, s *Snapshot) error
}

// DefaultMaxPages is the maximum number of pages of a site without another one.
const DefaultMaxPages = 5000

// Due returns when the next round is due: every after the last one began, or at once if
// that did not end, found no document, or had other options.
func (m *Mirror) Due(o RoundOptions, every time.Duration) time.Time {
	r := m.state.round
	if !r.Ended || r.Rules != o.key() || m.Snapshot(o).Len() == 0 {
		return time.Time{}
	}
	return r.Began.Add(every)
}

// Complete reports whether a round has ended: whether the mirror has all pages, as they
// were then.
func (m *Mirror) Complete() bool { return m.state.round.Number > 1 || m.state.round.Ended }

func (o RoundOptions) key() string { return rulesKey(o.Include, o.Exclude, o.MaxPages) }

// Left returns why pages are no documents, in order, as of the end of the last round.
func (m *Mirror) Left() []Left { return m.state.left }

// Snapshot returns the documents by the options of a round.
func (m *Mirror) Snapshot(o RoundOptions) *Snapshot {
	m.rules = newRules(o.Include, o.Exclude)
	return m.snapshot()
}
