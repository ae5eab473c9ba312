package console

import "net/http"

// A Client is an MCP client program, and how it is connected to the server. What it
// contains is a text for people, without the token.
type Client struct {
	Client  string `json:"client"` // as in the command connect
	Title   string `json:"title"`
	Command string `json:"command,omitempty"` // for a shell of Linux and macOS
	File    string `json:"file,omitempty"`    // where the snippet belongs
	Snippet string `json:"snippet,omitempty"`
	Next    string `json:"next,omitempty"`    // what to do afterwards
	Instead string `json:"instead,omitempty"` // why the command is another one, or what is to do with the snippet
	Link    string `json:"link,omitempty"`    // opens the client, which asks whether to add the server
	Docs    string `json:"docs"`              // address of its documentation
}

// serveConnect sends how clients are connected to the server.
func (c *console) serveConnect(w http.ResponseWriter, r *http.Request) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	list, err := c.o.Connect(r.Context(), scheme+r.Host) // the Host is allowed
	c.send(w, r, append([]Client{}, list...), err)
}
