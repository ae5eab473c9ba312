package fess

import (
	"context"
	"net/http"
	"strconv"
	"unicode/utf16"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// Limits of Fess's API v2. Beyond the first two it answers with status 400
// (api.v2.param.max.*). It fails silently with longer lists of facets, and
// clamps the counts of a facet (Fess 15.7).
const (
	maxV2Text   = 1000 // UTF-16 units of one value
	maxV2Values = 100  // values of one parameter
	maxV2Facet  = 1000 // counts of one field
)

// arguments are the names of the limited parameters that callers use.
var arguments = map[string]string{wire.Query: "query", wire.ExtraQuery: "query", wire.FieldLabel: "labels",
	"label": "labels", wire.FacetField: "facets.field", wire.FacetQuery: "facets.query",
	wire.FacetMissing: "facets.missing", "field": "fields", "fn": "fields"}

// checkV2 refuses parameters beyond the limits of API v2.
func checkV2(params []param) error {
	values := map[string]int{}
	for _, p := range params {
		name, ok := arguments[p.name]
		if !ok {
			name = p.name
		}
		if len(p.value) > maxV2Text && len(utf16.Encode([]rune(p.value))) > maxV2Text {
			return &errkind.Argument{Name: name, Value: p.value,
				Want: "at most " + strconv.Itoa(maxV2Text) + " characters, the limit of Fess"}
		}
		if values[p.name]++; values[p.name] > maxV2Values {
			return &errkind.Argument{Name: name, Value: p.value,
				Want: "at most " + strconv.Itoa(maxV2Values) + " values, the limit of Fess"}
		}
		if n, err := strconv.Atoi(p.value); p.name == wire.FacetSize && err == nil && n > maxV2Facet {
			return &errkind.Argument{Name: "facets.size", Value: n,
				Want: "an integer from 1 to " + strconv.Itoa(maxV2Facet)}
		}
	}
	return nil
}

// refusedToken reports whether a status of 500 from API v2 means that the
// access token is invalid. Fess 15.7 answers an invalid token and every other
// failure in this way. If the engine is healthy, listing the labels, which are
// in the server's memory, fails only because of the token.
func (c *Client) refusedToken(ctx context.Context, a *answer) bool {
	if versionOf(a.path) != v2 || c.token == "" && !c.passThrough {
		return false
	}
	health, err := c.put(ctx, v2, question{to: healthCall})
	if err != nil || health.status != http.StatusOK {
		return false
	}
	if a.is(labelsCall) {
		return true
	}
	labels, err := c.put(ctx, v2, question{to: labelsCall})
	return err == nil && labels.status == http.StatusInternalServerError
}
