package ingest

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxLeftOut is the maximum number of paths in [Result.LeftOutPaths].
const maxLeftOut = 5000

// A LeftOut is a file or a folder (with a slash at the end) that is not indexed.
type LeftOut struct {
	Path   string
	Reason Reason
}

// leaveOut returns the reason why a rule that applies to every folder leaves
// out a file or folder with this name, or "".
func leaveOut(name string, dir bool) Reason {
	switch {
	case strings.HasPrefix(name, "."):
		return Hidden
	case dir && thirdParty[name]:
		return ThirdParty
	case dir && name == "__pycache__":
		return Generated
	case dir:
		return ""
	}
	lower := strings.ToLower(name)
	switch {
	case lockFiles[lower]:
		return LockFile
	case generatedNames.MatchString(lower):
		return Generated
	case backupNames.MatchString(lower):
		return Backup
	}
	return ""
}

// leaveOutFolder returns the reason why a folder with these entries is left
// out, or "".
func leaveOutFolder(name string, entries []fs.DirEntry) Reason {
	has := func(file string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == file })
	}
	switch {
	case has("pyvenv.cfg"), // a virtual environment of Python
		name == "vendor" && (has("modules.txt") || has("autoload.php")): // of Go and of PHP's Composer
		return ThirdParty
	case has("CACHEDIR.TAG"), // https://bford.info/cachedir/
		has("pagefind-entry.json"): // a search index of Pagefind
		return Generated
	}
	return ""
}

// leftOutName returns the reason why a rule that applies to every folder leaves
// out a file because of an element of its name, or "". path is the path of the file,
// or of the folder (with a slash at the end) that is left out.
func leftOutName(name string) (path string, reason Reason) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		folder := i < len(parts)-1
		if r := leaveOut(p, folder); r != "" {
			if path = strings.Join(parts[:i+1], "/"); folder {
				path += "/"
			}
			return path, r
		}
	}
	return "", ""
}

// thirdParty are the names of folders into which package managers install
// packages.
var thirdParty = set("node_modules bower_components jspm_packages site-packages dist-packages")

// lockFiles are the files, in lower case, in which package managers record the
// versions of packages.
var lockFiles = set(`package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock cargo.lock go.sum
	go.work.sum poetry.lock pipfile.lock uv.lock pdm.lock pixi.lock conda-lock.yml composer.lock gemfile.lock
	mix.lock rebar.lock pubspec.lock packages.lock.json flake.lock podfile.lock package.resolved
	cartfile.resolved gradle.lockfile chart.lock module.bazel.lock`)

// generatedNames matches the names, in lower case, of minified files, source
// maps, generated code, and the search indexes of tools for documentation:
// Sphinx, mdBook, MkDocs, Docusaurus, rustdoc, Javadoc, Doxygen, GitBook and
// VitePress.
var generatedNames = regexp.MustCompile(
	`\.min\.(js|mjs|css|html|json)$|[.-]min\.(js|css)$|\.(js|mjs|cjs|css|ts)\.map$|` +
		`\.pb\.(go|cc|h|gw\.go)$|_pb2(_grpc)?\.pyi?$|_pb\.(js|d\.ts|rb)$|\.g\.dart$|\.freezed\.dart$|\.g\.cs$|` +
		`\.designer\.cs$|^search[_-]?index([_.-].*)?\.js(on)?$|^search_plus_index\.json$|^lunr-index.*\.json$|` +
		`^(member|type|package|module|tag)-search-index\.js$|^searchdata\.js$|^@?localsearchindex.*\.js$|^searchtools\.js$`)

// backupNames matches the names, in lower case, of older or unsaved versions of
// files that editors, patch and git keep beside them, and of rejected patches.
var backupNames = regexp.MustCompile(`.~$|^#.+#$|.\.(bak|backup|orig|rej|sw[op])$`)

// Bounds of isGenerated.
const (
	generatedHead = 4 << 10 // bytes in which a file is marked as generated
	longLine      = 1000    // bytes of a line that people do not write
)

// generatedMark matches the mark of generated code: that of Go
// (https://go.dev/s/generatedcode), which other generators use too, and the
// @generated of others.
var generatedMark = regexp.MustCompile(`(?im)^[ \t]*(//|#|/\*+|\*|--|;+|%|<!--)[^\n]*` +
	`(code generated [^\n]*do not edit|@generated\b|auto-?generated[^\n]*do not (edit|modify)|` +
	`do not (edit|modify)[^\n]*auto-?generated)`)

// isGenerated reports whether a file of source code is generated or minified,
// by its first lines and the length of its lines.
func isGenerated(name string, data []byte) bool {
	ext := strings.ToLower(path.Ext(name))
	if !codeExtensions[ext] {
		return false
	}
	if generatedMark.Match(data[:min(len(data), generatedHead)]) {
		return true
	}
	if ext != ".js" && ext != ".mjs" && ext != ".cjs" && ext != ".css" {
		return false
	}
	long := 0 // bytes in long lines
	for rest := data; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if rest = after; len(line) > longLine {
			long += len(line)
		}
	}
	return long*2 > len(data)
}

// codeExtensions are the extensions of files that may be generated code.
var codeExtensions = set(`.go .py .pyi .js .mjs .cjs .jsx .ts .tsx .css .scss .java .kt .scala .c .h .cc .cpp .cxx .hpp .cs .fs .vb
	.rs .rb .php .pl .swift .m .mm .dart .lua .r .jl .ex .exs .erl .hs .ml .sql .sh .proto .graphql .thrift`)

// set returns the set of the words of s.
func set(s string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(s) {
		words[word] = true
	}
	return words
}
