package store

import (
	"path"
	"slices"
)

// inspect opens the folders like a sync that changes nothing. The caller must
// close them.
func inspect(o Options) (*syncer, error) {
	o.DryRun = true
	s, err := newSyncer(o)
	if err == nil {
		err = s.open()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Check reports whether the options and their folders can be used, without
// changing anything. Errors are those of [Sync].
func Check(o Options) error {
	o.Log = nil // the sync logs the same warnings
	s, err := inspect(o)
	if err == nil {
		s.close()
	}
	return err
}

// sourceHashes returns the hashes of the tools from which the last sync
// generated a server's skills, in the form of skill.Skill, sorted. With them,
// the tools of one server can be compared without connecting to the other
// servers. Errors are those of [Current].
func sourceHashes(o Options, server string) ([]string, error) {
	s, err := inspect(o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var hashes []string
	for _, e := range s.prev.Skills {
		if e.Server == server {
			hashes = append(hashes, e.SourceHash)
		}
	}
	slices.Sort(hashes)
	return hashes, nil
}

// Current reports whether the last sync had the same options and configuration
// hash, all servers answered, and its skills and links are unchanged. In that
// case, no server has to be asked.
func Current(o Options) (bool, error) {
	s, err := inspect(o)
	if err != nil {
		return false, err
	}
	defer s.close()
	return s.current()
}

// current implements [Current].
func (s *syncer) current() (bool, error) {
	l := s.prev
	switch {
	case s.raw == nil, l.ConfigHash != s.o.ConfigHash, len(l.Failed) > 0,
		l.OutputDir != s.out.key, !slices.Equal(l.LinkDirs, s.linkKeys()):
		s.log.Debug("the lock file is missing or of other settings", "config_hash", s.o.ConfigHash, "before", l.ConfigHash)
		return false, nil
	}
	texts := map[string][]byte{}
	for name, e := range l.Skills {
		for p, hash := range e.Files {
			content := s.out.read(path.Join(name, p))
			if content == nil || p != skillFile && sum(content) != hash {
				s.log.Debug("a file is missing or changed", "path", s.out.show(path.Join(name, p)))
				return false, nil
			}
			if p == skillFile {
				texts[name] = content
			}
		}
		if ok, err := s.connected(name, e); !ok || err != nil {
			return false, err
		}
	}
	hash := hashTexts(texts)
	s.log.Debug("computed the hash of all skills", "files", len(texts), "hash", hash, "before", l.Hash)
	return hash == l.Hash, nil
}

// connected reports whether the links of a skill are unchanged since the last
// sync.
func (s *syncer) connected(name string, e *entry) (bool, error) {
	it := &item{name: name, entry: *e, prev: e}
	for _, f := range s.links {
		if !e.linked(f) {
			continue
		}
		state, err := s.look(f, name, e, it)
		if err != nil {
			return false, err
		}
		copyOK := state == copied && sum(f.read(path.Join(name, skillFile))) == e.Files[skillFile]
		if state != linked && !copyOK {
			s.log.Debug("a link is missing or changed", "path", f.show(name))
			return false, nil
		}
	}
	return true, nil
}
