package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// defaultInterval is the time between two scans. Changes are to be served
// within 10 seconds, and loading takes time, too.
const defaultInterval = 2 * time.Second

// defaultMemory is the memory of all datasets, in bytes: about two million
// passages with their words and codes.
const defaultMemory = 4 << 30

// Options configure a [Registry].
type Options struct {
	Dir      string        // folder of the datasets; it need not exist yet
	Interval time.Duration // between two scans of Watch; 0 means 2 seconds
	Log      *slog.Logger  // nil discards

	// Embedders returns the embedders that may have made the vectors of a
	// dataset, those that cost the least work first. model is the name
	// in the metadata, or DefaultModel. nil means that there are none: all
	// datasets are searched by words.
	Embedders func(model string) []embed.Embedder

	// Written makes the words as they are written part of the indexes, and the parts
	// of identifiers and the signs of code, for prefixes, wildcards and completion.
	// [Registry.Search] does not need them.
	Written bool

	// MaxMemory limits the memory of all datasets together, in bytes, without
	// vectors that stay in their files; 0 means 4 GiB. A dataset that does not fit
	// is in Error until there is more.
	MaxMemory int64

	// Explain adds to an error of an embedder how the operator sets the option
	// that the error is due to; see [errkind.ReasonOf]. nil adds nothing.
	Explain func(error) error
}

// A Registry holds the datasets of a folder: the folders below it that have a
// manifest, at any depth, except hidden folders and links. A bad dataset does not
// affect the others. Its methods are safe for concurrent use.
type Registry struct {
	o   Options
	dir string // absolute

	scanning sync.Mutex // held during a scan; guards the next three
	nextBase int64
	missing  bool            // the folder did not exist in the last scan
	reported map[string]bool // links and other problems of folders that were reported

	mu      sync.Mutex
	entries []*entry // in the order of a walk; entries are never changed
	failure error    // of reading the folder in the last scan

	found   gate // the datasets are known
	loaded  gate // they have been loaded
	scanned gate // they have been loaded, or the folder could not be read
}

// A gate is closed until open is called for the first time.
type gate struct {
	opened <-chan struct{}
	open   func()
}

func newGate() gate {
	c := make(chan struct{})
	return gate{c, sync.OnceFunc(func() { close(c) })}
}

// An entry is a dataset in one state. It is immutable once it is published.
type entry struct {
	folder   string   // path, relative to the folder of the datasets
	files    [3]stamp // manifest, index, metadata
	manifest Manifest
	place    place
	state    State
	found    findings
	failedAt time.Time
	owner    string        // folder of the dataset with the same id that is used; "" if it is this one
	set      *Set          // nil if there is nothing to search
	short    int64         // memory that was not enough for it, in bytes; 0 if that was not the cause
	loaded   chan struct{} // closed if the state is not Loading
}

// A stamp is the state of a file. The zero stamp is that of no file.
type stamp struct {
	path string
	info fs.FileInfo // nil for no file
}

func stampOf(path string) stamp {
	info, err := os.Lstat(path)
	if path == "" || err != nil {
		return stamp{}
	}
	os.SameFile(info, info) // on Windows, the identity of the file is read when it is first asked for
	return stamp{path, info}
}

// same reports whether a file has not changed. A file that another one of the same
// size and modification time has replaced is another one.
func (s stamp) same(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return s.path == other.path && s.info.Size() == other.info.Size() &&
		s.info.ModTime().Equal(other.info.ModTime()) && os.SameFile(s.info, other.info)
}

// size returns the size of the file in bytes.
func (s stamp) size() int64 {
	if s.info == nil {
		return 0
	}
	return s.info.Size()
}

// New returns a Registry, which is empty until the first scan.
func New(o Options) (*Registry, error) {
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = defaultMemory
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Explain == nil {
		o.Explain = func(err error) error { return err }
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the datasets: %w", err)
	}
	return &Registry{o: o, dir: dir, reported: map[string]bool{}, found: newGate(), loaded: newGate(),
		scanned: newGate()}, nil
}

// Dir returns the absolute path of the folder.
func (r *Registry) Dir() string { return r.dir }

// path returns the path of a subfolder.
func (r *Registry) path(folder string) string { return filepath.Join(r.dir, folder) }

// Watch scans the folder until ctx ends. It logs an error that lasts once.
func (r *Registry) Watch(ctx context.Context) {
	tick := time.NewTicker(r.o.Interval)
	defer tick.Stop()
	var last string
	for {
		var problem string
		if err := r.Scan(ctx); err != nil && ctx.Err() == nil {
			problem = err.Error()
		}
		if problem != "" && problem != last {
			r.o.Log.Error("reading the folder of the datasets failed; what is loaded can still be searched",
				"dir", r.dir, "error", problem)
		}
		last = problem
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Scan looks for datasets, and loads those that are new or have changed. A
// dataset that changed is searched in its old state until the new one is loaded.
// A folder that does not exist has no datasets. The error is that of reading the
// folder or of ctx; problems of datasets are in [Registry.List].
func (r *Registry) Scan(ctx context.Context) error {
	r.scanning.Lock()
	defer r.scanning.Unlock()
	folders, err := r.folders()
	r.mu.Lock()
	r.failure = err
	r.mu.Unlock()
	if err != nil {
		r.scanned.open()
		return err
	}
	old := map[string]*entry{}
	for _, e := range r.snapshot() {
		old[e.folder] = e
	}
	owners := map[string]string{} // folder of each id
	var entries []*entry
	left := r.o.MaxMemory // before a dataset is loaded
	for _, folder := range folders {
		left -= old[folder].memory()
	}
	for _, folder := range folders {
		e := r.look(folder, old[folder], owners, left)
		entries = append(entries, e)
		delete(old, folder)
	}
	for folder, e := range old {
		r.o.Log.Info("dataset removed", "dataset", e.id(), "folder", folder)
	}
	r.publish(entries)
	for i, e := range entries {
		if e.state != Loading {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.nextBase += RowsEach
		next := *e
		var f findings
		b := &budget{left: r.left(entries, i), total: r.o.MaxMemory}
		available := b.left
		next.set, f = load(ctx, e.manifest, e.place, r.nextBase, r.o.Written, b)
		if next.set == nil && b.short {
			next.short = max(available, 1)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if next.set != nil {
			next.set.embedders, next.set.explain = r.o.Embedders, r.o.Explain
		}
		next.found = append(slices.Clone(e.found), f...)
		if next.set != nil {
			next.enter(Ready, r.o.Log)
		} else {
			next.enter(Error, r.o.Log)
			next.failedAt = time.Now()
		}
		next.log(r.o.Log)
		entries = slices.Clone(entries)
		entries[i] = &next
		r.publish(entries)
		close(e.loaded)
	}
	r.loaded.open()
	r.scanned.open()
	return nil
}

// left returns the memory that all entries but one leave. The one is loaded: its
// old state is dropped when the new one is complete.
func (r *Registry) left(entries []*entry, loading int) int64 {
	left := r.o.MaxMemory
	for i, e := range entries {
		if i != loading {
			left -= e.memory()
		}
	}
	return max(left, 0)
}

// memory returns the memory of an entry, in bytes. e may be nil.
func (e *entry) memory() int64 {
	if e == nil || e.set == nil {
		return 0
	}
	return e.set.memory
}

// folders returns the paths of the folders with a manifest, in the order of a
// walk.
func (r *Registry) folders() ([]string, error) {
	found, err := findFolders(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if !r.missing {
			r.missing = true
			r.o.Log.Warn("the folder of the datasets does not exist; it is used as soon as it does", "dir", r.dir)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the folder of the datasets: %w: %w", err, errkind.Unavailable)
	}
	r.missing = false
	for _, link := range found.links {
		if !r.reported[link] {
			r.reported[link] = true
			r.o.Log.Warn("a link to a dataset is not followed: copy the folder here, or name the folder that it is in",
				"link", r.path(link))
		}
	}
	for _, err := range found.skipped {
		if problem := err.Error(); !r.reported[problem] {
			r.reported[problem] = true
			r.o.Log.Warn(problem)
		}
	}
	return found.manifests, nil
}

// look returns the entry of a folder: old if nothing has changed, or a new one
// that is Invalid, Error or Loading. It records in owners that the folder has
// its id, unless an earlier one has. left is the memory that is not used.
func (r *Registry) look(folder string, old *entry, owners map[string]string, left int64) *entry {
	dir := r.path(folder)
	e := &entry{folder: folder, state: Unloaded, loaded: make(chan struct{})}
	manifest := filepath.Join(dir, manifestName)
	e.files[0] = stampOf(manifest)
	e.manifest, e.found = readManifest(manifest)
	invalid := e.found.failed()
	if owner, taken := owners[e.manifest.ID]; !invalid && taken {
		e.owner = owner
		e.found.fail(ruleUnique, "the dataset in folder %s has the same id and is used: give one of them another id",
			shown(owner))
	} else if !invalid {
		owners[e.manifest.ID] = folder
		e.found.pass(ruleUnique, "%s", e.manifest.ID)
		var located findings
		e.place, located = locate(e.manifest, dir, r.dir)
		e.found = append(e.found, located...)
	}
	e.files[1], e.files[2] = stampOf(e.place.index), stampOf(e.place.metadata)
	if old != nil && old.state != Loading && slices.EqualFunc(old.files[:], e.files[:], stamp.same) &&
		(old.short == 0 || left <= old.short) &&
		slices.Equal(old.found[:min(len(e.found), len(old.found))], e.found) {
		return old
	}
	e.enter(Validating, r.o.Log)
	switch {
	case invalid, e.owner != "":
		e.enter(Invalid, r.o.Log)
	case e.found.failed():
		e.enter(Error, r.o.Log)
	default:
		e.enter(Loading, r.o.Log)
		if old != nil && old.set != nil && old.manifest.ID == e.manifest.ID {
			e.set = old.set
		}
		return e
	}
	if old != nil && old.state == e.state && slices.Equal(old.found, e.found) {
		return old // it was logged
	}
	e.failedAt = time.Now()
	close(e.loaded)
	e.log(r.o.Log)
	return e
}

// enter sets the state of an entry that is not published yet.
func (e *entry) enter(s State, log *slog.Logger) {
	log.Debug("dataset", "folder", e.folder, "from", e.state, "to", s)
	e.state = s
}

// log logs the outcome of loading.
func (e *entry) log(log *slog.Logger) {
	if e.state == Ready {
		log.Info("dataset ready", "dataset", e.id(), "documents", len(e.set.docs), "vectors", e.set.vectors.index.Len())
	}
	for _, p := range e.found.problems() {
		level := slog.LevelWarn
		if p.Status == Failed {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "dataset "+e.id()+": "+p.String(), "folder", e.folder)
	}
}

// id returns the id of the manifest, or the name of the folder.
func (e *entry) id() string { return cmp.Or(e.manifest.ID, sanitize.Short(e.folder, maxID, 4*maxID)) }

// publish makes entries those that are searched and listed.
func (r *Registry) publish(entries []*entry) {
	r.mu.Lock()
	r.entries = entries
	r.mu.Unlock()
	r.found.open()
}

// snapshot returns the entries.
func (r *Registry) snapshot() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries
}

// wait waits until the folder was read for the first time.
func (r *Registry) wait(ctx context.Context) error {
	select {
	case <-r.found.opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listTime is how long a list waits for the datasets to be loaded.
const listTime = 3 * time.Second

// List returns all datasets, sorted by id, with those that cannot be searched.
// It waits for the first scan. Datasets that take more than three seconds to load
// are listed as Loading. The error is that of ctx.
func (r *Registry) List(ctx context.Context) ([]Info, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	enough := time.NewTimer(listTime)
	defer enough.Stop()
	select {
	case <-r.loaded.opened:
	case <-enough.C:
	case <-ctx.Done():
	}
	return r.Current(), nil
}

// Current is like List, but does not wait. Before the first scan there are no datasets.
func (r *Registry) Current() []Info {
	var list []Info
	for _, e := range r.snapshot() {
		list = append(list, r.info(e))
	}
	slices.SortStableFunc(list, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// info describes an entry.
func (r *Registry) info(e *entry) Info {
	i := Info{
		ID: e.id(), Name: sanitize.Line(e.manifest.Name), Description: sanitize.Line(e.manifest.Description),
		DefaultTopK: cmp.Or(e.manifest.DefaultTopK, defaultTopK), State: e.state,
		ManifestPath: filepath.Join(r.path(e.folder), manifestName),
		Problems:     e.found.problems(), FailedAt: e.failedAt,
		License: e.manifest.License, Version: e.manifest.Version,
	}
	for _, f := range e.files {
		i.Bytes += f.size()
	}
	if e.set != nil {
		i.Vectors, i.Documents, i.Model = e.set.vectors.index.Len(), len(e.set.docs), e.set.model
		if x := e.set.vectors.stored; x.Count > 0 {
			i.Index, i.Metric, i.Dimensions = x.Kind(), x.Metric.String(), x.Dim
		}
		if v := e.set.meaning.known.Load(); v != nil && v.finding.Status == Warning {
			i.Problems = append(i.Problems, v.finding)
		}
		if e.state == Loading {
			i.State = Ready // in its old state
		}
	}
	return i
}

// find returns the dataset with an id, or an [*UnknownDataset].
func (r *Registry) find(id string) (*entry, error) {
	var ids []string
	var bad *entry
	for _, e := range r.snapshot() {
		switch {
		case e.owner != "":
			continue // listed by its owner
		case e.id() == id && e.state != Invalid:
			return e, nil
		case e.id() == id:
			bad = e
		case e.state == Ready || e.state == Loading:
			ids = append(ids, e.id())
		}
	}
	if bad != nil {
		return bad, nil
	}
	return nil, unknown(id, ids)
}

// get returns the set of a dataset, for which it waits.
func (r *Registry) get(ctx context.Context, id string) (*Set, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	for {
		e, err := r.find(id)
		switch {
		case err != nil:
			return nil, err
		case e.set != nil:
			return e.set, nil
		case e.state != Loading:
			return nil, r.bad(e)
		}
		select {
		case <-e.loaded:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// bad returns the error for using a dataset that is Invalid or in Error.
func (r *Registry) bad(e *entry) error {
	return fmt.Errorf("dataset %s cannot be searched, correct it and search again: %s: %w", e.id(),
		r.info(e).Failure(), errkind.Corrupt)
}
