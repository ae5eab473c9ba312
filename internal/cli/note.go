package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const kbSearchHelp = `Usage: {cmd} [FLAGS] QUERY

Searches the knowledge base and prints the best passages. The exit status is 1 if
nothing is found.

{flags}

Examples:
  {cmd} "How do users like their answers?"
  {cmd} --collection memory --top 3 --json concise
`

const noteHelp = `Usage: {cmd} add|list|get|rm ...

Adds, lists, prints and removes notes and files of the knowledge base. Each
command has its own help, for example "{cmd} add --help".

Examples:
  {cmd} add --collection memory "Users prefer concise answers."
  {cmd} list --collection memory
`

const noteAddHelp = `Usage: {cmd} [FLAGS] TEXT
       {cmd} [FLAGS] < FILE

Adds a note, waits until it can be searched, and prints its id. Without TEXT the
note is read from the standard input.

{flags}

Examples:
  {cmd} --collection memory --tag feedback "Users prefer concise answers."
  git log -1 | {cmd} --collection decisions
`

const noteListHelp = `Usage: {cmd} [FLAGS]

Lists documents of the knowledge base, the newest first: id, type, collection,
day of the last change and title.

{flags}

Examples:
  {cmd}
  {cmd} --collection memory --tag feedback --top 20
`

const noteGetHelp = `Usage: {cmd} [FLAGS] ID

Prints the text of a document.

{flags}

Examples:
  {cmd} 42
  {cmd} --json 42
`

const noteRemoveHelp = `Usage: {cmd} [FLAGS] ID ...

Removes documents from the knowledge base. This cannot be undone.

{flags}

Examples:
  {cmd} 42
`

// collectionFlags are a collection and tags.
type collectionFlags struct {
	Collection string   `flag:"collection" value:"NAME" help:"collection of {of}"`
	Tags       []string `flag:"tag" value:"TAG" help:"tag of {of}"`
}

// filter returns the tags that documents must have. Without a collection, they may
// be in any.
func (o *collectionFlags) filter() ([]string, error) {
	all, err := kbmcp.Tags(o.Collection, o.Tags)
	if o.Collection == "" && err == nil {
		all = all[1:]
	}
	return all, err
}

// A kbSearchCommand searches the knowledge base.
type kbSearchCommand struct {
	baseFlags
	embedderFlags   `model:"model for searches by meaning in the data folder, as of kb --embedder"`
	collectionFlags `of:"the documents to search"`
	Top             int `flag:"top" value:"N" default:"10" range:"1-100" help:"number of results"`
	jsonFlag
	Query string `arg:"QUERY,many"`
}

func (o *kbSearchCommand) run(ctx context.Context, v *invocation) error {
	all, err := o.filter()
	if err != nil {
		return err
	}
	return o.use(ctx, v, baseUse{model: &o.embedderFlags, wait: searchModelTime}, func(b kb.Base) error {
		found, err := b.Search(ctx, kb.SearchQuery{Query: o.Query, Top: o.Top, Tags: all})
		switch {
		case err != nil:
			return err
		case o.JSON:
			err = v.printJSON(kbmcp.SearchResult(found))
		case len(found.Results) > 0:
			err = v.printPassages(found)
		}
		if err == nil && len(found.Results) == 0 {
			err = &hintError{errors.New("nothing found"),
				cmp.Or(sanitize.Short(found.Note, 300, 1200), "Try fewer or other words.")}
		}
		return err
	})
}

// searchModelTime is how long a search on the command line, which always loads
// the model, waits for the vector of its query.
const searchModelTime = 10 * time.Second

// printPassages prints the results of a search for people.
func (v *invocation) printPassages(found *kb.SearchResult) error {
	screen := terminal.NewScreen(v.stdout, v.Lookup)
	var b strings.Builder
	for i, r := range found.Results {
		where := fmt.Sprintf("document %d", r.DocumentID)
		if r.SourcePath != "" {
			where += ", " + r.SourcePath
		}
		line := fmt.Sprintf("%d. %s (%s)", i+1, sanitize.Short(r.Title, 200, 800), sanitize.Escape(where))
		b.WriteString(hitText(screen, line, "", r.Text))
	}
	return screen.Show(b.String())
}

// maxNote is the maximum size of a note on the standard input, in bytes.
const maxNote = 1 << 20

// A noteAddCommand adds a note.
type noteAddCommand struct {
	baseFlags
	collectionFlags `of:"the note"`
	Title           string `flag:"title" value:"TITLE" help:"title of the note; by default its first heading or line"`
	jsonFlag
	Words []string `arg:"TEXT"`
}

func (o *noteAddCommand) run(ctx context.Context, v *invocation) error {
	all, err := kbmcp.Tags(o.Collection, o.Tags)
	if err != nil {
		return err
	}
	text, err := v.noteText(ctx, o.Words)
	if err != nil {
		return err
	}
	return o.use(ctx, v, baseUse{work: true}, func(b kb.Base) error {
		id, err := b.AddNote(ctx, kb.Note{Text: text, Title: o.Title, Tags: all})
		if err != nil {
			return err
		}
		j, err := waitForJob(ctx, b, id)
		if err != nil {
			return fmt.Errorf("the note is stored, but its job %d cannot be watched: %w", id, err)
		}
		return o.print(v, id, j)
	})
}

// print prints the result of the job that adds the note.
func (o *noteAddCommand) print(v *invocation, id int64, j *kb.Job) error {
	if j.Status == kb.Failed {
		return fmt.Errorf("the note was not added: %s", sanitize.Short(j.Error, 500, 2000))
	}
	if !j.Ended() {
		fmt.Fprintf(v.stderr, "The note is kept as job %d, which is %s. It is stored when the store or the engine answers and a "+
			"process works on the queue: serve, kb, engine or the next \"%s note add\".\n", id, j.Status, v.Program)
	}
	if o.JSON {
		return v.printJSON(map[string]any{"job_id": id, "document_id": j.DocumentID})
	}
	if j.DocumentID == nil {
		return nil
	}
	_, err := fmt.Fprintln(v.stdout, *j.DocumentID)
	return err
}

// noteText returns the text of a new note: the operands, or else the standard
// input.
func (v *invocation) noteText(ctx context.Context, words []string) (string, error) {
	if len(words) > 0 {
		text := strings.Join(words, " ")
		if strings.TrimSpace(text) == "" {
			return "", v.usagef("TEXT is empty")
		}
		return text, nil
	}
	if in, ok := v.stdin.(*os.File); ok {
		if info, err := in.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return "", v.usagef("want a text, or a file on the standard input")
		}
	}
	text, err := v.readInput(ctx, maxNote+1)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the note: %w", err)
	case len(text) > maxNote:
		return "", &hintError{fmt.Errorf("the note is larger than %d bytes", maxNote),
			"Put the file into a folder and serve it, or upload it with the tools of an agent."}
	case strings.TrimSpace(string(text)) == "":
		return "", v.usagef("the note is empty")
	}
	return string(text), nil
}

// Waiting for a job.
const (
	jobWait  = 30 * time.Second
	jobPause = 20 * time.Millisecond // doubles up to a second
)

// waitForJob waits until a job has ended or jobWait is over, and returns it.
func waitForJob(ctx context.Context, b kb.Base, id int64) (*kb.Job, error) {
	pause := jobPause
	for end := time.Now().Add(jobWait); ; {
		j, err := b.Job(ctx, id)
		if err != nil || j.Ended() || time.Now().After(end) {
			return j, err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A noteListCommand lists documents.
type noteListCommand struct {
	baseFlags
	collectionFlags `of:"the documents"`
	Top             int `flag:"top" value:"N" default:"50" range:"1-1000" help:"number of results"`
	jsonFlag
}

func (o *noteListCommand) run(ctx context.Context, v *invocation) error {
	all, err := o.filter()
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return v.usagef("want one --tag or one --collection")
	}
	filter := kb.DocumentFilter{Limit: o.Top, Tag: strings.Join(all, "")}
	found := &kb.DocumentList{}
	err = o.use(ctx, v, baseUse{}, func(b kb.Base) (err error) {
		found, err = b.Documents(ctx, filter)
		return err
	})
	switch {
	case err != nil && !errors.Is(err, errNoBase):
		return err
	case o.JSON:
		return v.printJSON(kbmcp.DocumentList(found, 0))
	case len(found.Documents) == 0 && len(all) > 0:
		_, err := fmt.Fprintln(v.stderr,
			"There are no documents with this collection or tag. Check its name, or list all documents without it.")
		return err
	case len(found.Documents) == 0:
		_, err := fmt.Fprintf(v.stderr, "There are no documents. Add a note with: %s note add TEXT\n", v.Program)
		return err
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	for _, d := range found.Documents {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", d.ID, sanitize.Escape(d.Type), sanitize.Escape(kbmcp.Collection(d.Tags)),
			cmp.Or(d.UpdatedAt.Day(), "-"), sanitize.Short(d.Title, 100, 400))
	}
	if more := found.Total - len(found.Documents); more > 0 {
		defer fmt.Fprintf(v.stderr, "%d more; list them with --top.\n", more)
	}
	return w.Flush()
}

// documentID reads the id of a document.
func documentID(v *invocation, arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return 0, v.usagef("got %q, want the id of a document, as list prints it", arg)
	}
	return id, nil
}

// withListHint adds to the error of a document that does not exist how to list
// the documents.
func withListHint(v *invocation, err error) error {
	if errors.Is(err, errkind.NotFound) {
		return &hintError{err, fmt.Sprintf("List the documents with: %s note list", v.Program)}
	}
	return err
}

// A noteGetCommand prints a document.
type noteGetCommand struct {
	baseFlags
	jsonFlag
	ID string `arg:"ID"`
}

func (o *noteGetCommand) run(ctx context.Context, v *invocation) error {
	id, err := documentID(v, o.ID)
	if err != nil {
		return err
	}
	return o.use(ctx, v, baseUse{}, func(b kb.Base) error {
		d, err := b.Document(ctx, id, 0, kb.AllChunks)
		switch {
		case err != nil:
			return withListHint(v, err)
		case o.JSON:
			return v.printJSON(kbmcp.DocumentResult(d))
		}
		texts := make([]string, len(d.Chunks))
		for i, c := range d.Chunks {
			texts[i] = sanitize.Lines(strings.TrimRight(c.Text, "\n")) + "\n"
		}
		text, screen := strings.Join(texts, "\n"), terminal.NewScreen(v.stdout, v.Lookup)
		if screen.Terminal() {
			text = screen.Wrap(text, "")
		}
		return screen.Show(text)
	})
}

// A noteRemoveCommand removes documents.
type noteRemoveCommand struct {
	baseFlags
	IDs string `arg:"ID,many"`
}

func (o *noteRemoveCommand) run(ctx context.Context, v *invocation) error {
	var ids []int64
	for _, arg := range strings.Fields(o.IDs) {
		id, err := documentID(v, arg)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return o.use(ctx, v, baseUse{}, func(b kb.Base) error {
		var errs []error
		for _, id := range ids {
			errs = append(errs, withListHint(v, b.Delete(ctx, id)))
		}
		return errors.Join(errs...)
	})
}
