package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

const accessHelp = `Usage: {cmd} add|list|set|rm|rotate ...

Gives people and agents the right to read sources and to change collections of a
server. They are listed in the access file. Without one, everyone with the token
of the server may do everything. Each command has its own help, for example
"{cmd} add --help".

Examples:
  {cmd} add ann --read handbook --write notes
  {cmd} list
`

const accessAddHelp = `Usage: {cmd} [FLAGS] NAME

Adds a user and prints the user's token, which is stored nowhere: the access file
has its hash. With --sso, NAME is a user of the issuer of access tokens, as the
tokens name the user in "sub", and with --group one of its groups. These get no
token here.

{flags}

Examples:
  {cmd} ann --read handbook --read wiki --write notes
  {cmd} monitoring --admin
  {cmd} --group staff --read '*'
`

const accessSetHelp = `Usage: {cmd} [FLAGS] NAME

Replaces rights of a user or, with --group, of a group. What is not named stays as
it is. The change is in force for the next request.

{flags}

Examples:
  {cmd} ann --read handbook --read hr
  {cmd} ann --no-write --admin=false
  {cmd} --group staff --read '*'
`

const accessRemoveHelp = `Usage: {cmd} [FLAGS] NAME

Removes a user or, with --group, a group. The next request of the user is refused,
and open streams end.

{flags}

Examples:
  {cmd} ann
  {cmd} --group staff
`

const accessRotateHelp = `Usage: {cmd} [FLAGS] NAME

Replaces the token of a user and prints the new one. The old one is refused from
then on.

{flags}

Examples:
  {cmd} ann
`

const accessListHelp = `Usage: {cmd} [FLAGS]

Lists users and groups, and what they may read and write.

{flags}

Examples:
  {cmd}
  {cmd} --json
`

// accessFlag chooses the access file.
type accessFlag struct {
	Access filePath `flag:"access" value:"FILE" env:"KNOWHOW_ACCESS" help:"file with the users and their rights; by default access.json in the data folder"`
}

// path returns the path of the access file, where data is the data folder that a flag
// names.
func (o *accessFlag) path(e Env, data string) (string, error) {
	if o.Access != "" {
		return filepath.Abs(string(o.Access))
	}
	dir, err := dataPath(e, data)
	return filepath.Join(dir, access.FileName), err
}

// accessFlags choose the access file for a command that reads or changes it.
type accessFlags struct {
	accessFlag
	dataFlag
}

// edit changes the access file.
func (o *accessFlags) edit(ctx context.Context, v *invocation, change func(*access.Content) error) error {
	path, err := o.path(v.Env, o.Data)
	if err != nil {
		return err
	}
	return explainAccess(access.Edit(ctx, path, change))
}

// explainAccess adds to an error of a damaged access file what to do.
func explainAccess(err error) error {
	if _, ok := errors.AsType[*config.Error](err); ok {
		return &hintError{err, "Correct the file with an editor. Until then, nobody is admitted."}
	}
	return err
}

// advised returns a command of this program that a message advises, for the access file.
func (o *accessFlags) advised(v *invocation, words ...string) string {
	line := append([]string{v.Program}, words...)
	if v.given("access") {
		line = append(line, "--access", commandWord(sanitize.Escape(string(o.Access))))
	}
	if v.given("data") {
		line = append(line, "--data", commandWord(sanitize.Escape(o.Data)))
	}
	return strings.Join(line, " ")
}

// accessLabels are labels of sources and collections, or "*".
type accessLabels []string

func (l *accessLabels) set(s string) error {
	if !access.ValidLabel(s) {
		return errors.New("want " + access.WantLabel)
	}
	if !slices.Contains(*l, s) {
		*l = append(*l, s)
	}
	return nil
}

// rightsFlags are rights.
type rightsFlags struct {
	Read  accessLabels `flag:"read" value:"LABEL" help:"source or collection that may be searched and read; '*' for all, those of the future included"`
	Write accessLabels `flag:"write" value:"COLLECTION" help:"collection whose notes and files may be added, changed and removed; '*' for all; does not imply --read"`
	Admin *bool        `flag:"admin" help:"may see the metrics of the server"`
}

// groupFlag makes a command work on groups.
type groupFlag struct {
	Group bool `flag:"group" help:"NAME is a group of the issuer of access tokens"`
}

// kind returns "user" or "group".
func (o *groupFlag) kind() string {
	if o.Group {
		return "group"
	}
	return "user"
}

// names returns the names of the users or of the groups.
func (o *groupFlag) names(c *access.Content) (names []string) {
	for _, u := range c.Users {
		if !o.Group {
			names = append(names, u.Name)
		}
	}
	for _, g := range c.Groups {
		if o.Group {
			names = append(names, g.Name)
		}
	}
	return names
}

// unknown returns the error for a user or group that does not exist.
func (o *groupFlag) unknown(v *invocation, f *accessFlags, c *access.Content, name string) error {
	hint := "List the users and groups with: " + f.advised(v, "access", "list")
	other := &groupFlag{Group: !o.Group}
	near := spell.Near(name, o.names(c), 1)
	switch {
	case slices.Contains(other.names(c), name) && o.Group:
		hint = "There is a user of that name: leave out --group."
	case slices.Contains(other.names(c), name):
		hint = "There is a group of that name: add --group."
	case len(near) > 0:
		hint = fmt.Sprintf("Did you mean %s? ", spell.Quote(near[0])) + hint
	}
	return &hintError{fmt.Errorf("no %s is called %s", o.kind(), spell.Quote(name)), hint}
}

// newToken returns a token of 256 random bits, and its hash for the access file.
func newToken() (token, hash string) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = "kh_" + base64.RawURLEncoding.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}

// printToken prints a token, and on stderr how it is used.
func (v *invocation) printToken(token, name string) error {
	if _, err := fmt.Fprintln(v.stdout, token); err != nil {
		return &hintError{fmt.Errorf("the access file was changed, but the token could not be printed: %w", err),
			fmt.Sprintf("Make another token with: %s access rotate %s", v.Program, shellWords([]string{name}))}
	}
	_, err := fmt.Fprintf(v.stderr, "This is the token of %s. It is not shown again. To connect a client with it:\n"+
		"  export KNOWHOW_TOKEN=TOKEN\n  %s connect CLIENT --url URL/mcp --token-env KNOWHOW_TOKEN\n", name, v.Program)
	return err
}

// An accessAddCommand adds a user or a group.
type accessAddCommand struct {
	rightsFlags
	SSO bool `flag:"sso" help:"NAME is a user of the issuer of access tokens"`
	groupFlag
	accessFlags
	Name string `arg:"NAME"`
}

func (o *accessAddCommand) run(ctx context.Context, v *invocation) error {
	switch {
	case o.Group && o.SSO:
		return v.usagef("--sso and --group exclude each other")
	case o.Group && o.Admin != nil:
		return v.usagef("a group cannot have --admin, only a user")
	case (o.Group || o.SSO) && !access.ValidSubject(o.Name):
		return v.usagef("NAME: got %s, want %s", spell.Quote(o.Name), access.WantSubject)
	case !o.Group && !o.SSO && !access.ValidName(o.Name):
		return v.usagef("NAME: got %s, want %s", spell.Quote(o.Name), access.WantName)
	}
	path, err := o.path(v.Env, o.Data)
	if err != nil {
		return err
	}
	_, err = access.Read(path)
	first := errors.Is(err, fs.ErrNotExist)
	token, hash := newToken()
	if o.SSO {
		token, hash = "", ""
	}
	err = o.edit(ctx, v, func(c *access.Content) error {
		switch {
		case slices.Contains(o.names(c), o.Name):
			return o.exists(v, c)
		case o.Group:
			c.Groups = append(c.Groups, access.Group{Name: o.Name, Read: o.Read, Write: o.Write})
			return nil
		}
		c.Users = append(c.Users, access.User{Name: o.Name, SHA256: hash, Read: o.Read, Write: o.Write,
			Admin: o.Admin != nil && *o.Admin})
		return nil
	})
	if err != nil {
		return err
	}
	if first {
		fmt.Fprintf(v.stderr, "Made the access file %s. A server that is started from now on admits only its users.\n",
			sanitize.Escape(path))
	}
	o.warnUnknown(ctx, v, o.Data)
	if len(o.Read)+len(o.Write) == 0 && (o.Admin == nil || !*o.Admin) {
		v.warn(fmt.Sprintf("%s has no rights yet; give some with: %s", spell.Quote(o.Name),
			o.advised(v, slices.Concat([]string{"access", "set"}, o.words(), []string{"--read", "LABEL"})...)))
	}
	if o.Group || o.SSO {
		return nil
	}
	return v.printToken(token, o.Name)
}

// words returns the words of a command for the user or group.
func (o *accessAddCommand) words() []string {
	words := []string{commandWord(sanitize.Escape(o.Name))}
	if o.Group {
		words = append(words, "--group")
	}
	return words
}

// exists returns the error for a user or group that exists already.
func (o *accessAddCommand) exists(v *invocation, c *access.Content) error {
	hint := "Change the rights with: " + o.advised(v, slices.Concat([]string{"access", "set"}, o.words())...)
	if u := c.User(o.Name); !o.Group && u.SHA256 != "" {
		hint += "\nMake a new token with: " + o.advised(v, slices.Concat([]string{"access", "rotate"}, o.words())...)
	}
	return &hintError{fmt.Errorf("the %s %s exists already", o.kind(), spell.Quote(o.Name)), hint}
}

// warnUnknown warns of labels that may be read and that no source and no collection of the
// data folder has, which are probably mistyped. A collection to write may be new. Sources
// that are asked are not remembered, but some have a default label.
func (o *rightsFlags) warnUnknown(ctx context.Context, v *invocation, data string) {
	ctx, cancel := context.WithTimeout(ctx, labelTime)
	defer cancel()
	x, dir, err := v.openExisting(ctx, data, datafolder.Model{})
	if x == nil || err != nil {
		return
	}
	defer x.Close()
	sources, err := x.Sources(ctx)
	if err != nil {
		return
	}
	known, err := (&datafolder.Folder{Index: x}).WrittenLabels(ctx)
	if err != nil {
		return
	}
	for _, src := range sources {
		known = append(known, src.Label)
	}
	known = append(known, string(source.Notes), string(source.Datasets))
	for _, label := range o.Read {
		if label == access.All || slices.Contains(known, label) || slices.Contains(o.Write, label) {
			continue
		}
		text := fmt.Sprintf("no source and no collection of %s has the label %q", sanitize.Escape(dir), label)
		if near := spell.Near(label, known, 1); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %q?", near[0])
		}
		v.warn(text)
	}
}

// An accessSetCommand replaces rights.
type accessSetCommand struct {
	rightsFlags
	NoRead  bool `flag:"no-read" help:"nothing may be read"`
	NoWrite bool `flag:"no-write" help:"nothing may be written"`
	groupFlag
	accessFlags
	Name string `arg:"NAME"`
}

func (o *accessSetCommand) run(ctx context.Context, v *invocation) error {
	switch {
	case o.Group && o.Admin != nil:
		return v.usagef("a group cannot have --admin, only a user")
	case o.NoRead && o.Read != nil:
		return v.usagef("--read and --no-read exclude each other")
	case o.NoWrite && o.Write != nil:
		return v.usagef("--write and --no-write exclude each other")
	case o.Read == nil && o.Write == nil && o.Admin == nil && !o.NoRead && !o.NoWrite:
		return v.usagef("want what to set: --read, --no-read, --write, --no-write or --admin")
	}
	var now access.Rights
	err := o.edit(ctx, v, func(c *access.Content) error {
		u, g := c.User(o.Name), c.Group(o.Name)
		switch {
		case !o.Group && u != nil:
			o.apply(&u.Read, &u.Write)
			if o.Admin != nil {
				u.Admin = *o.Admin
			}
			now = access.Rights{Read: u.Read, Write: u.Write, Admin: u.Admin}
		case o.Group && g != nil:
			o.apply(&g.Read, &g.Write)
			now = access.Rights{Read: g.Read, Write: g.Write}
		default:
			return o.unknown(v, &o.accessFlags, c, o.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.warnUnknown(ctx, v, o.Data)
	admin := ""
	if now.Admin {
		admin = "; admin"
	}
	_, err = fmt.Fprintf(v.stdout, "%s %s: read %s; write %s%s\n", o.kind(), sanitize.Escape(o.Name),
		labelList(now.Read), labelList(now.Write), admin)
	return err
}

// apply replaces the lists that the flags name.
func (o *accessSetCommand) apply(read, write *[]string) {
	if o.Read != nil || o.NoRead {
		*read = o.Read
	}
	if o.Write != nil || o.NoWrite {
		*write = o.Write
	}
}

// labelList returns labels for people.
func labelList(labels []string) string {
	if len(labels) == 0 {
		return "-"
	}
	return strings.Join(labels, " ")
}

// An accessRemoveCommand removes a user or a group.
type accessRemoveCommand struct {
	groupFlag
	accessFlags
	Name string `arg:"NAME"`
}

func (o *accessRemoveCommand) run(ctx context.Context, v *invocation) error {
	left := 0
	err := o.edit(ctx, v, func(c *access.Content) error {
		if !slices.Contains(o.names(c), o.Name) {
			return o.unknown(v, &o.accessFlags, c, o.Name)
		}
		if o.Group {
			c.Groups = slices.DeleteFunc(c.Groups, func(g access.Group) bool { return g.Name == o.Name })
		} else {
			c.Users = slices.DeleteFunc(c.Users, func(u access.User) bool { return u.Name == o.Name })
		}
		left = len(c.Users) + len(c.Groups)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(v.stdout, "removed %s %s\n", o.kind(), sanitize.Escape(o.Name)); err != nil {
		return err
	}
	if left == 0 {
		fmt.Fprintln(v.stderr, "No user is left, so nobody is admitted. To serve without users, remove the access file "+
			"and restart the server.")
	}
	return nil
}

// An accessRotateCommand replaces the token of a user.
type accessRotateCommand struct {
	accessFlags
	Name string `arg:"NAME"`
}

func (o *accessRotateCommand) run(ctx context.Context, v *invocation) error {
	token, hash := newToken()
	err := o.edit(ctx, v, func(c *access.Content) error {
		u := c.User(o.Name)
		switch {
		case u == nil:
			return (&groupFlag{}).unknown(v, &o.accessFlags, c, o.Name)
		case u.SHA256 == "":
			return &hintError{fmt.Errorf("%s is a user of the issuer of access tokens and has no token here",
				spell.Quote(o.Name)), "Add a user with another name for a token of this server."}
		}
		u.SHA256 = hash
		return nil
	})
	if err != nil {
		return err
	}
	return v.printToken(token, o.Name)
}

// An accessListCommand lists users and groups.
type accessListCommand struct {
	jsonFlag
	accessFlags
}

// An accessEntry is a user or a group in JSON.
type accessEntry struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind,omitempty"` // of a user: token or sso
	Read  []string `json:"read"`
	Write []string `json:"write"`
	Admin *bool    `json:"admin,omitempty"` // nil for a group
}

func (o *accessListCommand) run(_ context.Context, v *invocation) error {
	path, err := o.path(v.Env, o.Data)
	if err != nil {
		return err
	}
	c, err := access.Read(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		c = &access.Content{}
	case err != nil:
		return explainAccess(err)
	}
	users, groups := []accessEntry{}, []accessEntry{} // not null in JSON
	for _, u := range c.Users {
		kind := "token"
		if u.SHA256 == "" {
			kind = "sso"
		}
		users = append(users, accessEntry{u.Name, kind, notNull(u.Read), notNull(u.Write), &u.Admin})
	}
	for _, g := range c.Groups {
		groups = append(groups, accessEntry{g.Name, "", notNull(g.Read), notNull(g.Write), nil})
	}
	switch {
	case o.JSON:
		return v.printJSON(map[string]any{"users": users, "groups": groups})
	case missing:
		_, err = fmt.Fprintf(v.stderr, "There is no access file %s. Add a user with: %s\n", sanitize.Escape(path),
			o.advised(v, "access", "add", "NAME", "--read", "LABEL"))
		return err
	}
	w := tabwriter.NewWriter(v.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tREAD\tWRITE\tADMIN")
	for _, u := range users {
		u.print(w)
	}
	for _, g := range groups {
		g.Kind = "group"
		g.print(w)
	}
	return w.Flush()
}

// notNull returns a list that is [] in JSON if it is empty.
func notNull(labels []string) []string {
	if labels == nil {
		return []string{}
	}
	return labels
}

// print writes the entry as a line of a table.
func (a *accessEntry) print(w *tabwriter.Writer) {
	admin := "-"
	if a.Admin != nil && *a.Admin {
		admin = "yes"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", sanitize.Escape(a.Name), a.Kind, labelList(a.Read), labelList(a.Write), admin)
}
