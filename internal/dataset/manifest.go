package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// manifestName is the name of the file that makes a folder a dataset.
const manifestName = "manifest.json"

// Limits of a manifest.
const (
	maxManifest    = 10 << 10 // bytes; a manifest must be smaller
	maxID          = 64       // characters, like the next two
	maxName        = 128
	maxDescription = 512
	maxNote        = 100 // of what is shown only

	defaultTopK = 5
	maxTopK     = 100
)

// Rules of a manifest.
const (
	ruleManifest    = "manifest"
	ruleUnique      = "unique id"
	ruleIndexFile   = "index file"
	ruleMetadata    = "metadata file"
	ruleRows        = "rows"
	ruleVectors     = "vectors"
	ruleModel       = "model"
	ruleDefaultTopK = "defaultTopK"
)

// idPattern matches a valid id. Its length is checked separately.
var idPattern = regexp.MustCompile(`^[a-z0-9-]+$`)

// A Manifest describes a dataset. Paths are as written in the file.
type Manifest struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Index       string `json:"index"`
	Metadata    string `json:"metadata"`
	DefaultTopK int    `json:"defaultTopK"`

	// What people are shown; "" if the manifest has none, or no text.
	License string `json:"license,omitempty"`
	Version string `json:"version,omitempty"`
}

// CheckID returns an error that says what is wrong with an id, nil if nothing
// is.
func CheckID(id string) error {
	if !idPattern.MatchString(id) || len(id) > maxID {
		return fmt.Errorf("got %s, want 1 to %d characters of a-z, 0-9 and \"-\"", shown(id), maxID)
	}
	return nil
}

// CheckText returns an error that says what is wrong with a name or description
// of at most most characters, nil if nothing is.
func CheckText(text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimFunc(text, blank) == "":
		return fmt.Errorf("it is empty or blank, want 1 to %d characters", most)
	case n > most:
		return fmt.Errorf("it has %d characters, want at most %d", n, most)
	}
	return nil
}

// blank reports whether r shows nothing.
func blank(r rune) bool { return unicode.IsSpace(r) || sanitize.Invisible(r) }

// shown returns foreign text for a message.
func shown(s string) string { return fmt.Sprintf("%q", sanitize.Short(s, 80, 160)) }

// readManifest reads and checks a manifest. The parts that are valid are set
// even if others are not.
func readManifest(path string) (m Manifest, f findings) {
	data, err := readSmall(path, maxManifest)
	if err != nil {
		f.fail(ruleManifest, "%v", err)
		return m, f
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		f.fail(ruleManifest,
			"it begins with a byte order mark, which JSON does not allow: save it as UTF-8 without one")
		return m, f
	}
	// Members are matched exactly. The struct decoder of encoding/json would
	// accept "ID" for "id".
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		f.fail(ruleManifest, "%s", jsonProblem(data, err))
		return m, f
	}
	if members == nil {
		f.fail(ruleManifest, "it is null, want an object with id, name, description, index and metadata")
		return m, f
	}
	f.pass(ruleManifest, "%d bytes of JSON", len(data))
	text := func(name string, to *string, check func(string) error) {
		var s string
		raw, ok := members[name]
		switch {
		case !ok:
			f.fail(name, "it is missing: add %q to the manifest", name)
		case raw[0] != '"' || json.Unmarshal(raw, &s) != nil:
			f.fail(name, "got %s, want a string", sanitize.Short(string(raw), 40, 80))
		default:
			if err := check(s); err != nil {
				f.fail(name, "%v", err)
				return
			}
			*to = s
			f.pass(name, "%s", sanitize.Short(s, 80, 160))
		}
	}
	limited := func(most int) func(string) error { return func(s string) error { return CheckText(s, most) } }
	text("id", &m.ID, CheckID)
	text("name", &m.Name, limited(maxName))
	text("description", &m.Description, limited(maxDescription))
	text("index", &m.Index, limited(maxManifest))
	text("metadata", &m.Metadata, limited(maxManifest))
	note := func(name string) string {
		var s loose                           // a version may be a number
		_ = json.Unmarshal(members[name], &s) // another value is not shown
		return sanitize.Short(string(s), maxNote, 4*maxNote)
	}
	m.License, m.Version = note("license"), note("version")
	m.DefaultTopK = defaultTopK
	if raw, ok := members[ruleDefaultTopK]; ok {
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil || string(raw) == "null" || n != math.Trunc(n) || n < 1 ||
			n > maxTopK {
			f.fail(ruleDefaultTopK, "got %s, want an integer from 1 to %d", sanitize.Short(string(raw), 40, 80),
				maxTopK)
		} else {
			m.DefaultTopK = int(n)
			f.pass(ruleDefaultTopK, "%d", m.DefaultTopK)
		}
	}
	return m, f
}

// jsonProblem returns what is wrong with JSON, and where.
func jsonProblem(data []byte, err error) string {
	at := int64(-1)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("it is a JSON %s, want an object with id, name, description, index and metadata", e.Value)
	}
	if at < 0 || at > int64(len(data)) {
		return "it is not valid JSON: " + sanitize.Short(err.Error(), 100, 200)
	}
	before := data[:max(at-1, 0)]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	return fmt.Sprintf("it is not valid JSON at line %d, column %d: %s", line, column,
		sanitize.Short(err.Error(), 100, 200))
}

// readSmall reads a regular file that is smaller than limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", plainError(err))
	case int64(len(data)) == limit:
		return nil, fmt.Errorf("it has %d bytes or more, want less: move long texts to the metadata file", limit)
	}
	return data, nil
}

// openRegular opens a regular file. Opening a pipe would wait for a writer. Links
// are refused.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("it cannot be read: %w", plainError(err))
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, errLink
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("it cannot be read: %w", plainError(err))
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errors.New("it was replaced meanwhile")
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("it cannot be read: %w", plainError(err)), file.Close())
	}
	return file, info, nil
}

var errLink = errors.New("it is a link, which is not followed: copy the file here, or name the file itself in the " +
	"manifest")

// plainError returns the cause of a file error, without the path, which the
// message has already.
func plainError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// A place is where the files of a dataset are.
type place struct {
	index, metadata string // absolute paths; "" if not found
}

// locate finds the files of a manifest. A relative path is tried in the folder
// of the manifest, in the working directory, and in the parent of the folder of
// the datasets (root).
func locate(m Manifest, dir, root string) (p place, f findings) {
	bases := []string{dir, ".", filepath.Dir(root)}
	if found, ok := resolve(m.Index, bases); !ok {
		f.fail(ruleIndexFile,
			"there is no %s in the folder of the manifest: create the dataset again, or correct \"index\"",
			shown(m.Index))
	} else if file, others, err := indexFile(found); err != nil {
		f.fail(ruleIndexFile, "%v", err)
	} else {
		p.index = file
		if others > 0 {
			f.warn(ruleIndexFile, "the folder has %d index files, %s is used: let \"index\" name the right one",
				others+1, shown(filepath.Base(file)))
		}
	}
	if found, ok := resolve(m.Metadata, bases); !ok {
		f.fail(ruleMetadata,
			"there is no %s in the folder of the manifest: create the dataset again, or correct \"metadata\"",
			shown(m.Metadata))
	} else {
		p.metadata = found
	}
	return p, f
}

// resolve returns the absolute path of the first of bases that has name.
func resolve(name string, bases []string) (string, bool) {
	if filepath.IsAbs(name) {
		bases = []string{""}
	}
	for _, base := range bases {
		path, err := filepath.Abs(filepath.Join(base, filepath.FromSlash(name)))
		if err != nil {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

// indexFile returns the index file at path: path itself, or the first *.index
// or *.faiss of a folder, and the number of others there.
func indexFile(path string) (file string, others int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", 0, plainError(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return "", 0, errLink
	}
	if !info.IsDir() {
		return path, 0, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", 0, fmt.Errorf("the folder cannot be read: %w", plainError(err))
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); (ext == ".index" || ext == ".faiss") && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return "", 0, errors.New("the folder has no *.index and no *.faiss file: create the dataset again, or " +
			"correct \"index\"")
	}
	slices.Sort(names)
	return filepath.Join(path, names[0]), len(names) - 1, nil
}
