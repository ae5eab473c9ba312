package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// index checks the index in the data folder, and the sources that it knows.
func (e *examiner) index(ctx context.Context) []Finding {
	if e.Data == "" {
		return nil
	}
	logged := e.hasLog()
	findings := e.openIndex(ctx)
	if !logged && e.hasLog() && Count(findings, Error) > 0 {
		// Without a log, the file is read without locks. A process has begun to write it
		// meanwhile, so what was read may belong to two states.
		return e.openIndex(ctx)
	}
	return findings
}

// hasLog reports whether the index has a log, as it does while it is in use.
func (e *examiner) hasLog() bool {
	_, err := os.Stat(filepath.Join(e.Data, index.FileName+"-wal"))
	return err == nil
}

// openIndex opens the index and checks it.
func (e *examiner) openIndex(ctx context.Context) []Finding {
	found, err := datafolder.HasIndex(e.Data)
	if err != nil || !found {
		if err == nil && isFolder(e.Data) {
			return []Finding{ok("index", "nothing is indexed yet; %q indexes a folder", e.command("serve", "FOLDER"))}
		}
		return nil // the check of the data folder reports it
	}
	x, err := index.Open(ctx, index.Options{Dir: e.Data, Inspect: true})
	if err != nil {
		return []Finding{e.unusable(err)}
	}
	defer x.Close()
	folder := &datafolder.Folder{Dir: e.Data, Index: x}
	status, err := folder.Status(ctx, nil, false)
	if err != nil {
		return []Finding{e.unusable(err)}
	}
	findings := []Finding{ok("index", "%s, %s, %s on disk", terminal.Plural(len(status.Sources), "source"),
		terminal.Plural(status.Stats.Documents, "document"), terminal.Bytes(status.Stats.FileBytes))}
	findings = append(findings, e.processes(ctx, x)...)
	var checks []check
	checks = append(checks, check{"index", func(ctx context.Context) []Finding { return e.examine(ctx, x) }})
	if e.Folder == "" {
		for _, s := range status.Sources {
			checks = append(checks, check{"source " + s.Label, func(ctx context.Context) []Finding {
				return e.source(ctx, x, s)
			}})
		}
	}
	findings = append(findings, e.all(ctx, checks, e.Limit/2, nil)...)
	if e.Folder == "" {
		findings = append(findings, nested(status.Sources, e.command("sources", "rm", "LABEL"))...)
	}
	return append(findings, e.vectors(status)...)
}

// unusable returns the finding for an index that cannot be opened or read.
func (e *examiner) unusable(err error) Finding {
	f := Finding{Level: Error, Subject: "index", Message: e.reason(err)}
	switch {
	case errors.Is(err, index.ErrOlder):
		return ok("index",
			"it is of an older version of the program, which %q upgrades without loss; its sources were not checked",
			e.command("serve"))
	case errors.Is(err, errkind.Unsupported):
		f.Fix = "Update the program. To index the folders again in another place, name a new data folder with --data."
	case errors.Is(err, errkind.Corrupt):
		f.Fix = fmt.Sprintf("First copy %s. Then restore a backup, or name another data folder with --data and index the folders again: their files are unchanged.",
			e.word(e.Data))
	case errors.Is(err, errkind.Denied):
		f.Fix = "Change the permissions of the file, or name another data folder with --data."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errkind.Busy):
		f.Level, f.Message = Warning, "it did not answer in time: another process is writing, or the disk is slow"
		f.Fix = "Try again when nothing is being indexed, and check the disk."
	default:
		f.Fix = "Check the disk of the data folder, and try again."
	}
	return f
}

// examineTime is how long the index is examined for damage.
const examineTime = 4 * time.Second

// examine looks for damage.
func (e *examiner) examine(ctx context.Context, x *index.Index) []Finding {
	const subject = "index"
	ctx, cancel := context.WithTimeout(ctx, min(examineTime, e.Limit/2))
	defer cancel()
	problems, err := x.Examine(ctx)
	full := fmt.Sprintf("%s engine check --data %s", e.Program, e.word(e.Data))
	switch {
	case ctx.Err() != nil:
		return []Finding{ok(subject, "no damage was found in %s; to examine all of it, type: %s",
			terminal.Duration(min(examineTime, e.Limit/2)), full)}
	case err != nil:
		return []Finding{e.unusable(err)}
	case len(problems) == 0:
		return []Finding{ok(subject, "not damaged")}
	}
	f := Finding{Level: Error, Subject: subject, Message: "damaged: " + e.foreign(problems[0].Text),
		Fix: fmt.Sprintf("Stop %s, and first of all copy %s. Then restore a backup (%s), or index the folders again in another data folder.",
			e.Program, e.word(e.Data), "knowhow.db")}
	if problems[0].Repairable {
		f.Level, f.Fix = Warning,
			fmt.Sprintf("Nothing is lost: %q indexes it again. If it happens again, check the disk.",
				e.command("serve"))
	}
	if n := len(problems) - 1; n > 0 {
		f.Message += fmt.Sprintf(", and %s", terminal.Plural(n, "other problem"))
	}
	return []Finding{f}
}

// processes reports which processes index sources. Leases of processes that have ended
// keep others from indexing until they expire.
func (e *examiner) processes(ctx context.Context, x *index.Index) (findings []Finding) {
	const subject = "processes"
	leases, err := x.Leases(ctx)
	if err != nil {
		return nil // the examination reports it
	}
	processes := map[indexing.Process][]string{} // names of leases
	owners := map[string]string{}
	for name, owner := range leases {
		if p, ok := indexing.ParseOwner(owner); ok {
			processes[p] = append(processes[p], name)
			owners[name] = owner
		}
	}
	for p, names := range processes {
		slices.Sort(names)
		what := strings.ReplaceAll(strings.Join(names, ", "), "indexing:", "source ")
		if p.Host != e.machine.host {
			findings = append(findings, ok(subject, "process %d on %s uses the data folder (%s)", p.PID,
				e.foreign(p.Host), what))
			continue
		}
		if e.machine.alive(p.PID) {
			findings = append(findings, ok(subject, "process %d uses the data folder (%s)", p.PID, what))
			continue
		}
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("process %d has ended without releasing the data folder (%s)", p.PID, what),
			Fix:     fmt.Sprintf("Wait ten seconds, or type: %s doctor --fix", e.Program),
			repair:  func(ctx context.Context) (string, error) { return e.release(ctx, p, names, owners) }})
	}
	return findings
}

// release releases the leases of a process that has ended.
func (e *examiner) release(ctx context.Context, p indexing.Process, names []string, owners map[string]string) (
	done string, err error) {
	x, err := index.Open(ctx, index.Options{Dir: e.Data})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	for _, name := range names {
		if err := x.Release(ctx, owners[name], name); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the leases of process %d are released", p.PID), nil
}

// isFolder reports whether a folder exists at path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// folder checks the source that the user named.
func (e *examiner) folder(ctx context.Context) []Finding {
	const subject = "source"
	path, err := source.Resolve(e.Folder)
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s: %s", e.Folder,
			e.reason(source.Reason(err))),
			Fix: "Check the spelling, or name another folder."}}
	}
	notIndexed := []Finding{{Level: Warning, Subject: subject,
		Message: fmt.Sprintf("%s is not indexed in this data folder", path),
		Fix:     fmt.Sprintf("Type: %s", e.command("serve", e.word(path)))}}
	if found, err := datafolder.HasIndex(e.Data); e.Data == "" || err != nil || !found {
		return append(e.readable(subject, path), notIndexed...)
	}
	x, err := index.Open(ctx, index.Options{Dir: e.Data, Inspect: true})
	if err != nil {
		return nil // the check of the index reports it
	}
	defer x.Close()
	status, err := (&datafolder.Folder{Dir: e.Data, Index: x}).Status(ctx, nil, false)
	if err != nil {
		return nil
	}
	for _, s := range status.Sources {
		if s.Path == path {
			return e.source(ctx, x, s)
		}
	}
	for _, s := range status.Sources {
		if source.Inside(path, s.Path) {
			return append([]Finding{ok(subject, "%s belongs to the source %s", path, s.Label)}, e.source(ctx, x, s)...)
		}
	}
	return append(e.readable(subject, path), notIndexed...)
}

// readable returns a finding if a source cannot be read.
func (e *examiner) readable(subject, path string) []Finding {
	info, err := os.Stat(path)
	remove := e.command("sources", "rm", strings.TrimPrefix(subject, "source "))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s does not exist", path),
			Fix: fmt.Sprintf("Connect its disk or put the folder back. If it was moved, serve it in its new place, and forget the old one with: %s",
				remove)}}
	case err != nil:
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s cannot be read: %s", path,
			pathReason(err)),
			Fix: "Change the permissions of the folders above it. On macOS, allow the terminal and the client to use the folder (System Settings, Privacy & Security)."}}
	}
	f, err := os.Open(path)
	if err == nil && info.IsDir() {
		_, err = f.ReadDir(1)
		if err != nil && err.Error() == "EOF" {
			err = nil
		}
	}
	if f != nil {
		f.Close()
	}
	if err != nil {
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s cannot be read: %s", path,
			pathReason(err)),
			Fix: fmt.Sprintf("Change its permissions: chmod u+rX %s. On macOS, allow the terminal and the client to use the folder (System Settings, Privacy & Security).",
				e.word(path))}}
	}
	return nil
}

// source checks a source.
func (e *examiner) source(ctx context.Context, x *index.Index, s datafolder.SourceStatus) (findings []Finding) {
	subject := "source " + s.Label
	local := !source.Remote(s.Path)
	if _, err := repository.Program(); err != nil && repository.Is(s.Path) {
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: "it is a git repository, and there is no program git on the PATH", Fix: "Install git."})
	}
	if local {
		if findings = e.readable(subject, s.Path); findings != nil {
			return findings
		}
		if what := source.Vast(s.Path, e.Home); what != "" {
			findings = append(findings, Finding{Level: Warning, Subject: subject,
				Message: fmt.Sprintf("%s is %s, so it has many files that no agent needs", s.Path, what),
				Fix:     fmt.Sprintf("Serve a smaller folder, and type: %s", e.command("sources", "rm", s.Label))})
		}
	}
	serve := e.command("serve", e.word(s.Path))
	switch {
	case s.Incomplete != nil && s.Process == nil:
		findings = append(findings, Finding{Level: Warning, Subject: subject, Message: e.foreign(s.Incomplete.State()),
			Fix: fmt.Sprintf("To continue, type: %s", serve)})
	case s.Incomplete != nil:
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: e.foreign(s.Incomplete.State()) + fmt.Sprintf("; process %d tries again", s.Process.PID),
			Fix:     "Do what the message says. Otherwise, nothing needs to be done."})
	case s.Documents == 0 && s.Indexing == nil && e.Store == nil: // which has the documents
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s has no document that can be found", s.Path),
			Fix: fmt.Sprintf("List what is left out with: %s", e.command("status", "--left-out", "--label",
				s.Label))})
	}
	if site.Is(s.Path) {
		findings = append(findings, e.pages(ctx, x, s)...)
	} else if broken := brokenOf(s.LeftOut); len(broken) > 0 {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s could not be read (%s)", terminal.Plural(sum(broken), "file"),
				terminal.Counts(broken)),
			Fix: fmt.Sprintf("List them with: %s", e.command("status", "--left-out", "--label", s.Label))})
	}
	if local && s.Process == nil && s.Incomplete == nil && s.Documents > 0 {
		findings = append(findings, e.changed(ctx, x, s, serve)...)
	}
	if len(findings) == 0 {
		by := "no process watches it now"
		if s.Process != nil {
			by = fmt.Sprintf("process %d watches it", s.Process.PID)
		}
		findings = append(findings, ok(subject, "%s, %d left out%s; %s", terminal.Plural(s.Documents, "document"), sum(s.LeftOut),
			age(ctx, x, s.Label), by))
	}
	return findings
}

// age describes when a document of a label was stored last.
func age(ctx context.Context, x *index.Index, label string) string {
	records, _, err := x.Records(ctx, document.RecordFilter{Labels: []string{label}, Limit: 1})
	if err != nil || len(records) == 0 {
		return ""
	}
	return fmt.Sprintf(", the last change %s", records[0].Updated.Format(time.DateOnly))
}

// harmless are the reasons for which files are left out as intended, or because nothing
// can be done.
var harmless = []ingest.Reason{ingest.NoText, ingest.Hidden, ingest.Ignored, ingest.Excluded, ingest.NotIncluded,
	ingest.ThirdParty, ingest.LockFile, ingest.Generated, ingest.Backup, ingest.Empty, ingest.Link, ingest.Locked,
	ingest.TooLarge, ingest.Submodule}

// brokenOf returns the counts of files that should be indexed.
func brokenOf(counts map[string]int) map[string]int {
	result := map[string]int{}
	for reason, n := range counts {
		if !slices.Contains(harmless, ingest.Reason(reason)) {
			result[reason] = n
		}
	}
	return result
}

// sum returns the sum of counts.
func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// pages returns findings about the pages that a web site should have in the index. What
// single pages are like is the matter of the site. So the server is reported only if it
// refuses most of them, and the maximum number of pages only if the user has not set it.
func (e *examiner) pages(ctx context.Context, x *index.Index, s datafolder.SourceStatus) (findings []Finding) {
	subject := "source " + s.Label
	refused := map[string]int{}
	for reason, n := range s.LeftOut {
		if site.Refused(site.Reason(reason)) {
			refused[reason] = n
		}
	}
	if n := sum(refused); e.Store == nil && n > s.Documents {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("the server did not send %d of %s (%s)", n, terminal.Plural(n+s.Documents, "page"),
				terminal.Counts(refused)),
			Fix: fmt.Sprintf("Ask its owner whether programs may read them. List them with: %s",
				e.command("status", "--left-out", "--label", s.Label))})
	}
	sources, err := x.Sources(ctx)
	limited := slices.ContainsFunc(sources, func(o document.Source) bool {
		return o.Label == s.Label && o.Rules.MaxPages > 0
	})
	if n := s.LeftOut[string(site.OverLimit)]; err == nil && n > 0 && !limited {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s are over the maximum number of pages, %d", terminal.Plural(n, "page"),
				site.DefaultMaxPages),
			Fix: fmt.Sprintf("Set the number that you want: %s", e.command("serve", "--max-pages", "N", s.Path))})
	}
	return findings
}

// Limits of the comparison of a source with its files.
const (
	maxCompared  = 2000
	comparedTime = 2 * time.Second
)

// changed reports whether files of a source were changed or removed since they were
// indexed. It looks at some of them only.
func (e *examiner) changed(ctx context.Context, x *index.Index, s datafolder.SourceStatus, serve string) []Finding {
	if !isFolder(s.Path) {
		return nil
	}
	stamps, err := x.Stamps(ctx, s.Label)
	if err != nil {
		return nil
	}
	end := time.Now().Add(comparedTime)
	changed, gone, compared := 0, 0, 0
	for path, stamp := range stamps { // in random order
		if stamp.ModTime.Unix() <= 0 {
			continue // the file changed when it was read, so its stamp is not known
		}
		if compared++; compared > maxCompared || time.Now().After(end) || ctx.Err() != nil {
			break
		}
		info, err := os.Stat(filepath.Join(s.Path, filepath.FromSlash(path)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			gone++
		case err != nil: // the document is a part of a file
		case info.Mode().IsRegular() && !stamp.Equal(document.Stamp{Size: info.Size(), ModTime: info.ModTime()}):
			changed++
		}
	}
	if changed+gone == 0 {
		return nil
	}
	return []Finding{{Level: Warning, Subject: "source " + s.Label,
		Message: fmt.Sprintf("the index is older than the files: of %s, %d changed and %d were removed since, and no process watches the source",
			terminal.Plural(min(compared, maxCompared), "file"), changed, gone),
		Fix: fmt.Sprintf("It is updated when a client starts the program. To update it now, type: %s", serve)}}
}

// nested returns a finding for each source that is inside another one.
func nested(sources []datafolder.SourceStatus, remove string) (findings []Finding) {
	var all []document.Source
	for _, s := range sources {
		all = append(all, document.Source{Label: s.Label, Path: s.Path})
	}
	for _, n := range source.Nested(all) {
		findings = append(findings, Finding{Level: Warning, Subject: "source " + n.Inner.Label,
			Message: fmt.Sprintf("it is inside the source %s, so its files are indexed and found twice", n.Outer.Label),
			Fix:     fmt.Sprintf("Forget one of them with: %s", remove)})
	}
	return findings
}

// vectors checks how many passages can be found by meaning.
func (e *examiner) vectors(status *datafolder.Status) []Finding {
	const subject = "vectors"
	stats := status.Stats
	if e.Store != nil || stats.Chunks == 0 || e.Folder != "" && len(status.Sources) == 0 {
		return nil
	}
	served := slices.ContainsFunc(status.Sources, func(s datafolder.SourceStatus) bool { return s.Process != nil })
	missing := stats.Chunks - stats.Vectors
	switch {
	case e.Model == nil && e.ModelErr == nil:
		return []Finding{ok(subject, "searches use words only")}
	case missing <= 0:
		return []Finding{ok(subject, "complete for %s", terminal.Plural(stats.Chunks, "passage"))}
	case served:
		return []Finding{ok(subject, "%d of %s have one, the others are being computed", stats.Vectors,
			terminal.Plural(stats.Chunks, "passage"))}
	}
	return []Finding{{Level: Warning, Subject: subject,
		Message: fmt.Sprintf("%d of %s have none, so questions in other words than those of the documents find less",
			missing,
			terminal.Plural(stats.Chunks, "passage")),
		Fix: fmt.Sprintf("A server computes them in the background. To do it now, type: %s", e.command("serve"))}}
}
