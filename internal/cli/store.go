package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/opensearch"
	"knowhow/internal/search"
	"knowhow/internal/terminal"
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
func (o *storeFlags) open(queries embed.Embedder, wait time.Duration, log *slog.Logger) (*opensearch.Store, error) {
	if o.Store == "" {
		return nil, nil
	}
	var ca []byte
	if o.CA != "" {
		var err error
		if ca, err = os.ReadFile(string(o.CA)); err != nil {
			return nil, &hintError{fmt.Errorf("reading the certificates for OpenSearch: %w", err), "Check OPENSEARCH_CA_FILE."}
		}
	}
	s, err := opensearch.New(opensearch.Options{
		Address: string(o.Store), Username: o.Username, Password: o.Password, CA: ca, Embedder: queries, EmbedTime: wait,
		UserAgent: "knowhow/" + version(), Log: log,
	})
	return s, explainStore(err)
}

// connect connects a server to its store. If that may succeed later, it prints a
// warning: what is accepted meanwhile waits in the queue. Otherwise it returns
// the error. meaning reports whether vectors are wanted.
func (v *invocation) connect(ctx context.Context, s *opensearch.Store, meaning bool) error {
	switch err := explainStore(s.Open(ctx)); {
	case errkind.Retryable(err):
		fmt.Fprintf(v.stderr, "%s: warning: %s; new documents wait in the queue until it answers\n", v.name, printableLines(errkind.Message(err)))
	case err != nil:
		return err
	case meaning && !s.HasVectors():
		fmt.Fprintf(v.stderr, "%s: warning: OpenSearch has no k-NN plugin: documents are found by words only; install the plugin opensearch-knn on every node\n", v.name)
	}
	return nil
}

// Times between the sweeps of a store. A program that ends sooner does not sweep.
const (
	firstSweep  = time.Minute
	nextSweep   = 24 * time.Hour
	nextMigrate = time.Minute // after a failure
)

// maintainStore moves a store of an older version to indexes of this version, and
// removes what interrupted changes have left in it, from time to time until ctx
// ends.
func maintainStore(ctx context.Context, s *opensearch.Store, log *slog.Logger) {
	for {
		err := s.Migrate(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil && !errkind.Retryable(err) { // otherwise, the store is not available
			log.Error("the documents are not yet in indexes of this version: this is tried again every minute", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(nextMigrate):
		}
	}
	t := time.NewTimer(firstSweep)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			t.Reset(nextSweep)
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("chunks of interrupted changes remain in the store until tomorrow", "error", err)
		}
	}
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

// A storedFolders is the search service over sources whose documents are in a
// store, and whose indexing is recorded in the data folder.
type storedFolders struct {
	*opensearch.Store
	local *index.Index // nil: nothing is indexed by this data folder
}

// Indexing reports the progress of the processes with the same data folder.
func (s storedFolders) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	if s.local == nil {
		return 0, 0, false
	}
	return s.local.Indexing(ctx, labels)
}

// Unfinished reports what the processes with the same data folder have not
// indexed.
func (s storedFolders) Unfinished(ctx context.Context, labels []string) ([]search.Unfinished, error) {
	if s.local == nil {
		return nil, nil
	}
	return s.local.Unfinished(ctx, labels)
}

// Embedding returns 0 and 0: searches of the store do not report how many of its
// passages have vectors.
func (s storedFolders) Embedding(context.Context, []string) (done, total int, err error) {
	return 0, 0, nil
}

// claimSources records in a store that a data folder indexes sources.
func claimSources(ctx context.Context, s *opensearch.Store, data string, sources []document.Source) error {
	owner, err := dataFolderID(data)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // the name only helps people
	}
	for _, src := range sources {
		err := s.ClaimSource(ctx, src, owner, host)
		if errors.Is(err, errkind.Conflict) {
			err = &hintError{err, fmt.Sprintf("Choose another label with --label, or remove the source there with: knowhow sources rm %s", src.Label)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dataFolderID returns the ID of a data folder, which is made when it is first
// needed.
func dataFolderID(data string) (string, error) {
	file := filepath.Join(data, "id")
	for {
		id, err := os.ReadFile(file)
		if err == nil && len(id) > 0 {
			return string(id), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("reading the ID of the data folder: %w", err)
		}
		temporary := file + "-" + rand.Text()
		if err := os.WriteFile(temporary, []byte(rand.Text()), 0o600); err != nil {
			return "", fmt.Errorf("writing the ID of the data folder: %w", err)
		}
		err = os.Link(temporary, file) // fails if another process was faster
		if err != nil && !errors.Is(err, os.ErrExist) {
			err = os.Rename(temporary, file) // a file system without links
		} else {
			err = errors.Join(os.Remove(temporary))
		}
		if err != nil {
			return "", fmt.Errorf("writing the ID of the data folder: %w", err)
		}
	}
}

// A storeStatus is the state of a store.
type storeStatus struct {
	Health    string `json:"health"` // green, yellow or red
	Documents int    `json:"documents"`
	Passages  int    `json:"passages"`
	TextBytes int64  `json:"textBytes"`
	DiskBytes int64  `json:"diskBytes"` // on all nodes
	Meaning   bool   `json:"meaning"`   // whether the cluster can search by meaning

	byLabel map[string]index.LabelStats
}

// storeStatus returns the state of a store.
func (v *invocation) storeStatus(ctx context.Context, o *storeFlags) (*storeStatus, error) {
	s, err := o.open(nil, 0, v.warnings())
	if err != nil {
		return nil, err
	}
	defer s.Close() // never fails
	return readStoreStatus(ctx, s)
}

// readStoreStatus returns the state of an open store.
func readStoreStatus(ctx context.Context, s *opensearch.Store) (*storeStatus, error) {
	health, err := s.Health(ctx)
	if err != nil {
		return nil, explainStore(err)
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		return nil, explainStore(err)
	}
	out := &storeStatus{Health: health.Status, Documents: stats.Documents, Passages: stats.Chunks, TextBytes: stats.TextBytes, DiskBytes: stats.DiskBytes,
		Meaning: s.HasVectors(), byLabel: map[string]index.LabelStats{}}
	for label, l := range stats.ByLabel {
		out.byLabel[label] = index.LabelStats(l)
	}
	return out, nil
}

// print prints the state as a line of a table.
func (s *storeStatus) print(w io.Writer) {
	note := ""
	if !s.Meaning {
		note = "\tno k-NN plugin: words only"
	}
	fmt.Fprintf(w, "store\t%s\t%s on disk\t%s\thealth %s%s\n", terminal.Plural(s.Documents, "document"), byteSize(s.DiskBytes),
		terminal.Plural(s.Passages, "passage"), s.Health, note)
}
