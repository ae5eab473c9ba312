package invoke

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// health answers GET / with the number of servers. It connects to none.
func (h *handler) health(_ *http.Request, x *exchange) *failure {
	enabled, disabled := 0, 0
	for _, s := range h.servers.Status() {
		if s.Disabled {
			disabled++
		} else {
			enabled++
		}
	}
	type counts struct {
		Enabled  int `json:"enabled"`
		Disabled int `json:"disabled"`
	}
	return x.answer(struct {
		Status  string `json:"status"`
		Name    string `json:"name"`
		Version string `json:"version"`
		Servers counts `json:"servers"`
	}{"ok", "knowhow", h.version, counts{enabled, disabled}})
}

// listServers answers GET /servers. It connects to none. Commands and URLs of
// servers are not included, because they may contain secrets.
func (h *handler) listServers(_ *http.Request, x *exchange) *failure {
	type server struct {
		ID        string `json:"id"`
		Transport string `json:"transport"`
		Disabled  bool   `json:"disabled"`
		State     string `json:"state"`
		Tools     *int   `json:"tools,omitempty"`
		Error     string `json:"error,omitempty"`
	}
	list := []server{}
	for _, s := range h.servers.Status() {
		one := server{s.ID, s.Transport, s.Disabled, s.State, &s.Tools, cut(s.Error, maxDetail)}
		if s.Tools < 0 {
			one.Tools = nil
		}
		list = append(list, one)
	}
	return x.answer(list)
}

// answer sets the body of the response.
func (x *exchange) answer(v any) *failure {
	body, err := compact.Marshal(v)
	if err != nil {
		return internalFailure()
	}
	x.body = [][]byte{body, []byte("\n")}
	return nil
}

// maxConnecting is the number of servers that are queried concurrently.
const maxConnecting = 16

// listTools answers GET /tools: the tools of all enabled servers, or of the
// server in ?server=. It connects to those that are not connected. Without
// ?server=, servers that fail are listed among the errors.
func (h *handler) listTools(r *http.Request, x *exchange) *failure {
	server, fail := serverParameter(r.URL.RawQuery)
	if fail != nil {
		return fail
	}
	type unasked struct {
		Server string `json:"server_id"`
		Error  string `json:"error"`
		Detail string `json:"detail"`
	}
	answer := struct {
		Tools  []offeredTool `json:"tools"`
		Errors []unasked     `json:"errors"`
	}{[]offeredTool{}, []unasked{}}
	if server != "" {
		c, err := h.servers.Catalog(r.Context(), server)
		if err != nil {
			return h.serverFailure(r.Context(), server, err)
		}
		answer.Tools = describeTools(server, c)
		return x.answer(answer)
	}
	for _, a := range h.askAll(r.Context()) {
		if a.failure == nil {
			answer.Tools = append(answer.Tools, describeTools(a.server, a.catalog)...)
		} else {
			answer.Errors = append(answer.Errors, unasked{a.server, a.failure.text, a.failure.detail})
		}
	}
	if f := abandoned(r.Context()); f != nil {
		return f
	}
	return x.answer(answer)
}

// serverParameter reads the query of GET /tools.
func serverParameter(query string) (server string, fail *failure) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", malformed(textInvalid, "the query of the URL is malformed: use ?server=ID")
	}
	for name, given := range values {
		if name != "server" || len(given) != 1 || given[0] == "" {
			return "", malformed(textInvalid, "the query of the URL has %s: only ?server=ID is known, once",
				spell.Quote(name))
		}
	}
	return values.Get("server"), nil
}

// An offer is the result of listing the tools of one server.
type offer struct {
	server  string
	catalog *mcpclient.Catalog
	failure *failure
}

// askAll lists the tools of all enabled servers. The results have the order of
// their ids.
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

// ask lists the tools of one server.
func (h *handler) ask(ctx context.Context, o *offer) {
	defer h.catch(&o.failure)
	catalog, err := h.servers.Catalog(ctx, o.server)
	if err != nil {
		o.failure = h.serverFailure(ctx, o.server, err)
		return
	}
	o.catalog = catalog
}

// An offeredTool contains what clients need to call a tool.
type offeredTool struct {
	Server      string          `json:"server_id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	TaskSupport string          `json:"taskSupport,omitempty"`
}

// describeTools returns the tools of a server for clients.
func describeTools(server string, c *mcpclient.Catalog) []offeredTool {
	list := make([]offeredTool, 0, len(c.Tools))
	for _, t := range c.Tools {
		one := offeredTool{server, t.Name, t.Description, t.InputSchema, t.TaskSupport}
		if one.InputSchema == nil {
			one.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		list = append(list, one)
	}
	return list
}
