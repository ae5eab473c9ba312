package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/embed/open"
	"github.com/knowhow-mcp/knowhow/internal/embed/remote"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// modelFlags are the flags for the embedder of datasets.
type modelFlags struct {
	Embedder filePath `flag:"embedder" value:"MODEL" help:"{model}: builtin (all-MiniLM-L6-v2, as MCPower uses it), none (search by words only), a folder with a Hugging Face or model2vec model, or the URL of a server; by default EMBED_URL, otherwise builtin"`
	URL      string   `env:"EMBED_URL" help:"URL of a server for vectors (the API of OpenAI or of Ollama), as with --embedder"`
	embedServer
	Timeout time.Duration `env:"EMBED_TIMEOUT" default:"30s" help:"time limit for one request to that server"`
}

// searchModelFlags are modelFlags of commands that search.
type searchModelFlags struct {
	modelFlags `model:"model for the datasets whose vectors it made, in addition to the built-in one"`
}

// open returns the embedder, and the name of its model for metadata; nil for
// none.
func (m *modelFlags) open() (embed.Embedder, string, error) {
	setting := cmp.Or(string(m.Embedder), m.URL)
	e, err := open.Embedder(setting, open.Options{Model: m.Model, Key: string(m.Key), Timeout: m.Timeout,
		UserAgent: "knowhow/" + version()})
	switch {
	case err != nil:
		return nil, "", embedderError(setting, err)
	case e == nil:
		return nil, "", nil
	case setting == "" || setting == open.Builtin:
		return e, minilm.Model, nil
	}
	name, _, _ := strings.Cut(e.ID(), "@")
	return e, name, nil
}

// embedders returns the embedders for [dataset.Options].
func (m *modelFlags) embedders(v *invocation) (func(model string) []embed.Embedder, error) {
	set, _, err := m.open()
	if set == nil || err != nil {
		return nil, err
	}
	return open.Candidates(set, v.get), nil
}

// embedderError adds to an error of [open.Embedder] what can be set. A misspelled
// choice and a malformed URL are wrong usage; a folder that cannot be read is not.
func embedderError(setting string, err error) error {
	const values = "builtin, none, a folder with a model, or the URL of a server"
	switch {
	case errors.Is(err, errkind.NotFound) && !strings.ContainsAny(setting, `/\`) && !fileExists(setting):
		return &hintError{usageError(fmt.Sprintf("flag --embedder: got %q, want %s", setting, values)),
			"Without --embedder, the built-in model is used."}
	case strings.Contains(setting, "://") && errors.Is(err, errkind.Invalid):
		return &hintError{usageError(explainModel(err).Error()), "Set --embedder to " + values + "."}
	}
	return &hintError{explainModel(err), "Set --embedder to " + values + "."}
}

// explainModel adds to an error of an embedder how to set the option that it is
// due to.
func explainModel(err error) error {
	setting := map[errkind.Reason]string{
		remote.URLReason: "--embedder or EMBED_URL", remote.ModelReason: "EMBED_MODEL",
		remote.KeyReason:     "EMBED_API_KEY",
		remote.TimeoutReason: "EMBED_TIMEOUT", remote.DimensionReason: "EMBED_MODEL",
	}[errkind.ReasonOf(err)]
	if setting == "" {
		return err
	}
	return &explainedError{err, fmt.Sprintf("%s: check %s", errkind.Message(err), setting)}
}
