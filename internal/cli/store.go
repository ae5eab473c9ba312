package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// storeFlags choose the store of documents.
type storeFlags struct {
	Store storeAddress `flag:"store" value:"URL" env:"KNOWHOW_STORE" secret:"store" help:"store of the documents, if it is not the data folder: opensearch+http://HOST:PORT/PREFIX or opensearch+https://HOST:PORT/PREFIX"`
	credentials
}

// credentials are the environment variables for OpenSearch.
type credentials struct {
	Username string   `env:"OPENSEARCH_USERNAME" help:"user of OpenSearch, unless the URL of the store names one"`
	Password string   `env:"OPENSEARCH_PASSWORD" secret:"password" help:"password of that user"`
	CA       filePath `env:"OPENSEARCH_CA_FILE" help:"file with certificates in PEM, in addition to those of the system, for OpenSearch"`
}

// A storeAddress is the URL of a store, "" for none.
type storeAddress string

func (a *storeAddress) set(s string) error {
	*a = storeAddress(s)
	return checkStore(s)
}

// checkStore returns an error unless an address of a cluster has the right form.
func checkStore(address string) error {
	_, err := opensearch.New(opensearch.Options{Address: address})
	return wanted(err)
}

// wanted returns the error for the value of a flag: what follows the operation in
// the message of an error, if there is one.
func wanted(err error) error {
	if err == nil {
		return nil
	}
	message := errkind.Message(err)
	if _, what, ok := strings.Cut(message, ": "); ok {
		message = what
	}
	return errors.New(message)
}

// open returns the store, or nil if none is set. It does not connect to it.
func (o *storeFlags) open(m datafolder.Model, log *slog.Logger) (*opensearch.Store, error) {
	return o.moved(m, opensearch.Stay, log)
}

// moved is open for a store with a part in a move.
func (o *storeFlags) moved(m datafolder.Model, move opensearch.Move, log *slog.Logger) (*opensearch.Store, error) {
	if o.Store == "" {
		return nil, nil
	}
	var ca []byte
	if o.CA != "" {
		var err error
		if ca, err = os.ReadFile(string(o.CA)); err != nil {
			return nil, &hintError{fmt.Errorf("reading the certificates for OpenSearch: %w", err),
				"Check OPENSEARCH_CA_FILE."}
		}
	}
	s, err := opensearch.New(opensearch.Options{
		Address: string(o.Store), Username: o.Username, Password: o.Password, CA: ca, Embedder: m.Queries,
		EmbedTime: m.Wait, ComputeTime: m.Compute,
		UserAgent: "knowhow/" + version(), Log: log, Move: move,
	})
	return s, explainStore(err)
}

// connectTime is how long a server that starts waits for its store. Clients wait not much
// longer for the answer to initialize.
const connectTime = 10 * time.Second

// connect connects a server to the store of its data folder, and records there that the
// folder indexes sources. If that may succeed later, it prints a warning: what is accepted
// meanwhile waits in the queue, and sources are recorded before they are indexed.
// Otherwise it returns the error: errClientGone if the client of a server on stdio did not
// wait.
func (v *invocation) connect(ctx context.Context, f *datafolder.Folder, sources []document.Source) error {
	client, stop := v.whileClient(ctx)
	defer stop()
	waiting, end := context.WithTimeout(client, connectTime)
	defer end()
	err := explainStore(f.Store.Open(waiting))
	opened := err == nil
	if opened {
		err = claimSources(waiting, f, sources)
	}
	if err != nil {
		switch cause := context.Cause(waiting); {
		case cause == errClientGone:
			return errClientGone
		case cause == context.DeadlineExceeded && ctx.Err() == nil:
			err = fmt.Errorf("the store has not answered for %v: %w", connectTime, errkind.Timeout)
		}
	}
	switch {
	case errkind.Retryable(err) && opened:
	case errkind.Retryable(err):
		v.warn(errkind.Message(err) + "; new documents wait in the queue until it answers")
	case err != nil:
		return err
	case f.Model.Queries != nil && !f.Store.HasVectors():
		v.warn("OpenSearch has no k-NN plugin: documents are found by words only; install the plugin opensearch-knn on every node")
	}
	return nil
}

// storeAdvice is how to set the options that errors of a store are due to.
var storeAdvice = map[errkind.Reason]string{
	opensearch.AddressReason:     "the address is set with --store or KNOWHOW_STORE",
	opensearch.CredentialsReason: "user and password are in the URL of the store, or in OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD",
	opensearch.CAReason:          "the file is set with OPENSEARCH_CA_FILE",
}

// explainStore adds to an error of a store how to set the option that it is due
// to.
func explainStore(err error) error { return explainReason(err, storeAdvice) }

// printStore prints the state of a store as a line of a table.
func printStore(w io.Writer, s *datafolder.StoreStatus) {
	note := ""
	if !s.Meaning {
		note = "\tno k-NN plugin: words only"
	}
	fmt.Fprintf(w, "store\t%s\t%s on disk\t%s\thealth %s%s\n", terminal.Plural(s.Documents, "document"),
		terminal.Bytes(s.DiskBytes),
		terminal.Plural(s.Passages, "passage"), s.Health, note)
}
