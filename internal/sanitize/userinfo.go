package sanitize

import (
	"regexp"
	"strings"
)

// userinfo matches the user and the password in URLs.
var userinfo = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/?#"']+@`)

// HideUserinfo returns a text with *** in place of users and passwords in URLs.
func HideUserinfo(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	return userinfo.ReplaceAllString(s, "${1}***@")
}
