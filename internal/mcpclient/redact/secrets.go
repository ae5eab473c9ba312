package redact

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"
)

// names matches names of secrets. "auth" and "pass" must be whole words in a
// name, as in proxy_auth, auth-key and userPass, because author and bypass do
// not name secrets.
const names = `token|secret|password|passwd|passphrase|pwd|authorization|bearer|cookie|credential|jwt` +
	`|(?:api|private|access)[-_. ]?key|session[-_. ]?id` +
	`|(?:\b|[_\d])(?:auth|pass)(?:\b|[_\d])` +
	`|(?-i:(?:\b|[_\d])(?:[Aa]uth|[Pp]ass)[A-Z]|[a-z](?:Auth|Pass)(?:\b|[A-Z_\d]))`

// value matches the value after such a name: a quoted string, whose opening
// quote is escaped inside another string, a flat list or object, or a word.
const value = `\\+"[^"]*"?|"(?:[^"\\]|\\[\s\S])*"?|'[^'\n]*'?|\[[^\]]*\]?|\{[^}]*\}?|[^\s"]+`

// Patterns of secrets. In text, groups match the parts that are kept.
const (
	secretName = `(?i)` + names
	secretPair = `(?i)(cookies?\s*:\s*)[^\r\n"]+` + // a header, whose value has spaces
		`|((?:` + names + `)[\w-]*\\*["']?\s*[:=]\s*)(?:(?:bearer|basic|digest|negotiate|token)\s+)?(?:` + value + `)` +
		`|(bearer\s+)\S+`
	userinfo = `(?i)(\b[a-z][a-z0-9+.-]*:(?:\\?/){2}[^\s/?#:@"]*:)[^\s/"]+@`
)

// minOpaque is the minimum length in bytes at which the value of a variable
// counts as a secret although its name does not.
const minOpaque = 8

// ordinary are variables of every environment, separated by spaces. Their
// values are not secrets, and hiding them would make much text illegible.
const ordinary = " COMPUTERNAME DISPLAY EDITOR HOME HOSTNAME LANG LANGUAGE LOGNAME OLDPWD OS PATH PWD SHELL " +
	"SSH_AUTH_SOCK" +
	" TEMP TERM TMP TMPDIR TZ USER USERDOMAIN USERNAME USERPROFILE "

// Sources are the sources of a server's secrets. All values of Env and Headers
// are secret. In Args and URL, values with the name of a secret are, such as
// the value of --api-key or of ?token=. In Variables, values with such a name
// are, and those that look like a secret: at least 8 bytes without white space
// and path separators. Variables of every environment, such as HOME and USER,
// are not.
type Sources struct {
	Env       map[string]string
	Headers   map[string]string
	Args      []string
	URL       string
	Variables []string // names of environment variables that were used in the settings
}

// secrets returns the values to hide.
func (r *Redactor) secrets(s Sources) []string {
	values := slices.Collect(maps.Values(s.Env))
	for _, v := range s.Headers {
		values = append(values, v)
		if _, credentials, ok := strings.Cut(v, " "); ok {
			values = append(values, credentials)
		}
	}
	for _, variable := range s.Variables {
		if v := os.Getenv(variable); r.secretVariable(variable, v) {
			values = append(values, v)
		}
	}
	for i, arg := range s.Args {
		if flag, v, ok := strings.Cut(arg, "="); ok && r.name.MatchString(flag) {
			values = append(values, v)
		} else if strings.HasPrefix(arg, "-") && r.name.MatchString(arg) && i+1 < len(s.Args) &&
			!strings.HasPrefix(s.Args[i+1], "--") {
			values = append(values, s.Args[i+1])
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		if password, ok := u.User.Password(); ok {
			values = append(values, password)
		}
		for name, v := range u.Query() {
			if r.name.MatchString(name) {
				values = append(values, v...)
			}
		}
	}
	return values
}

// secretVariable reports whether a variable in the settings is a secret.
func (r *Redactor) secretVariable(variable, v string) bool {
	upper := strings.ToUpper(variable)
	switch {
	case strings.HasPrefix(upper, "LC_"), strings.Contains(ordinary, " "+upper+" "):
		return false
	case r.name.MatchString(variable):
		return true
	}
	return len(v) >= minOpaque && !strings.ContainsAny(v, `/\`) && !strings.ContainsFunc(v, unicode.IsSpace)
}
