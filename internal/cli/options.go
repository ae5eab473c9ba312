package cli

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/embed/open"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// Flags that several commands have.

// dataFlag chooses the data folder.
type dataFlag struct {
	Data string `flag:"data" value:"DIR" env:"{variable}KNOWHOW_DATA" help:"data folder; by default $XDG_DATA_HOME/knowhow, otherwise ~/.local/share/knowhow; on macOS and Windows the platform's own folder for data"`
}

// baseData is dataFlag for a knowledge base.
type baseData struct {
	dataFlag `variable:"KB_DATA_DIR,"`
}

// noData is dataFlag for servers without a data folder, whose flags are otherwise the
// same.
type noData struct {
	Data string `flag:"data" value:"DIR" help:"accepted, as by every server, and ignored: {why}"`
}

// tokenFlag is the token that the callers of a server must send.
type tokenFlag struct {
	Token token `flag:"token{synonym}" value:"TOKEN" env:"{variable}KNOWHOW_TOKEN" help:"{http}token that every caller must send as Authorization: Bearer{more}"`
}

// jsonFlag makes a command print JSON.
type jsonFlag struct {
	JSON bool `flag:"json" help:"print JSON"`
}

// transportFlag chooses the transport of a server.
type transportFlag struct {
	Transport string `flag:"transport" value:"{words}" default:"{standard}" env:"KNOWHOW_TRANSPORT" help:"how clients connect; with stdio the server serves the one client that started it"`
}

// revisionFlag chooses the revision of MCP.
type revisionFlag struct {
	Revision mcpserver.Revision `flag:"revision" value:"{words}" default:"{standard}" help:"MCP revision; latest negotiates every revision"`
}

// httpFlags are permitted Host and Origin headers.
type httpFlags struct {
	AllowHost   []string `flag:"allow-host" value:"HOST" help:"HTTP: additional value that the Host header may have"`
	AllowOrigin origins  `flag:"allow-origin" value:"ORIGIN" help:"HTTP: additional value that the Origin header may have"`
}

// origins are values of the Origin header.
type origins []string

func (o *origins) set(s string) error {
	if want := httpguard.WantOrigin(s); want != "" {
		return errors.New("want " + want)
	}
	*o = append(*o, s)
	return nil
}

// levelFlag chooses what a server logs.
type levelFlag struct {
	Level level `flag:"log-level" value:"debug|info|warn|error" default:"{standard}" env:"KNOWHOW_LOG_LEVEL" help:"least level of the log{more}"`
}

// A level is the name of a level of the log in lower case, "" for none.
type level string

func (l *level) set(s string) error {
	*l = level(strings.ToLower(s))
	if !slices.Contains([]level{"debug", "info", "warn", "error"}, *l) {
		return errors.New("want debug, info, warn or error")
	}
	return nil
}

// level returns the level.
func (l level) level() slog.Level { return logLevel(string(l)) }

// An embedServer has the environment variables for a server of embeddings.
type embedServer struct {
	Model string `env:"EMBED_MODEL" help:"name of the model for that server"`
	Key   token  `env:"EMBED_API_KEY" help:"key for that server"`
}

// embedderFlags choose the model for searches by meaning. A nil pointer
// means none.
type embedderFlags struct {
	Embedder filePath `flag:"{name}" value:"MODEL" default:"builtin" env:"KNOWHOW_EMBEDDER" help:"{model}"`
	embedServer
}

// serverEmbedder are embedderFlags of a server, which sends passages to the model.
type serverEmbedder struct {
	embedderFlags `name:"embedder" model:"model for searches by meaning: builtin (all-MiniLM-L6-v2, for English), none (search by words only), a folder with a Hugging Face or model2vec model, or the URL of a server (the API of OpenAI or of Ollama), to which the passages of {of} are sent"`
}

// open opens the model.
func (m *embedderFlags) open() (datafolder.Model, error) {
	if m == nil || m.Embedder == "" {
		return datafolder.Model{}, nil
	}
	setting := string(m.Embedder)
	model, err := datafolder.OpenModel(setting, open.Options{Model: m.Model, Key: string(m.Key),
		UserAgent: "knowhow/" + version()})
	if err != nil {
		return model, embedderError(setting, err)
	}
	return model, nil
}
