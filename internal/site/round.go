package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fetch"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Limits on a round.
const (
	maxDepth      = 100 // links from the first page
	maxHops       = 5   // redirects that lead to a page
	maxVariants   = 100 // addresses that differ in their queries only
	maxUnanswered = 10  // requests in a row without an answer, see giveUp
	goneRounds    = 2   // in which a page has to be gone before it is removed

	maxKnown    = 100_000 // addresses, besides knownPer for each page of the limit
	knownPer    = 20
	requestsPer = 4       // requests for each page of the limit, and some more
	bytesPer    = 2 << 20 // on disk, for each page of the limit
)

// Times between two calls of Changed.
const (
	changedPages = 50
	changedEvery = 5 * time.Second
	changedShare = 10 // ratio of the time between two calls to that of a call
)

// A round is one run of [Mirror.Round].
type round struct {
	*Mirror
	o      RoundOptions
	key    string // of o as it was given
	robots robots
	number int

	queue    queue
	again    []visit           // that failed, for the end of the round
	seen     map[string]bool   // addresses that were added to queue, or left out
	left     map[string]Reason // why some of them are not visited
	variants map[string]int    // number of addresses with a query, by address without it
	listed   map[string]time.Time
	learner  *learner
	texts    map[string]bool // of the pages of the round

	done       int // visits
	pages      int // of different texts
	requests   int
	unanswered int   // in a row
	size       int64 // of all pages of the round, in bytes

	changed     int // pages since the last call of Changed
	changedAt   time.Time
	changedRest time.Duration
}

// Round visits all pages once, and continues a round that was interrupted.
//
// If the server cannot be reached, or forbids all requests for now, nothing is removed
// and the error is of kind errkind.Unavailable. If there is no document at the end of
// a round, the error is of kind errkind.NotFound and says what became of the first page.
func (m *Mirror) Round(ctx context.Context, o RoundOptions) error {
	key := o.key()
	if o.MaxPages <= 0 {
		o.MaxPages = DefaultMaxPages
	}
	if o.Report == nil {
		o.Report = func(int, int) {}
	}
	m.rules = newRules(o.Include, o.Exclude)
	r := &round{Mirror: m, o: o, key: key, seen: map[string]bool{}, left: map[string]Reason{}, variants: map[string]int{},
		listed: map[string]time.Time{}, learner: newLearner(), texts: map[string]bool{}, changedAt: time.Now()}
	if err := r.readRobots(ctx); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.seed(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	return r.end()
}

// begin begins a round, unless the last one has not ended.
func (r *round) begin() error {
	s := r.state
	if s.round.Ended || s.round.Number == 0 {
		for a, p := range s.pages { // they are found again, if there is a link to them
			if p.Fetched.IsZero() {
				delete(s.pages, a)
			}
		}
		s.round = roundState{Number: s.round.Number + 1, Began: time.Now().UTC()}
		if err := s.compact(); err != nil {
			return err
		}
	}
	r.number = s.round.Number
	return nil
}

// end ends a round.
func (r *round) end() error {
	s := r.state
	left := r.leftOut()
	if err := s.add(entry{Left: &left}); err != nil {
		return err
	}
	found := repeated(r.sample)
	if farFrom(found, s.repeated) {
		if err := s.add(entry{Repeated: &found}); err != nil {
			return err
		}
	}
	for a, p := range s.pages { // that this round did not visit: over the limit, forbidden, excluded
		if p.Round != r.number {
			if err := r.forget(a); err != nil {
				return err
			}
		}
	}
	ended := s.round
	ended.Ended, ended.Rules = true, r.key
	if err := s.add(entry{Round: &ended}); err != nil {
		return err
	}
	if err := s.removeOrphans(); err != nil {
		return err
	}
	if r.snapshot().Len() == 0 {
		return r.nothing()
	}
	return nil
}

// sample yields up to maxSample pages in HTML that are documents, the same ones as long
// as they exist.
func (r *round) sample(yield func([]byte) bool) {
	s := r.snapshot()
	var files []string
	for file, d := range s.documents {
		if isHTML(d.MediaType) {
			files = append(files, file)
		}
	}
	slices.Sort(files) // names are hashes
	for _, file := range files[:min(len(files), maxSample)] {
		if !yield(r.state.body(r.state.pages[s.documents[file].URL])) {
			return
		}
	}
}

// farFrom reports whether two sorted lists differ in more than a tenth.
func farFrom(a, b []uint64) bool {
	both := 0
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			both++
		}
	}
	return 10*(len(a)+len(b)-2*both) > len(a)+len(b)-both
}

// readRobots reads robots.txt. Without one, everything is allowed; if it cannot be
// read for now, nothing is (RFC 9309, section 2.3.1).
func (r *round) readRobots(ctx context.Context) error {
	a := r.site.root() + "robots.txt"
	resp, err := r.file(ctx, a)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errkind.TooLarge):
		return nil // nobody reads it
	case err != nil:
		return fmt.Errorf("reading %s, without which no page is read: %w", a, err)
	case resp.Status == http.StatusOK:
		r.robots = parseRobots(resp.Data)
	case resp.Status/100 == 4 && resp.Status != http.StatusTooManyRequests:
	default:
		return fmt.Errorf("reading %s, without which no page is read: the server answered with status %d: %w", a,
			resp.Status, errkind.Unavailable)
	}
	return nil
}

// file returns the answer to a request for a file about the site. It follows
// redirects on the host.
func (r *round) file(ctx context.Context, a string) (*fetch.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := r.request(ctx, fetch.Request{URL: a})
		if err != nil || resp.Location == "" || hops == maxHops {
			return resp, err
		}
		a = resp.Location
	}
}

// request sends a request when it is its turn.
func (r *round) request(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	if err := r.host.acquire(ctx, r.robots.delay); err != nil {
		return nil, err
	}
	defer r.host.release()
	resp, err := r.fetch.Do(ctx, req)
	if err == nil {
		switch wait := httpclient.RetryAfter(resp.Header); {
		case wait > 0 && resp.Status != http.StatusOK:
			r.host.pause(wait)
		case resp.Status == http.StatusTooManyRequests:
			r.host.pause(busyPause)
		}
	}
	return resp, err
}

// seed adds the first page, the pages that are known, and those that the files about
// the site name.
func (r *round) seed(ctx context.Context) error {
	r.add(visit{address: r.site.start})
	known := make([]*page, 0, len(r.state.pages))
	for _, a := range sorted(r.state.pages) {
		if p := r.state.pages[a]; p.Round == r.number || !p.Fetched.IsZero() {
			known = append(known, p)
		}
	}
	slices.SortStableFunc(known, func(p, q *page) int { return p.Depth - q.Depth })
	for _, p := range known {
		if a := r.withoutIgnored(p.Address); a == p.Address || !r.known(a) {
			r.enqueue(visit{address: p.Address, depth: p.Depth})
		}
	}
	tops := []string{r.site.scope}
	if root := r.site.root(); root != r.site.scope {
		tops = append(tops, root)
	}
	var sitemaps []string
	base, _ := url.Parse(r.site.root())
	for _, s := range r.robots.sitemaps {
		if a, ok := address(base, s); ok {
			sitemaps = append(sitemaps, a)
		}
	}
	for _, top := range tops {
		for _, name := range []string{"llms.txt", "llms-full.txt"} {
			if err := r.readList(ctx, top+name); err != nil {
				return err
			}
		}
		sitemaps = append(sitemaps, top+"sitemap.xml")
	}
	return r.readSitemaps(ctx, sitemaps)
}

// readList adds the pages to which a text in Markdown about the site has links.
func (r *round) readList(ctx context.Context, a string) error {
	r.seen[a] = true // it is no document
	resp, err := r.about(ctx, a)
	if err != nil || resp == nil || isHTML(mediaType(resp)) {
		return err
	}
	base, _ := url.Parse(a)
	for _, link := range markdownLinks(base, resp.Data) {
		r.add(visit{address: link, depth: 1})
	}
	return nil
}

// readSitemaps adds the pages in sitemaps, and in those that they name.
func (r *round) readSitemaps(ctx context.Context, list []string) error {
	read := map[string]bool{}
	for len(list) > 0 && len(read) < maxSitemapFiles {
		a := list[0]
		list = list[1:]
		if read[a] || !strings.HasPrefix(a, r.site.root()) {
			continue
		}
		read[a], r.seen[a] = true, true
		resp, err := r.about(ctx, a)
		if err != nil {
			return err
		}
		if resp == nil || isHTML(mediaType(resp)) {
			continue
		}
		base, _ := url.Parse(a)
		pages, others := parseSitemap(base, resp.Data)
		for _, e := range pages {
			if r.site.contains(e.address) && !e.modified.IsZero() && len(r.listed) < maxKnown {
				r.listed[e.address] = e.modified
			}
			r.add(visit{address: e.address, depth: 1})
		}
		list = append(list, others[:min(len(others), maxSitemapFiles)]...)
	}
	return nil
}

// about returns the answer to a request for a file about the site, or nil if there is
// none. An error is that of ctx.
func (r *round) about(ctx context.Context, a string) (*fetch.Response, error) {
	if !r.allows(a) {
		return nil, nil
	}
	resp, err := r.file(ctx, a)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || resp.Status != http.StatusOK {
		return nil, nil
	}
	return resp, nil
}

// add adds a visit, without parameters that change no text.
func (r *round) add(v visit) {
	v.address = r.withoutIgnored(v.address)
	r.enqueue(v)
}

// enqueue adds a visit, unless its address is outside of the site, known already, or
// must not be visited.
func (r *round) enqueue(v visit) {
	if !r.site.contains(v.address) {
		return
	}
	if r.seen[v.address] || len(r.seen) >= maxKnown+knownPer*r.o.MaxPages {
		return
	}
	r.seen[v.address] = true
	file, _, query := strings.Cut(v.address, "?")
	v.query = query
	switch {
	case v.depth > maxDepth:
		r.left[v.address] = TooDeep
	case hasNoText(v.address):
		r.left[v.address] = NoText
	case r.rules.excluded(r.site.path(v.address)):
		r.left[v.address] = Excluded
	case !r.allows(v.address):
		r.left[v.address] = Forbidden
	case query && r.variants[file] == maxVariants:
		r.left[v.address] = TooMany
	default:
		if query {
			r.variants[file]++
		}
		r.queue.push(v)
	}
}

// withoutIgnored returns an address without parameters that change no text.
func (r *round) withoutIgnored(a string) string {
	file, query, ok := strings.Cut(a, "?")
	if !ok || len(r.state.ignored) == 0 {
		return a
	}
	rest, _ := withoutParameters(query, func(name string) bool { return r.state.ignored[name] })
	if rest == "" {
		return file
	}
	return file + "?" + rest
}

// allows reports whether robots.txt allows an address of the site's host.
func (r *round) allows(a string) bool {
	return r.robots.allows(a[len(r.site.root())-1:])
}

// An answer is what a request has led to.
type answer struct {
	visit
	resp *fetch.Response
	err  error
}

// run visits pages until none is left.
func (r *round) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	answers := make(chan answer, maxRequests)
	for running := 0; ; {
		for running < maxRequests {
			v, ok := r.next(running)
			if !ok {
				break
			}
			p := r.state.pages[v.address]
			if p != nil && p.Round == r.number && !v.again {
				if err := r.revisit(ctx, v, p); err != nil {
					return err
				}
				continue
			}
			req := fetch.Request{URL: v.address, Header: p.conditions(), Want: hasText}
			r.requests++
			running++
			wg.Go(func() {
				resp, err := r.request(ctx, req)
				answers <- answer{v, resp, err}
			})
		}
		if running == 0 {
			return nil
		}
		a := <-answers
		running--
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.handle(ctx, a); err != nil {
			return err
		}
	}
}

// next returns the next visit. ok is false if there is none, or none before the running
// requests have been answered. After the last one, the pages that failed follow.
func (r *round) next(running int) (v visit, ok bool) {
	for {
		full := r.pages+running >= r.o.MaxPages || r.requests+running >= requestsPer*r.o.MaxPages+maxVariants
		if full && running > 0 {
			return v, false
		}
		if v, ok = r.queue.pop(); !ok {
			if running > 0 || len(r.again) == 0 {
				return v, false
			}
			for _, v := range r.again {
				v.again = true
				r.queue.push(v)
			}
			r.again = nil
			continue
		}
		if v.again {
			return v, true
		}
		if a := r.withoutIgnored(v.address); a != v.address && !r.known(v.address) {
			if r.seen[a] {
				continue
			}
			r.seen[a] = true
			v.address = a
		}
		if p := r.state.pages[v.address]; full && (p == nil || p.Round != r.number) {
			r.left[v.address] = OverLimit
			continue
		}
		return v, true
	}
}

// known reports whether there is a page of an address.
func (r *round) known(a string) bool {
	p := r.state.pages[a]
	return p != nil && p.Size > 0
}

// hasText reports by the header of an answer whether it may have a text.
func hasText(h http.Header) bool {
	media, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	media = strings.TrimSpace(media)
	kind, _, _ := strings.Cut(media, "/")
	switch {
	case kind == "image", kind == "audio", kind == "video", kind == "font":
		return media == "image/svg+xml"
	case media == "text/css", media == "text/javascript", media == "application/javascript":
		return false
	}
	return true
}

// revisit uses the answer that an interrupted run of the round got.
func (r *round) revisit(ctx context.Context, v visit, p *page) error {
	r.visited()
	switch {
	case p.To != "":
		r.add(visit{address: p.To, depth: v.depth, hops: v.hops + 1})
	case p.Status == http.StatusOK:
		return r.follow(v, p)
	case failed(p.Status):
		r.again = append(r.again, v)
	}
	return ctx.Err()
}

// failed reports whether another attempt may succeed.
func failed(status int) bool {
	return status == 0 || status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// handle stores an answer.
func (r *round) handle(ctx context.Context, a answer) error {
	old := r.state.pages[a.address]
	p := &page{Address: a.address, Depth: a.depth}
	if old != nil {
		*p = *old
		p.Depth = min(p.Depth, a.depth)
	}
	p.Round, p.To, p.Left, p.Status = r.number, "", "", 0
	if a.resp != nil {
		p.Status = a.resp.Status
	}
	unanswered := p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable ||
		a.resp == nil && !errors.Is(a.err, errkind.Timeout) && !errors.Is(a.err, errkind.TooLarge)
	if r.unanswered++; !unanswered {
		r.unanswered = 0
	}
	if !a.again {
		r.visited()
	}
	var err error
	switch s := p.Status; {
	case errors.Is(a.err, errkind.TooLarge):
		p.Left, p.Gone = TooLarge, 0
		err = r.replace(p, nil)
	case s == http.StatusOK:
		err = r.store(a, p)
	case s == http.StatusNotModified && old.conditions() != nil:
		p.Status, p.Left, p.Gone = http.StatusOK, old.Left, 0
		err = r.state.add(entry{Page: p})
	case a.resp != nil && a.resp.Location != "":
		err = r.redirect(a, p)
	case s == http.StatusNotFound, s == http.StatusGone:
		err = r.gone(a, p, goneRounds)
	default:
		if failed(s) && !a.again {
			r.again = append(r.again, a.visit)
		}
		p.Gone = 0
		err = r.state.add(entry{Page: p})
	}
	if err != nil {
		return err
	}
	if p.Status == http.StatusOK {
		if err := r.follow(a.visit, p); err != nil {
			return err
		}
	}
	if r.unanswered >= maxUnanswered {
		if err := r.giveUp(ctx, a); err != nil {
			return err
		}
	}
	return r.tell(ctx)
}

// giveUp decides what follows when many requests in a row were not answered: the
// second attempts end, and the round ends with an error if the server is down or wants
// no more requests. Otherwise these pages alone fail.
func (r *round) giveUp(ctx context.Context, last answer) error {
	switch {
	case last.again:
		r.queue.removeAgain()
	case last.resp != nil && last.resp.Status == http.StatusTooManyRequests:
		return fmt.Errorf("reading %s: the server wants no more requests; the rest is read later: %w", r.site,
			errkind.Unavailable)
	default:
		if err := r.readRobots(ctx); err != nil {
			return fmt.Errorf("the server did not answer %d requests in a row; the rest is read later: %w", r.unanswered, err)
		}
	}
	r.unanswered = 0
	return nil
}

// replace stores what is known of an address. data is the new page; nil means that
// there is none any more.
func (r *round) replace(p *page, data []byte) error {
	if data == nil {
		had := p.Size > 0
		p.dropBody()
		if err := r.state.add(entry{Page: p}); err != nil || !had {
			return err
		}
		r.changed++
		return r.state.removeBody(p)
	}
	at := r.modified(p)
	at = at.Truncate(time.Second).Add(time.Duration(nanoseconds(data)))
	p.Size = int64(len(data))
	if err := r.state.write(p, data, at); err != nil {
		return err
	}
	r.changed++
	return r.state.add(entry{Page: p})
}

// modified returns when a page was changed: a time in the past.
func (r *round) modified(p *page) time.Time {
	latest := time.Now().Add(-3 * time.Second)
	at, err := http.ParseTime(p.Modified)
	if err != nil {
		at = r.listed[p.Address]
	}
	if at.Before(time.Unix(0, 0).Add(24*time.Hour)) || at.After(latest) { // a server without a clock, or none
		return latest
	}
	return at
}

// store stores a page.
func (r *round) store(a answer, p *page) error {
	h := a.resp.Header
	kept := *p
	p.Gone, p.Fetched = 0, time.Now().UTC().Truncate(time.Second)
	p.ETag, p.Modified = bounded(h.Get("ETag")), bounded(h.Get("Last-Modified"))
	switch {
	case !hasText(h):
		p.Left = NoText
	case len(bytes.TrimSpace(a.resp.Data)) == 0:
		p.Left = Empty
	case r.size+int64(len(a.resp.Data)) > max(bytesPer*int64(r.o.MaxPages), maxBody):
		p.Left = OverSize
	}
	if p.Left != "" {
		etag, modified, fetched := p.ETag, p.Modified, p.Fetched
		had := p.Size > 0
		if p.dropBody(); p.Left != OverSize { // otherwise it is asked for again, whether it has changed or not
			p.ETag, p.Modified, p.Fetched = etag, modified, fetched
		}
		if err := r.state.add(entry{Page: p}); err != nil || !had {
			return err
		}
		r.changed++
		return r.state.removeBody(p)
	}
	data := a.resp.Data
	p.Type = believed(mediaType(a.resp), data)
	c := contentOf(p, data)
	p.Text, p.Title, p.Canonical = c.hash, c.title, c.canonical
	p.Links = hashLinks(c.links)
	if kept.Size > 0 && kept.Text == p.Text && kept.Links == p.Links && kept.Type == p.Type {
		return r.state.add(entry{Page: p}) // only what nobody sees has changed
	}
	return r.replace(p, data)
}

// bounded returns the value of a header that is stored, or "" if it is too long.
func bounded(s string) string {
	if len(s) > 1000 {
		return ""
	}
	return s
}

// redirect handles a redirect.
func (r *round) redirect(a answer, p *page) error {
	base, err := url.Parse(p.Address)
	if err != nil {
		return err
	}
	to, ok := address(base, a.resp.Location)
	switch { // The page remains: the target may be one to log in, or a mistake.
	case ok && to == p.Address, a.hops >= maxHops:
		p.Left, p.Gone = Circle, 0
		return r.state.add(entry{Page: p})
	case !ok || !r.site.contains(to):
		p.To, p.Left, p.Gone = to, Outside, 0
		return r.state.add(entry{Page: p})
	}
	p.To = to
	r.add(visit{address: to, depth: a.depth, hops: a.hops + 1})
	rounds := goneRounds
	if a.resp.Status == http.StatusMovedPermanently || a.resp.Status == http.StatusPermanentRedirect {
		rounds = 1
	}
	return r.gone(a, p, rounds)
}

// gone counts that a page is gone, and removes it when it was gone in some rounds.
func (r *round) gone(a answer, p *page, rounds int) error {
	if p.Gone++; p.Gone >= rounds && p.Size > 0 {
		return r.replace(p, nil)
	}
	return r.state.add(entry{Page: p})
}

// forget removes all that is known of an address.
func (r *round) forget(a string) error {
	p := r.state.pages[a]
	if err := r.state.add(entry{Forget: a}); err != nil {
		return err
	}
	if p.Size == 0 {
		return nil
	}
	r.changed++
	return r.state.removeBody(p)
}

// visited counts a visit.
func (r *round) visited() {
	r.done++
	known := r.done + len(r.queue.list) + len(r.again)
	r.o.Report(r.done, max(r.done, min(known, r.o.MaxPages)))
}

// follow adds the links of a page and its canonical page, and learns from its text.
func (r *round) follow(v visit, p *page) error {
	if p.Size == 0 {
		return nil
	}
	r.size += p.Size
	if !r.texts[p.Text] {
		r.texts[p.Text] = true
		r.pages++
	}
	for _, name := range r.learner.add(p.Address, p.Text) {
		if !r.state.ignored[name] {
			if err := r.state.add(entry{Ignored: name}); err != nil {
				return err
			}
		}
	}
	for _, link := range contentOf(p, r.state.body(p)).links {
		r.add(visit{address: link, depth: v.depth + 1})
	}
	if p.Canonical != "" { // often, no link leads to it
		r.add(visit{address: p.Canonical, depth: v.depth + 1})
	}
	return nil
}

// contentOf reads a page.
func contentOf(p *page, data []byte) pageContent {
	base, err := url.Parse(p.Address)
	if err != nil {
		return pageContent{}
	}
	if isHTML(p.Type) {
		return readPage(base, data)
	}
	sum := sha256.Sum256(data)
	c := pageContent{hash: hex.EncodeToString(sum[:16])}
	if isMarkdown(p) {
		c.links = markdownLinks(base, data[:min(len(data), 1<<20)])
	}
	return c
}

// isMarkdown reports whether a page is in Markdown.
func isMarkdown(p *page) bool {
	file, _, _ := strings.Cut(p.Address, "?")
	return strings.HasPrefix(p.Type, "text/markdown") ||
		strings.HasPrefix(p.Type, "text/plain") && (strings.HasSuffix(file, ".md") || strings.HasSuffix(file, "llms.txt"))
}

// isHTML reports whether a media type is that of pages.
func isHTML(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "text/html" || media == "application/xhtml+xml"
}

// mediaType returns the media type of an answer. Without a declared one, it is that of
// a page if the answer looks like one.
func mediaType(resp *fetch.Response) string {
	media := bounded(resp.Header.Get("Content-Type"))
	if media == "" && strings.HasPrefix(http.DetectContentType(resp.Data), "text/html") {
		return "text/html"
	}
	return media
}

// believed returns a media type with the charset that a server has declared if it is
// to be believed. It is not if the text is UTF-8, or if the charset is one that
// servers add to all files: then the page or its bytes say more.
func believed(media string, data []byte) string {
	kind, params, err := mime.ParseMediaType(media)
	if err != nil {
		kind, _, _ = strings.Cut(media, ";")
		return strings.ToLower(strings.TrimSpace(kind))
	}
	switch charset := strings.ToLower(params["charset"]); {
	case charset == "", charset == "utf-8", charset == "iso-8859-1", charset == "us-ascii", utf8.Valid(data):
		return kind
	default:
		return mime.FormatMediaType(kind, map[string]string{"charset": charset})
	}
}

// tell calls Changed if pages have changed and it is time.
func (r *round) tell(ctx context.Context) error {
	if r.o.Changed == nil || r.changed == 0 {
		return nil
	}
	since := time.Since(r.changedAt)
	if since < r.changedRest || r.changed < changedPages && since < changedEvery {
		return nil
	}
	r.changed = 0
	began := time.Now()
	err := r.o.Changed(ctx, r.snapshot())
	r.changedAt = time.Now()
	r.changedRest = changedShare * r.changedAt.Sub(began)
	return err
}

// leftOut returns why pages are no documents.
func (r *round) leftOut() []Left {
	left := map[string]Reason{}
	for a, reason := range r.left {
		left[r.site.path(a)] = reason
	}
	for a, p := range r.state.pages {
		if reason := r.reason(p); reason != "" && p.Round == r.number {
			left[r.site.path(a)] = reason
		}
	}
	list := make([]Left, 0, len(left))
	for _, path := range sorted(left) {
		list = append(list, Left{path, left[path]})
	}
	return list
}

// reason returns why a page is no document; "" if it is one, or leads to one.
func (r *round) reason(p *page) Reason {
	switch {
	case p.Size > 0 && !r.rules.included(r.site.path(p.Address)):
		return NotIncluded
	case p.Size > 0:
		return ""
	case p.Left != "":
		return p.Left
	case p.To != "":
		for range maxHops {
			next := r.state.pages[p.To]
			if next == nil || next.To == "" && next.Left != Circle {
				return ""
			}
			if p = next; p.To == "" {
				break
			}
		}
		return Circle
	case p.Status == 0:
		return Unanswered
	}
	return Answered(p.Status)
}

// nothing returns the error for a site without documents.
func (r *round) nothing() error {
	first := r.state.pages[r.site.start]
	reason := "no page has text"
	switch {
	case r.left[r.site.start] != "":
		reason = "its first page is " + string(r.left[r.site.start])
	case first != nil && first.Left == Outside && first.To != "":
		reason = "its first page leads to " + first.To + ", which is not below it: name that as the source"
	case first != nil && r.reason(first) != "":
		reason = "its first page is " + string(r.reason(first))
	}
	return fmt.Errorf("reading %s: %s: %w", r.site, reason, errkind.NotFound)
}

// hashLinks returns a hash of a list of addresses.
func hashLinks(links []string) string {
	sum := sha256.Sum256([]byte(strings.Join(links, "\n")))
	return hex.EncodeToString(sum[:8])
}
