package document

import (
	"fmt"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits on documents.
const (
	MaxID      = 512 // bytes of an ID, which is the limit of OpenSearch
	MaxTags    = 200 // of a document, and of a Tagging
	MaxTagSize = 200 // bytes of a tag
)

// Check returns an error of kind Invalid if a change is malformed, whatever the
// store: if it does not make exactly one change, or has a tag or a text that
// cannot be stored, or a document without an ID, a label or a path, with an ID of
// more than MaxID bytes or with a chunk outside its text.
func (c Change) Check() error {
	n := 0
	for _, set := range []bool{c.Put != nil, c.Delete != nil, c.Tag != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("a change must put, delete or tag a document, and no more than one of these: %w",
			errkind.Invalid)
	}
	if c.Tag != nil {
		if err := CheckTags(c.Tag.Add); err != nil {
			return err
		}
		return CheckTags(c.Tag.Remove)
	}
	d := c.Put
	if d == nil {
		return nil
	}
	if err := CheckTags(d.Tags); err != nil {
		return err
	}
	switch {
	case d.ID == "" || d.Label == "" || d.Path == "":
		return d.Reject("has no ID, no label or no path")
	case len(d.ID) > MaxID:
		return d.Reject(fmt.Sprintf("has an ID of more than %d bytes", MaxID))
	case !utf8.ValidString(d.Text):
		return d.Reject("has a text that is not UTF-8")
	}
	for _, k := range d.Chunks {
		if k.Offset < 0 || k.Length < 0 || k.Offset > len(d.Text) || k.Length > len(d.Text)-k.Offset {
			return d.Reject("has a chunk outside its text")
		}
	}
	return nil
}

// Reject returns an error of kind Invalid for a document that cannot be stored.
// The message names the document, followed by why.
func (d *Document) Reject(why string) error {
	return fmt.Errorf("document %q of label %q %s: %w", d.Path, d.Label, why, errkind.Invalid)
}

// Missing returns the error for a document that does not exist or that the caller
// may not see.
func Missing(id string) error {
	if len(id) > 80 {
		id = Truncate(id, 80) + "…"
	}
	return fmt.Errorf("document %q does not exist, or has none of the labels asked for: %w", id, errkind.NotFound)
}

// CheckFrom returns an error of kind Conflict if the document has another label than
// it must have.
func (t Tagging) CheckFrom(label string) error {
	if t.From != "" && t.From != label {
		return fmt.Errorf("the document is no longer under the label %q: try again: %w", t.From, errkind.Conflict)
	}
	return nil
}

// CheckTagCount returns an error of kind Invalid if n is more tags than a
// document can have.
func CheckTagCount(n int) error {
	if n > MaxTags {
		return fmt.Errorf("%d tags are too many: a document can have at most %d: %w", n, MaxTags, errkind.Invalid)
	}
	return nil
}

// CheckTags returns an error of kind Invalid if a tag cannot be stored.
func CheckTags(tags []string) error {
	if err := CheckTagCount(len(tags)); err != nil {
		return err
	}
	for _, tag := range tags {
		if _, ok := TagLabel(tag); ok || tag == "" || len(tag) > MaxTagSize || !utf8.ValidString(tag) {
			return fmt.Errorf("tag %q cannot be stored: a tag has 1 to %d bytes of UTF-8 and does not begin with %q: %w",
				Truncate(tag, MaxTagSize), MaxTagSize, LabelTag(""), errkind.Invalid)
		}
	}
	return nil
}

// Truncate returns at most the first n bytes of s, without a part of a character
// at the end.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
