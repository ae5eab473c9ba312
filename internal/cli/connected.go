package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/atomicfile"
	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	// addedFile is the file in the default data folder with the entries for servers at
	// URLs that connect has added. Without it, they look like those of other servers while
	// their server does not run.
	addedFile = "connections.json"

	// maxAdded is how many entries are remembered: the latest ones.
	maxAdded = 200
)

// An addedEntry is an entry for a server at a URL that connect has added, in the file of
// any client.
type addedEntry struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// addedEntries are the contents of [addedFile].
type addedEntries struct {
	Connections []addedEntry `json:"connections"`
}

// addedPath returns the path of [addedFile].
func (v *invocation) addedPath() (string, error) {
	dir, err := defaultData(v.Env)
	return filepath.Join(dir, addedFile), err
}

// added returns the entries for servers at URLs that connect has added, none if the file
// cannot be read.
func (v *invocation) added() []addedEntry {
	path, err := v.addedPath()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(path)
	var list addedEntries
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list.Connections
}

// hasAdded reports whether connect has added an entry for a server at a URL.
func (v *invocation) hasAdded(s clients.Server) bool {
	return s.URL != "" && slices.Contains(v.added(), addedEntry{s.Name, s.URL})
}

// remember remembers an entry for a server at a URL. If that fails, it prints a warning:
// the client can be connected nevertheless. It stays when the entry is removed, because
// other clients may have one too.
func (v *invocation) remember(s clients.Server) {
	if v.hasAdded(s) {
		return
	}
	all := append(v.added(), addedEntry{s.Name, s.URL})
	data, err := json.Marshal(addedEntries{all[max(0, len(all)-maxAdded):]})
	if err == nil {
		err = v.writeAdded(append(data, '\n'))
	}
	if err != nil {
		v.warn(fmt.Sprintf("%s: the entry is recognized only while its server runs", errkind.Message(err)))
	}
}

// writeAdded writes [addedFile].
func (v *invocation) writeAdded(data []byte) error {
	path, err := v.addedPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	t, err := atomicfile.Prepare(path, data, 0o600)
	if err != nil {
		return err
	}
	return t.Commit()
}
