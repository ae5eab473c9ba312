// Command dex runs the identity provider Dex with users, clients and keys in memory.
// Users sign in by being chosen, without a password: with the parameter connector_id of
// the authorization request. With its value password, they sign in with their name, which
// is the password, too.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/connector/mock"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
)

// users has the groups of each user.
var users = map[string][]string{"anna": {"staff", "everybody"}, "otto": {"guests"}}

// A user is a connector of Dex for one user.
type user struct{ Groups []string }

func (u *user) Open(id string, log *slog.Logger) (connector.Connector, error) {
	return &mock.Callback{Identity: connector.Identity{UserID: id, Username: id, Groups: u.Groups}, Logger: log}, nil
}

// passwords is a connector of Dex for all users.
type passwords struct{}

func (*passwords) Open(string, *slog.Logger) (connector.Connector, error) { return new(passwords), nil }

func (*passwords) Prompt() string { return "name" }

func (*passwords) Login(_ context.Context, _ connector.Scopes, name, password string) (connector.Identity, bool, error) {
	groups, ok := users[name]
	return connector.Identity{UserID: name, Username: name, Groups: groups}, ok && password == name, nil
}

func (*passwords) Refresh(_ context.Context, _ connector.Scopes, who connector.Identity) (connector.Identity, error) {
	return who, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:5556", "host and port to listen on")
	redirect := flag.String("redirect", "http://127.0.0.1:1/callback", "URL to which clients are sent with a code")
	console := flag.String("console", "http://127.0.0.1:1/", "URL of the console of knowhow")
	flag.Parse()

	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server.ConnectorsConfig["user"] = func() server.ConnectorConfig { return new(user) }
	var connectors []storage.Connector
	for name, groups := range users {
		config, err := json.Marshal(user{groups})
		if err != nil {
			log.Fatal(err)
		}
		connectors = append(connectors, storage.Connector{ID: name, Type: "user", Name: name, Config: config})
	}
	server.ConnectorsConfig["passwords"] = func() server.ConnectorConfig { return new(passwords) }
	connectors = append(connectors, storage.Connector{ID: "password", Type: "passwords", Name: "a password", Config: []byte("{}")})
	clients := []storage.Client{
		{ID: "typescript", Name: "MCP client", Public: true, RedirectURIs: []string{*redirect}},
		{ID: "python", Name: "MCP client", Public: true, RedirectURIs: []string{*redirect}},
		{ID: "console", Name: "knowhow", Public: true, RedirectURIs: []string{*console}},
		{ID: "secret", Name: "knowhow", Secret: "s3cret of the console", RedirectURIs: []string{*console}},
		// The audience of the server, for which the clients may ask.
		{ID: "knowhow", Name: "knowhow", Secret: "unused",
			TrustedPeers: []string{"typescript", "python", "console", "secret"}},
	}
	refresh, err := server.NewRefreshTokenPolicy(logger, false, "", "", "")
	if err != nil {
		log.Fatal(err)
	}
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer:             "http://" + *addr + "/dex",
		Storage:            storage.WithStaticConnectors(storage.WithStaticClients(memory.New(logger), clients), connectors),
		SkipApprovalScreen: true,
		RefreshTokenPolicy: refresh,
		IDTokensValidFor:   time.Hour,
		Logger:             logger,
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, dex))
}
