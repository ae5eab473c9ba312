package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	leftOutPage = 50   // paths in an answer
	maxText     = 1000 // of a parameter, in bytes
)

// A leftOutAnswer is a part of the paths that are left out of a source.
type leftOutAnswer struct {
	Source string `json:"source"`
	Total  int    `json:"total"` // of the paths that match
	Start  int    `json:"start"`
	Paths  []Path `json:"paths"`
}

// serveLeftOut sends the paths that are left out of the source with the label in the
// parameter source, from the number in start on. With the parameter q, these are the paths
// that contain it, in capital or small letters, or whose reason or message does.
func (c *console) serveLeftOut(w http.ResponseWriter, r *http.Request) {
	answer, text, err := leftOutQuery(r.URL.Query())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	paths, err := c.o.LeftOut(r.Context(), answer.Source)
	answer.choose(paths, text)
	c.send(w, r, answer, err)
}

// leftOutQuery returns what the parameters ask for.
func leftOutQuery(q url.Values) (answer leftOutAnswer, text string, err error) {
	if answer.Source, err = parameter(q, "source", 1); err != nil {
		return answer, "", err
	}
	if text, err = parameter(q, "q", 0); err != nil {
		return answer, "", err
	}
	if s := q.Get("start"); s != "" {
		if answer.Start, err = strconv.Atoi(s); err != nil || answer.Start < 0 {
			return answer, "", &errkind.Argument{Name: "start", Value: s, Want: "an integer from 0 on"}
		}
	}
	return answer, text, nil
}

// parameter returns a parameter of a request, which has at least the given number of
// bytes.
func parameter(q url.Values, name string, least int) (string, error) {
	s := q.Get(name)
	if len(s) < least || len(s) > maxText || !utf8.ValidString(s) {
		return "", &errkind.Argument{Name: name, Value: s, Want: fmt.Sprintf("%d to %d bytes of UTF-8", least, maxText)}
	}
	return s, nil
}

// choose adds those of the paths that contain a text to the answer, from Start on.
func (a *leftOutAnswer) choose(paths []Path, text string) {
	a.Paths = []Path{}
	text = strings.ToLower(text)
	for _, p := range paths {
		if !contains(p.Path, text) && !contains(p.Reason, text) && !contains(p.Message, text) {
			continue
		}
		if a.Total >= a.Start && len(a.Paths) < leftOutPage {
			a.Paths = append(a.Paths, p)
		}
		a.Total++
	}
}

// contains reports whether s contains a text in small letters, ignoring capitals.
func contains(s, text string) bool { return strings.Contains(strings.ToLower(s), text) }
