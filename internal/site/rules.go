package site

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/ignore"
)

// A rules says which pages are documents.
type rules struct{ include, exclude ignore.Patterns }

func newRules(include, exclude []string) rules {
	return rules{ignore.Parse(strings.Join(include, "\n")), ignore.Parse(strings.Join(exclude, "\n"))}
}

// excluded reports whether the page with this path is left out and not visited.
func (r rules) excluded(path string) bool { return !r.exclude.Empty() && matches(r.exclude, path) }

// included reports whether the page with this path can be a document. Other pages are
// visited for their links.
func (r rules) included(path string) bool { return r.include.Empty() || matches(r.include, path) }

// matches reports whether patterns match a path, without its query, or a folder
// above it.
func matches(patterns ignore.Patterns, name string) bool {
	name, _, _ = strings.Cut(name, "?")
	dir := strings.HasSuffix(name, "/")
	for i := range name {
		if name[i] == '/' && i > 0 && patterns.Match(name[:i], true) == ignore.Ignored {
			return true
		}
	}
	return !dir && patterns.Match(name, false) == ignore.Ignored
}

// rulesKey returns a text that differs for other rules.
func rulesKey(include, exclude []string, max int) string {
	key, _ := json.Marshal([]any{include, exclude, max}) // always succeeds
	return string(key)
}

// unread are the extensions of files without a text that is worth a request.
var unread = func() map[string]bool {
	set := map[string]bool{}
	for ext := range strings.FieldsSeq(`png jpg jpeg gif webp avif bmp ico tif tiff psd mp3 mp4 m4a m4v webm ogg oga ogv mov avi mkv
		wav flac css js mjs map woff woff2 ttf otf eot exe msi dmg pkg iso img deb rpm apk jar war whl gem tar tgz xz bz2 7z rar
		zst so dll bin wasm class pyc`) {
		set["."+ext] = true
	}
	return set
}()

// hasNoText reports whether the path of an address has the extension of a file
// without text. Pages about files, as in wikis (File:Map.png), are no such files.
func hasNoText(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	name := address[strings.LastIndexByte(address, '/')+1:]
	return unread[strings.ToLower(path.Ext(name))] && !strings.Contains(name, ":")
}
