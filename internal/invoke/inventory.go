package invoke

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"

	"knowhow/internal/compact"
	"knowhow/internal/mcpclient"
	"knowhow/internal/spell"
)

// health answers GET /: that the bridge is up, and how many servers it has. It
// connects to none.
func (h *handler) health(_ *http.Request, x *exchange) *failure {
	enabled, disabled := 0, 0
	for _, s := range h.servers.Status() {
		if s.Disabled {
			disabled++
		} else {
			enabled++
		}
	}
	servers, o := &compact.Object{}, &compact.Object{}
	servers.Add("enabled", enabled)
	servers.Add("disabled", disabled)
	o.Add("status", "ok")
	o.Add("name", "knowhow")
	o.Add("version", h.version)
	o.Add("servers", servers.Bytes())
	x.body = append(o.Bytes(), '\n')
	return nil
}

// listServers answers GET /servers. It connects to none, and says nothing of
// how a server is reached, because commands and addresses may hold secrets.
func (h *handler) listServers(_ *http.Request, x *exchange) *failure {
	list := []json.RawMessage{}
	for _, s := range h.servers.Status() {
		o := &compact.Object{}
		o.Add("id", s.ID)
		o.Add("transport", s.Transport)
		o.Add("disabled", s.Disabled)
		o.Add("state", s.State)
		if s.Tools >= 0 {
			o.Add("tools", s.Tools)
		}
		if s.Error != "" {
			o.Add("error", cut(s.Error, maxDetail))
		}
		list = append(list, o.Bytes())
	}
	return x.answer(list)
}

// answer sets the body.
func (x *exchange) answer(v any) *failure {
	body, err := compact.Marshal(v)
	if err != nil {
		return internalFailure()
	}
	x.body = append(body, '\n')
	return nil
}

// maxConnecting is how many servers are asked for their tools at once.
const maxConnecting = 16

// listTools answers GET /tools: the tools of all enabled servers, or of the one
// that ?server= names. It connects to those that are not connected. Of all
// servers, those that fail are listed among the errors.
func (h *handler) listTools(r *http.Request, x *exchange) *failure {
	server, fail := serverParameter(r.URL.RawQuery)
	if fail != nil {
		return fail
	}
	o := &compact.Object{}
	if server != "" {
		c, err := h.servers.Catalog(r.Context(), server)
		if err != nil {
			return h.serverFailure(r.Context(), server, err)
		}
		o.Add("tools", describeTools(server, c))
		o.Add("errors", []json.RawMessage{})
		x.body = append(o.Bytes(), '\n')
		return nil
	}
	tools, errs := []json.RawMessage{}, []json.RawMessage{}
	for _, a := range h.askAll(r.Context()) {
		if a.failure == nil {
			tools = append(tools, describeTools(a.server, a.catalog)...)
			continue
		}
		e := &compact.Object{}
		e.Add("server_id", a.server)
		e.Add("error", a.failure.text)
		e.Add("detail", a.failure.detail)
		errs = append(errs, e.Bytes())
	}
	if f := abandoned(r.Context()); f != nil {
		return f
	}
	o.Add("tools", tools)
	o.Add("errors", errs)
	x.body = append(o.Bytes(), '\n')
	return nil
}

// serverParameter reads the query of GET /tools.
func serverParameter(query string) (server string, fail *failure) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", malformed(textInvalid, "the query of the URL is malformed: use ?server=ID")
	}
	for name, given := range values {
		if name != "server" || len(given) != 1 || given[0] == "" {
			return "", malformed(textInvalid, "the query of the URL has %s: only ?server=ID is known, once", spell.Quote(name))
		}
	}
	return values.Get("server"), nil
}

// An offer is what one server answered when asked for its tools.
type offer struct {
	server  string
	catalog *mcpclient.Catalog
	failure *failure
}

// askAll asks all enabled servers for their tools. The answers have the order
// of their ids.
func (h *handler) askAll(ctx context.Context) []offer {
	var offers []offer
	for _, s := range h.servers.Status() {
		if !s.Disabled {
			offers = append(offers, offer{server: s.ID})
		}
	}
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxConnecting)
	for i := range offers {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			h.ask(ctx, &offers[i])
		})
	}
	asking.Wait()
	return offers
}

// ask fills in what a server answers.
func (h *handler) ask(ctx context.Context, o *offer) {
	defer h.catch(&o.failure)
	catalog, err := h.servers.Catalog(ctx, o.server)
	if err != nil {
		o.failure = h.serverFailure(ctx, o.server, err)
		return
	}
	o.catalog = catalog
}

// describeTools returns a server's tools for clients, who get what they need to
// call them.
func describeTools(server string, c *mcpclient.Catalog) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(c.Tools))
	for _, t := range c.Tools {
		o := &compact.Object{}
		o.Add("server_id", server)
		o.Add("name", t.Name)
		o.Add("description", t.Description)
		schema := t.InputSchema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		o.Add("inputSchema", schema)
		if t.TaskSupport != "" {
			o.Add("taskSupport", t.TaskSupport)
		}
		list = append(list, o.Bytes())
	}
	return list
}
