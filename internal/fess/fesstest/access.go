package fesstest

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// roles are the roles of a caller. A guest has nil.
type roles []string

// canSee reports whether a caller with these roles may see a document.
func (r roles) canSee(d doc) bool {
	return d.more.Roles == nil || slices.ContainsFunc(d.more.Roles,
		func(s string) bool { return slices.Contains(r, s) })
}

// authenticate returns the roles of the caller and reports whether the access
// token is valid.
func (h *Handler) authenticate(r *http.Request) (roles, bool) {
	given := r.Header.Get("Authorization")
	token := strings.TrimPrefix(given, "Bearer ")
	owner, known := h.o.Roles[token]
	switch {
	case given == "":
		return nil, h.o.Token == ""
	case strings.ContainsAny(token, " \t"):
		return nil, false
	}
	return owner, known || h.o.Token != "" && token == h.o.Token
}

// authorize is authenticate, but writes an error if the access token is not
// valid.
func (h *Handler) authorize(w http.ResponseWriter, r *http.Request) (roles, bool) {
	given := r.Header.Get("Authorization")
	if given != "" && h.engineState() == "down" {
		h.fail(w, http.StatusInternalServerError)
		return nil, false
	}
	caller, ok := h.authenticate(r)
	if ok {
		return caller, true
	}
	reason := "invalid_token"
	if words := strings.Fields(given); len(words) > 2 || len(words) == 2 && words[0] != "Bearer" {
		reason = "invalid_request"
	}
	w.Header().Set("WWW-Authenticate", `Bearer error="`+reason+`"`)
	h.fail(w, http.StatusUnauthorized)
	return nil, false
}

// labels returns the labels that are listed for the caller.
func (h *Handler) labels(r *http.Request, caller roles) []wire.Label {
	all := []wire.Label{}
	add := func(l search.Label) {
		all = append(all, wire.Label{Label: wire.Text(l.Name), Value: new(wire.Text(l.Value))})
	}
	for _, l := range h.o.Labels {
		add(l)
	}
	for _, l := range h.o.HiddenLabels {
		if (l.Role == "" || slices.Contains(caller, l.Role)) &&
			(l.Locale == "" || l.Locale == r.Header.Get("Accept-Language")) {
			add(l.Label)
		}
	}
	return all
}

// place returns a condition on the location of documents. A distance without a
// point and a point without a distance are no condition.
func place(values url.Values) (func(doc) bool, error) {
	points, distance := wire.Values(values, wire.GeoPoint), values.Get(wire.GeoDistance)
	if len(points) == 0 || distance == "" {
		return func(doc) bool { return true }, nil
	}
	number := strings.TrimRight(distance, "abcdefghijklmnopqrstuvwxyz")
	limit, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return nil, errInvalid
	}
	if strings.HasSuffix(distance, "km") {
		limit *= 1000
	}
	for _, p := range points {
		if _, ok := radians(p); !ok {
			return nil, errInvalid
		}
	}
	return func(d doc) bool {
		at, ok := radians(d.more.Point)
		return ok && slices.ContainsFunc(points, func(p string) bool {
			center, _ := radians(p)
			return metres(at, center) <= limit
		})
	}, nil
}

// radians parses a point.
func radians(point string) ([2]float64, bool) {
	lat, lon, _ := strings.Cut(point, ",")
	y, latErr := strconv.ParseFloat(lat, 64)
	x, lonErr := strconv.ParseFloat(lon, 64)
	return [2]float64{y * math.Pi / 180, x * math.Pi / 180}, latErr == nil && lonErr == nil && math.Abs(y) <= 90 &&
		math.Abs(x) <= 180
}

// metres returns the distance of two points on the globe.
func metres(a, b [2]float64) float64 {
	lat, lon := math.Sin((b[0]-a[0])/2), math.Sin((b[1]-a[1])/2)
	return 2 * 6_371_009 * math.Asin(math.Sqrt(lat*lat+math.Cos(a[0])*math.Cos(b[0])*lon*lon))
}
