package access

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/config"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxSize is the maximum size of an access file in bytes: about 40 000 users.
const maxSize = 8 << 20

// FileName is the name of the access file in a data folder.
const FileName = "access.json"

// A Content is what an access file contains. Names of users are distinct, as are those
// of groups.
type Content struct {
	Users  []User  `json:"users"`
	Groups []Group `json:"groups"`
}

// A User is a user of the access file: one with a token, or one of an issuer.
type User struct {
	// Name is for users with a token as [ValidName] reports. For those of an issuer it
	// is the subject, as [ValidSubject] reports.
	Name string `json:"-" config:"key"`

	SHA256 string   `json:"sha256,omitempty"` // of the token, in hex; "" for a user of an issuer
	Read   []string `json:"read"`             // as in [Rights]
	Write  []string `json:"write"`
	Admin  bool     `json:"admin"`
}

// A Group is a group of an issuer. Its name is as [ValidSubject] reports.
type Group struct {
	Name  string   `json:"-" config:"key"`
	Read  []string `json:"read"` // as in [Rights]
	Write []string `json:"write"`
}

// User returns the user with a name, or nil.
func (c *Content) User(name string) *User {
	if i := slices.IndexFunc(c.Users, func(u User) bool { return u.Name == name }); i >= 0 {
		return &c.Users[i]
	}
	return nil
}

// Group returns the group with a name, or nil.
func (c *Content) Group(name string) *Group {
	if i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == name }); i >= 0 {
		return &c.Groups[i]
	}
	return nil
}

// name matches the names of users with a token. They have no colon, so that the ID of no
// such user is that of a user of an issuer.
var name = regexp.MustCompile(`^[A-Za-z0-9._@+][A-Za-z0-9._@+-]{0,99}$`)

// What is permitted, for messages.
const (
	WantName    = `1 to 100 letters from a to z, digits, ".", "_", "@", "+" and "-", and no "-" at the beginning`
	WantSubject = "1 to 255 bytes of printable text"
	WantLabel   = `letters, digits, "_", "." and "-", or "*" for all`
)

// ValidName reports whether a user with a token can have a name.
func ValidName(s string) bool { return name.MatchString(s) }

// ValidSubject reports whether a user or a group of an issuer can have a name.
func ValidSubject(s string) bool {
	return s != "" && len(s) <= 255 && utf8.ValidString(s) && !strings.ContainsFunc(s, notPrintable)
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// ValidLabel reports whether s is in lists of labels: whether a source or a collection
// can have that label, or it is [All].
func ValidLabel(s string) bool { return s == All || document.ValidLabel(s) }

// Read reads the access file at path. If there is none, errors.Is finds fs.ErrNotExist.
// Other errors name the file, and where it is damaged the line and the member. They are of
// kind errkind.Invalid then.
func Read(path string) (*Content, error) {
	data, _, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

// readFile returns the bytes of a file, and its state when they were read.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	const attempts = 3
	for range attempts {
		data, before, after, err := tryRead(path)
		if err != nil || before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) {
			return data, before, err
		}
	}
	return nil, nil, fmt.Errorf("reading the access file %s: another program is writing it: %w", path, errkind.Busy)
}

// tryRead returns the bytes of a file, and its state before and after they were read.
func tryRead(path string) (data []byte, before, after fs.FileInfo, err error) {
	// A pipe is not opened: that would wait for its writer.
	if before, err = os.Stat(path); err != nil {
		return nil, nil, nil, readError(err)
	}
	if !before.Mode().IsRegular() {
		return nil, nil, nil, readError(&fs.PathError{Op: "open", Path: path, Err: errNoFile})
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, nil, readError(err)
	}
	defer f.Close()
	if before, err = f.Stat(); err != nil {
		return nil, nil, nil, readError(err)
	}
	if data, err = io.ReadAll(io.LimitReader(f, maxSize+1)); err != nil {
		return nil, nil, nil, readError(err)
	}
	if after, err = f.Stat(); err != nil {
		return nil, nil, nil, readError(err)
	}
	return data, before, after, nil
}

// errNoFile means that the access file is something else, such as a folder.
var errNoFile = fmt.Errorf("not a file: %w", errkind.Invalid)

// readError returns the error for a file that cannot be read, whose path err has.
func readError(err error) error { return fmt.Errorf("reading the access file: %w", err) }

// parse returns what the bytes of an access file contain.
func parse(path string, data []byte) (*Content, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &config.Error{File: path, Reason: "the file is empty", Want: `{"users":{},"groups":{}}`}
	}
	c := &Content{}
	f, err := config.Read(path, bytes.NewReader(data), c, config.Options{MaxSize: maxSize, Nulls: true})
	if err != nil {
		return nil, err
	}
	return c, c.check(f)
}

// check returns the error for the first value that is not permitted. f is the file.
func (c *Content) check(f *config.File) error {
	holders := map[string]string{} // of hashes
	for _, u := range c.Users {
		at := config.Member("users", u.Name)
		hash := config.Member(at, "sha256")
		switch sum, err := hex.DecodeString(u.SHA256); {
		case f.Has(hash) && (err != nil || len(sum) != len(digest{})):
			return f.Bad(hash, "the SHA-256 of a token: 64 hexadecimal digits")
		case u.SHA256 != "" && !ValidName(u.Name):
			return f.Refuse(at, "the name of a user with a token, want "+WantName)
		case !ValidSubject(u.Name):
			return f.Refuse(at, "the name of a user, want "+WantSubject)
		case u.SHA256 != "" && holders[string(sum)] != "":
			return f.Refuse(hash, "the user "+holders[string(sum)]+" has the same token; make a new one for one of them")
		case u.SHA256 != "":
			holders[string(sum)] = u.Name
		}
		if err := checkLists(f, at, u.Read, u.Write); err != nil {
			return err
		}
	}
	for _, g := range c.Groups {
		at := config.Member("groups", g.Name)
		if !ValidSubject(g.Name) {
			return f.Refuse(at, "the name of a group, want "+WantSubject)
		}
		if err := checkLists(f, at, g.Read, g.Write); err != nil {
			return err
		}
	}
	return nil
}

// checkLists checks the labels of a user or a group.
func checkLists(f *config.File, at string, read, write []string) error {
	for i, label := range slices.Concat(read, write) {
		if ValidLabel(label) {
			continue
		}
		if i < len(read) {
			return f.Bad(fmt.Sprintf("%s.read[%d]", at, i), WantLabel)
		}
		return f.Bad(fmt.Sprintf("%s.write[%d]", at, i-len(read)), WantLabel)
	}
	return nil
}

// encode returns the content as a file: JSON with a line for each user and each group.
func (c *Content) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n  \"users\": {")
	for i, u := range c.Users {
		u.Read, u.Write = list(u.Read), list(u.Write)
		if err := writeMember(&b, i, u.Name, u); err != nil {
			return nil, err
		}
	}
	end(&b, len(c.Users))
	b.WriteString(",\n  \"groups\": {")
	for i, g := range c.Groups {
		g.Read, g.Write = list(g.Read), list(g.Write)
		if err := writeMember(&b, i, g.Name, g); err != nil {
			return nil, err
		}
	}
	end(&b, len(c.Groups))
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// list returns a list that is not nil, so that it is [] in JSON.
func list(labels []string) []string {
	if labels == nil {
		return []string{}
	}
	return labels
}

// writeMember writes the member of an object with the index i.
func writeMember(b *bytes.Buffer, i int, name string, value any) error {
	if i > 0 {
		b.WriteByte(',')
	}
	b.WriteString("\n    ")
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	for j, v := range []any{name, value} {
		if j > 0 {
			b.WriteString(": ")
		}
		if err := encoder.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the line feed
	}
	return nil
}

// end writes the end of an object with n members.
func end(b *bytes.Buffer, n int) {
	if n > 0 {
		b.WriteString("\n  ")
	}
	b.WriteByte('}')
}
