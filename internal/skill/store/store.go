// Package store keeps generated Agent Skills on disk: the folder of skills,
// the links by which clients find them, and the lock file that says what is
// ours. The commands sync and start use it.
//
// Whatever people put into these folders stays. A file is only replaced or
// removed where the lock file names it, or where the SKILL.md beside it carries
// our metadata; a link only where it leads into the folder of skills.
//
// All files of a sync are first written into a hidden folder beside the skills,
// read back, and then renamed to their places; the lock file comes last. A sync
// that runs out of space or of permissions therefore leaves the skills, the
// links and the lock as they were.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"knowhow/internal/skill"
)

// lockName is the name of the lock file in [Options].Base.
const lockName = "mcp_settings.lock"

// Options say where skills go and how.
type Options struct {
	Base       string       // the working directory, where links and the lock live; "" is the current one
	OutputDir  string       // "" means "mcp-skills"; relative to Base or absolute
	LinkDirs   []string     // nil means those of the last sync, or else {"skills"}; relative to Base or absolute
	Force      bool         // write every skill, and drop descriptions edited by hand
	DryRun     bool         // report what a sync would do, and change nothing
	ConfigHash string       // of the settings and options that the skills come from
	Log        *slog.Logger // nil discards

	// Link makes a symbolic link to a folder; nil means [os.Symlink]. Where it
	// fails, skills are copied.
	Link func(target, name string) error
}

// log returns the log in use.
func (o *Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// Content is what the servers offer.
type Content struct {
	Skills   []skill.Skill // of the servers that answered
	Failed   []string      // ids of enabled servers that did not answer: what they have is kept
	Disabled []string      // ids of servers that are switched off: what they have is removed
}

// A Report says what a sync did, or in a dry run what it would do. Lists are
// sorted. Skills are told by name; links and other paths are relative to the
// base, with forward slashes, where they lie below it.
type Report struct {
	Written   []string // skills that are new or differ
	Unchanged []string // the others of the servers that answered
	Removed   []string // skills of OutputDir whose tool is gone or whose server is disabled

	Linked   []string // links made or corrected
	Copied   []string // folders copied because links are refused
	Unlinked []string // links and copies removed

	Kept     []string // things in the way, or changed by somebody; left alone, a warning each
	Changed  []string // skills whose tool the server now describes otherwise; not the new ones
	Warnings []string // sentences, also logged

	Hash  string // of all our SKILL.md files; see [Sync]
	Stale bool   // whether anything was changed, or in a dry run would be; that a server failed is no change
}

// Sync makes the folders hold the skills of c and nothing else of ours.
//
// A description in a SKILL.md's frontmatter that somebody edited survives,
// unless o.Force; every other edit of a generated file is undone. The skills of
// failed servers stay as they are. Where OutputDir or LinkDirs are others than
// in the last sync, what is in the earlier folders stays, and a warning says how
// to remove it. Where a link can't be made the skill's
// folder is copied instead.
//
// The report's hash is the SHA-256, in hex, of the contents of all SKILL.md
// files of ours, one after the other, in the order of the bytes of their paths
// including "/SKILL.md" (so "a-b" comes before "a"). That is what
// LC_ALL=C sh -c 'cat mcp-skills/*/SKILL.md' prints where the folder holds
// nobody else's skills.
//
// Errors are of kind Invalid for content or options that no folder can hold,
// Denied where permissions are missing, Conflict where a file takes a folder's
// place, Busy where another sync of the same base runs for longer than ten
// seconds. An error of a full disk wraps the system's own. After an error the
// old lock file stands.
func Sync(ctx context.Context, o Options, c Content) (*Report, error) {
	s, err := newSyncer(o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.sync(ctx, c)
}

// A syncer is one sync. Its zero parts are filled in the order of sync.
type syncer struct {
	o   Options
	log *slog.Logger

	base  *folder
	out   *folder   // where skills go
	old   *folder   // where the last sync put them; the same as out unless it moved
	links []*folder // where links go
	left  []*folder // where links of the last sync are and this one makes none

	prev *lock  // what the last sync left; empty where there is no lock
	raw  []byte // the lock file's bytes, nil where there is none
	next *lock

	items   []*item // skills to be there afterwards, by name
	gone    []string
	renamed map[string]bool // those of gone whose tools have a skill of another name now
	report  *Report
	write   writeFunc
	refused map[*folder]error // folders of links in which no link can be made
}

func newSyncer(o Options) (*syncer, error) {
	s := &syncer{
		o: o, log: o.log(), report: &Report{}, write: writeFile,
		refused: map[*folder]error{}, renamed: map[string]bool{}, prev: &lock{},
	}
	return s, s.place()
}

// sync does the work of [Sync].
func (s *syncer) sync(ctx context.Context, c Content) (*Report, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	if !s.o.DryRun {
		release, err := s.exclusive(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.want(c); err != nil {
		return nil, err
	}
	if err := s.decide(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("writing skills: %w", err)
	}
	for _, step := range []func(context.Context) error{s.prepare, s.writeSkills, s.linkSkills, s.removeLinks, s.removeSkills, s.warnOfRest} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.writeLock(); err != nil {
		return nil, err
	}
	s.finish()
	return s.report, nil
}

// finish puts the report in order.
func (s *syncer) finish() {
	r := s.report
	lists := []*[]string{&r.Written, &r.Unchanged, &r.Removed, &r.Linked, &r.Copied, &r.Unlinked, &r.Kept, &r.Changed}
	for _, list := range lists {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if len(r.Written)+len(r.Removed)+len(r.Linked)+len(r.Copied)+len(r.Unlinked) > 0 {
		r.Stale = true
	}
	if len(r.Written)+len(r.Removed) == 0 && len(r.Unchanged) > 0 {
		s.log.Info("Skills up to date, skipping regeneration")
	}
}

// warn notes a sentence for the user.
func (s *syncer) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.report.Warnings = append(s.report.Warnings, text)
	s.log.Warn(text)
}

// keep notes that something was left alone. The reason completes the sentence
// that begins with the path.
func (s *syncer) keep(f *folder, name, reason string) {
	path := f.show(name)
	if slices.Contains(s.report.Kept, path) {
		return
	}
	s.report.Kept = append(s.report.Kept, path)
	s.warn("%s %s", path, reason)
}
