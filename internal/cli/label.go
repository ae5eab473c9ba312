package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// labelPattern is what a label may look like: what Fess allows for one.
var labelPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// maxDomainID is the longest domain id: with it the longest tool name stays
// under 64 characters with a client's prefix.
const maxDomainID = 24

// slug makes a label of the last element of a path: in lower case, with "-" for
// every run of characters other than a to z and 0 to 9. If nothing is left, it is
// "source".
func slug(path string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(filepath.Base(path)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "source"
}

// domainID makes a domain id of a label: lower case, "_" for "-" and ".", at
// most maxDomainID characters. Of "kb" it is "kb_docs", because the tools of the
// knowledge base have names that begin with "kb_".
func domainID(label string) string {
	id := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(label))
	if id == "kb" {
		return "kb_docs"
	}
	return id[:min(len(id), maxDomainID)]
}

// addSource returns the source of the folder or file at path, and whether it is
// new. A path that is known keeps its label. A new one gets the given label or, for
// "", the slug of the path, with a number if another source has it.
func addSource(known []document.Source, path, label string) (src document.Source, added bool, err error) {
	taken := map[string]string{}
	for _, k := range known {
		taken[k.Label] = k.Path
		if k.Path != path {
			continue
		}
		if label != "" && label != k.Label {
			return src, false, fmt.Errorf("%s already has the label %q; to give it another one, first type: knowhow sources rm %s: %w",
				path, k.Label, k.Label, errkind.Conflict)
		}
		return k, false, nil
	}
	if label != "" {
		if other, ok := taken[label]; ok {
			return src, false, fmt.Errorf("--label %s: the label belongs to %s; choose another one, or first type: knowhow sources rm %s: %w",
				label, other, label, errkind.Conflict)
		}
		return document.Source{Label: label, Path: path}, true, nil
	}
	base := slug(path)
	label = base
	for n := 2; taken[label] != ""; n++ {
		label = fmt.Sprintf("%s-%d", base, n)
	}
	return document.Source{Label: label, Path: path}, true, nil
}
