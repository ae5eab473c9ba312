package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// other is the value of a label that is not known.
const other = "other"

// routes are the first parts of the paths of a server.
var routes = []string{"/mcp", "/fess", "/kb", "/console", "/upload", "/metrics"}

// route returns the part of a path that says what answers it.
func route(path string) string {
	if path == "/" {
		return "/console"
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(routes, "/"+first) {
		return "/" + first
	}
	return other
}

// methods are the methods of MCP and HTTP, which calls without a tool have in its place.
var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "completion/complete": true, "logging/setLevel": true,
	"tools/list": true, "tools/call": true, "resources/list": true, "resources/read": true,
	"resources/templates/list": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"prompts/list": true, "prompts/get": true, "subscriptions/listen": true,
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true,
}

// tool returns the known name of a tool or of a method, without a domain.
func (m *Metrics) tool(name string) string {
	if methods[name] {
		return name
	}
	for range 8 { // a domain may contain "_"
		if m.tools()[name] {
			return name
		}
		var found bool
		if _, name, found = strings.Cut(name, "_"); !found {
			break
		}
	}
	return other
}

// class returns the class of a status of HTTP, 2xx for 0, and "error" for the code of a
// JSON-RPC error.
func class(status int) string {
	switch {
	case status == 0:
		return "2xx"
	case status >= 100 && status < 600:
		return strconv.Itoa(status/100) + "xx"
	}
	return "error"
}

// kinds are the kinds of errors.
var kinds = []string{"invalid", "not_found", "conflict", "denied", "unauthorized", "too_large", "unsupported", "busy",
	"unavailable", "timeout", "corrupt", "upstream", "cancelled", "internal", other}

// kindOf returns the kind of an error with a name such as INVALID_ARGUMENT, or with a
// status. It returns "" if there is no error.
func kindOf(name string, status int) string {
	if name == "" {
		return kindOfStatus(status)
	}
	name = strings.ToLower(name)
	switch {
	case slices.Contains(kinds, name):
		return name
	case strings.HasPrefix(name, "invalid_"):
		return "invalid"
	case strings.HasSuffix(name, "_not_found"):
		return "not_found"
	case name == "forbidden":
		return "denied"
	case strings.HasPrefix(name, "upstream_"):
		return "upstream"
	}
	return other
}

// kindOfStatus returns the kind of error that a status stands for, "" for none.
func kindOfStatus(status int) string {
	switch {
	case class(status) == "error":
		return other
	case status < http.StatusBadRequest:
		return ""
	}
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "denied"
	case http.StatusNotFound, http.StatusGone:
		return "not_found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "conflict"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusTooManyRequests:
		return "busy"
	case http.StatusNotImplemented:
		return "unsupported"
	case http.StatusBadGateway:
		return "upstream"
	case http.StatusServiceUnavailable:
		return "unavailable"
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return "timeout"
	}
	if status >= http.StatusInternalServerError {
		return "internal"
	}
	return "invalid"
}
