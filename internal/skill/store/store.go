// Package store manages generated Agent Skills on disk: the folder of skills,
// the links by which clients find them, and the lock file that records which
// files were generated. The commands sync and start use it.
//
// Files of users in these folders are kept. A file is only replaced or removed
// if the lock file names it, or if the SKILL.md beside it contains our
// metadata. A link is only replaced or removed if it leads into the folder of
// skills.
//
// All files of a sync are first written into a hidden folder beside the skills,
// read back, and then renamed to their places. The lock file is written last.
// If the disk is full or a permission is missing, a sync therefore leaves the
// skills, the links and the lock unchanged.
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

// Options configure a sync.
type Options struct {
	Base       string       // the working directory, which contains the links and the lock; "" is the current one
	OutputDir  string       // "" means "mcp-skills"; relative to Base or absolute
	LinkDirs   []string     // nil means those of the last sync, or else {"skills"}; relative to Base or absolute
	Force      bool         // write every skill, and drop edited descriptions
	DryRun     bool         // report what a sync would do, and change nothing
	ConfigHash string       // of the settings and options from which the skills are generated
	Log        *slog.Logger // nil discards

	// Link makes a symbolic link to a folder; nil means [os.Symlink]. If it
	// fails, skills are copied.
	Link func(target, name string) error
}

// log returns Log, or a logger that discards.
func (o *Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// Content is the input of a sync.
type Content struct {
	Skills   []skill.Skill // of the servers that answered
	Failed   []string      // ids of enabled servers that did not answer; their skills are kept
	Disabled []string      // ids of disabled servers; their skills and links are removed
}

// A Report is the result of a sync, or for a dry run the result that a sync
// would have. Lists are sorted. Skills are identified by name. Links and other
// paths below the base are relative to it, with forward slashes.
type Report struct {
	Written   []string // skills that are new or differ
	Unchanged []string // the other skills of the servers that answered
	Removed   []string // skills of OutputDir whose tool was removed or whose server is disabled

	Linked   []string // links that were made or corrected
	Copied   []string // folders that were copied because links cannot be made
	Unlinked []string // links and copies that were removed

	Kept     []string // files in the way, and files changed by the user, which are kept; each has a warning
	Changed  []string // skills whose description by the server has changed; not the new ones
	Warnings []string // sentences, also logged

	Hash  string // of all generated SKILL.md files; see [Sync]
	Stale bool   // whether a sync changed anything or, for a dry run, would; the failure of a server is not a change
}

// Sync updates the folders so that they contain the skills of c and no other
// generated skills.
//
// An edited description in the frontmatter of a SKILL.md is kept, unless
// o.Force is set. Every other edit of a generated file is reverted. The skills
// of failed servers are unchanged. If OutputDir or LinkDirs differ from the
// last sync, the contents of the earlier folders are kept, and a warning
// explains how to remove them. If a link cannot be made, the skill's folder is
// copied instead.
//
// The report's hash is the SHA-256, in hex, of the contents of all generated
// SKILL.md files, one after the other, in the order of the bytes of their paths
// including "/SKILL.md" (so "a-b" comes before "a"). If the folder contains no
// other skills, these are the contents that LC_ALL=C sh -c 'cat
// mcp-skills/*/SKILL.md' prints.
//
// Errors are of kind Invalid for content or options that cannot be written as
// folders, Denied for missing permissions, Conflict if a file is in the place
// of a folder, and Busy if another sync with the same base runs for longer than
// ten seconds. An error of a full disk wraps the system's error. After an error
// the old lock file is unchanged.
func Sync(ctx context.Context, o Options, c Content) (*Report, error) {
	s, err := newSyncer(o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.sync(ctx, c)
}

// A syncer is one sync. Its fields are set in the order of sync.
type syncer struct {
	o   Options
	log *slog.Logger

	base  *folder
	out   *folder   // the folder of skills
	old   *folder   // that of the last sync; the same as out unless it has changed
	links []*folder // the folders of links
	left  []*folder // folders with links of the last sync that this sync does not use

	prev *lock  // the result of the last sync; empty if there is no lock
	raw  []byte // the content of the lock file, or nil if there is none
	next *lock

	items   []*item // skills that must exist after the sync, by name
	gone    []string
	renamed map[string]bool // those of gone whose tools now have a skill with another name
	report  *Report
	write   writeFunc
	refused map[*folder]error // folders in which links cannot be made
}

func newSyncer(o Options) (*syncer, error) {
	s := &syncer{
		o: o, log: o.log(), report: &Report{}, write: writeFile,
		refused: map[*folder]error{}, renamed: map[string]bool{}, prev: &lock{},
	}
	return s, s.place()
}

// sync implements [Sync].
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

// finish sorts the report.
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

// warn records a warning for the user.
func (s *syncer) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.report.Warnings = append(s.report.Warnings, text)
	s.log.Warn(text)
}

// keep records that a file was left alone. The reason completes the sentence
// that begins with the path.
func (s *syncer) keep(f *folder, name, reason string) {
	path := f.show(name)
	if slices.Contains(s.report.Kept, path) {
		return
	}
	s.report.Kept = append(s.report.Kept, path)
	s.warn("%s %s", path, reason)
}
