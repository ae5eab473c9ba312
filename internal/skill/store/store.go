// Package store manages generated Agent Skills on disk: the folder of skills,
// the links by which clients find them, and the lock file that records which
// files were generated. The commands sync and start use it.
//
// A sync reads the folders, compares them with the skills that must exist
// ([diff]), and applies the difference.
//
// Files of users in these folders are kept. A file is only replaced or removed
// if the lock file names it, or if the SKILL.md beside it contains our
// metadata. A link is only removed if it leads into the folder of skills.
//
// All files of a sync are first written into a hidden folder beside the skills,
// read back, and then renamed to their places. The lock file is written last.
// If the disk is full or a permission is missing, a sync therefore leaves the
// skills, the links and the lock unchanged.
package store

import (
	"context"
	"log/slog"
	"path"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/skill"
)

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
	Removed   []string // skills whose tool was removed or whose server is disabled

	Linked   []string // links that were made or corrected
	Copied   []string // folders that were copied because links cannot be made
	Unlinked []string // links and copies that were removed

	Changed  []string // skills whose description by the server has changed; not the new ones
	Warnings []string // sentences, also logged

	// Lock reports whether the lock file was written. The failure of a server alone
	// does not count.
	Lock  bool
	Stale bool // whether a sync changed anything or, for a dry run, would; the failure of a server is not a change
}

// Sync updates the folders so that they contain the skills of c and no other
// generated skills.
//
// An edited description in the frontmatter of a SKILL.md is kept, unless
// o.Force is set. Every other edit of a generated file is reverted. The skills
// of failed servers are unchanged. Folders of the last sync that o does not
// name are left as they are, and a warning names them. If a link cannot be
// made, the skill's folder is copied instead; a copy stays a copy.
//
// The hash in the lock is the SHA-256, in hex, of the contents of all generated
// SKILL.md files, one after the other, in the order of the bytes of their paths
// including "/SKILL.md" (so "a-b" comes before "a"). If the folder contains no
// other skills, these are the contents that LC_ALL=C sh -c 'cat
// mcp-skills/*/SKILL.md' prints.
//
// Errors are of kind Invalid for options that cannot be the paths of folders,
// Denied for missing permissions, Conflict if a file is in the place of a
// folder, and Busy if another sync with the same base runs for longer than ten
// seconds. An error of a full disk wraps the system's error. After an error the
// old lock file is unchanged.
func Sync(ctx context.Context, o Options, c Content) (*Report, error) {
	return syncWith(ctx, o, c, writeFile)
}

// syncWith implements [Sync] with a function that writes a file.
func syncWith(ctx context.Context, o Options, c Content, write writeFunc) (*Report, error) {
	d, err := locate(o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	log := o.log()
	if !o.DryRun {
		release, warning, err := exclusive(ctx, d.base)
		if err != nil {
			return nil, err
		}
		defer release()
		if warning != "" {
			d.warnings = append(d.warnings, warning)
		}
	}
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := d.read(c.Skills); err != nil {
		return nil, err
	}
	p := diff(c, d)
	r := p.report
	r.Warnings = append(d.warnings, r.Warnings...)
	for _, text := range r.Warnings {
		log.Warn(text)
	}
	log.Debug("computed the hash of all skills", "files", len(p.next.Skills), "hash", p.next.Hash, "before",
		d.last().Hash)
	if !o.DryRun {
		a := applier{disk: d, plan: p, log: log, write: write}
		if err := a.apply(ctx); err != nil {
			return nil, err
		}
	}
	r.sort()
	r.Lock = !p.next.sameAs(d.lock)
	r.Stale = len(r.Written)+len(r.Removed)+len(r.Linked)+len(r.Copied)+len(r.Unlinked) > 0 || r.Lock
	if len(r.Written)+len(r.Removed) == 0 && len(r.Unchanged) > 0 && (!r.Stale || !o.DryRun) {
		log.Info("Skills up to date, skipping regeneration")
	}
	return r, nil
}

// sort sorts the lists of the report.
func (r *Report) sort() {
	for _, list := range []*[]string{&r.Written, &r.Unchanged, &r.Removed, &r.Linked, &r.Copied, &r.Unlinked,
		&r.Changed} {
		slices.Sort(*list)
	}
}

// inspect opens the folders like a sync that changes nothing. The caller must
// close them.
func inspect(o Options) (*disk, error) {
	d, err := locate(o)
	if err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// Check reports whether the options and their folders can be used, without
// changing anything. Errors are those of [Sync].
func Check(o Options) error {
	d, err := inspect(o)
	if err == nil {
		d.close()
	}
	return err
}

// Current reports whether the last sync had the same options and configuration
// hash, all servers answered, and its skills and links are unchanged. In that
// case, no server has to be asked.
func Current(o Options) (bool, error) {
	d, err := inspect(o)
	if err != nil {
		return false, err
	}
	defer d.close()
	log, l := o.log(), d.last()
	if d.lock == nil || l.ConfigHash != o.ConfigHash || len(l.Failed) > 0 ||
		l.OutputDir != d.out.key || !slices.Equal(l.LinkDirs, d.linkKeys()) {
		log.Debug("the lock file is missing or of other settings", "config_hash", o.ConfigHash, "before", l.ConfigHash)
		return false, nil
	}
	if err := d.read(nil); err != nil {
		return false, err
	}
	for name, e := range l.Skills {
		if p := d.outdated(name, e); p != "" {
			log.Debug("a file or link is missing or changed", "path", p)
			return false, nil
		}
	}
	log.Debug("the lock file is up to date", "files", len(l.Skills), "hash", l.Hash)
	return true, nil
}

// outdated returns a path of a skill that differs from the last sync, or "".
func (d *disk) outdated(name string, e *entry) string {
	for p, hash := range e.Files {
		if content := d.out.nodes[name].content(p); content == nil || sum(content) != hash {
			return d.out.show(path.Join(name, p))
		}
	}
	for _, f := range d.links {
		n := f.nodes[name]
		copied := n.isCopy(f.key, e, nil) && sum(n.content(skillFile)) == e.Files[skillFile]
		if e.linked(f.key) && !copied && (n == nil || !n.exact) {
			return f.show(name)
		}
	}
	return ""
}

// sourceHashes returns the hashes of the tools from which the last sync
// generated a server's skills, in the form of skill.Skill, sorted. With them,
// the tools of one server can be compared without connecting to the other
// servers. Errors are those of [Current].
func sourceHashes(o Options, server string) ([]string, error) {
	d, err := inspect(o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	var hashes []string
	for _, e := range d.last().Skills {
		if e.Server == server {
			hashes = append(hashes, e.SourceHash)
		}
	}
	slices.Sort(hashes)
	return hashes, nil
}
