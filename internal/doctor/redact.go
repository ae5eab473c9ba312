package doctor

import "net/url"

// secretURL remembers what is secret in a URL: its user and password, and the values of
// its query.
func (e *examiner) secretURL(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	if password, ok := u.User.Password(); ok {
		e.secret(password)
	}
	for _, values := range u.Query() {
		e.secret(values...)
	}
}

// shown returns a URL for a message: without user, query and fragment.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "a URL that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
