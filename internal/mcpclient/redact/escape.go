package redact

import (
	"strings"

	"knowhow/internal/sanitize"
)

// whiteSpace makes the white space in a line readable.
var whiteSpace = strings.NewReplacer("\t", " ", "\r", "")

// Escape returns [sanitize.Escape] of s, with a blank for a tab and without
// carriage returns, which servers print.
func Escape(s string) string { return sanitize.Escape(whiteSpace.Replace(s)) }
