package fess

import "github.com/knowhow-mcp/knowhow/internal/fess/wire"

// decode decodes a whole answer.
func decode(a *answer, v any) error {
	read := wire.Decode
	if versionOf(a.path) == v2 {
		read = wire.DecodeV2
	}
	if read(a.body, v) != nil {
		return notFess(a)
	}
	return nil
}

// decodePage decodes the answer to a search. All recorded answers contain a count
// and a list of hits, including those without hits.
func decodePage(a *answer) (*wire.Page, error) {
	p := &wire.Page{RecordCount: -1}
	if err := decode(a, p); err != nil {
		return nil, err
	}
	whole := p.RecordCount >= 0 && p.Data != nil
	for _, f := range p.FacetFields {
		whole = whole && f.Result != nil
	}
	if !whole {
		return nil, notFess(a)
	}
	return p, nil
}

// texts turns texts into strings.
func texts(list []wire.Text) []string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = string(t)
	}
	return all
}
