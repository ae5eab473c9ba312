package access_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	hashA = "5fa7b55cf7d0a6a6ca3ceda46c7e6e5b4a1a7bd5b64a4f5a4e1a8a1d6d7a7c55"
	hashB = "A665A45920422F9D417E4867EFDC4FB8A04A1F3FFF1FA07E998E86F7F7A27AE3"
)

// write writes an access file and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	got, err := access.Read(write(t, `{"users": {
		"zoe": {"sha256": "`+hashA+`", "read": ["docs", "hr.2"], "write": null},
		"bot@ci+1": {"sha256": "`+hashB+`", "read": ["*"], "write": ["*"], "admin": true},
		"auth0|ann: ä/b": {"read": ["docs"], "sha256": null}
	}, "groups": {"staff": {"read": ["docs"]}, "Editors of docs": {"write": ["docs"]}, "none": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &access.Content{Users: []access.User{
		{Name: "zoe", SHA256: hashA, Read: []string{"docs", "hr.2"}},
		{Name: "bot@ci+1", SHA256: hashB, Read: []string{"*"}, Write: []string{"*"}, Admin: true},
		{Name: "auth0|ann: ä/b", Read: []string{"docs"}},
	}, Groups: []access.Group{
		{Name: "staff", Read: []string{"docs"}}, {Name: "Editors of docs", Write: []string{"docs"}}, {Name: "none"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read differs (-want +got):\n%s", diff)
	}
	for _, text := range []string{`{}`, `{"users":{}}`, `{"users":null,"groups":null}`} {
		if c, err := access.Read(write(t, text)); err != nil || len(c.Users)+len(c.Groups) > 0 {
			t.Errorf("Read(%s) = %v, %v", text, c, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	long := strings.Repeat("x", 256)
	tests := []struct{ text, want string }{
		{"", `the file is empty, want {"users":{},"groups":{}}`},
		{" \n", `the file is empty, want {"users":{},"groups":{}}`},
		{`{"users":{`, `:1:11: invalid JSON: unexpected end of JSON input`},
		{`null`, `:1:1: got null, want an object`},
		{`{"user":{}}`, `:1:2: unknown key "user", want "users"`},
		{"{\"users\":{\n\"ann\":{\"reads\":[]}}}", `:2:8: users.ann: unknown key "reads", want "read"`},
		{"{\"users\":{\n\"ann\":{},\n\"ann\":{}}}", `:3:1: users.ann: given twice, first in line 2`},
		{`{"users":{"a":{"sha256":"` + hashA + `"},"b":{"sha256":"` + strings.ToUpper(hashA) + `"}}}`,
			`:1:107: users.b.sha256: the user a has the same token; make a new one for one of them`},
		{`{"users":{"a":{"sha256":"kh_secret"}}}`, `:1:25: users.a.sha256: got a value that is not shown, ` +
			`want the SHA-256 of a token: 64 hexadecimal digits`},
		{`{"users":{"a":{"sha256":""}}}`, `:1:25: users.a.sha256: got a value that is not shown, ` +
			`want the SHA-256 of a token: 64 hexadecimal digits`},
		{`{"users":{"a:b":{"sha256":"` + hashA + `"}}}`, `:1:17: users."a:b": the name of a user with a token, want ` +
			access.WantName},
		{`{"users":{"-a":{"sha256":"` + hashA + `"}}}`, `:1:16: users.-a: the name of a user with a token, want ` +
			access.WantName},
		{`{"users":{"":{}}}`, `:1:14: users."": the name of a user, want ` + access.WantSubject},
		{`{"users":{"a\u0007":{}}}`, `:1:21: users."a\a": the name of a user, want ` + access.WantSubject},
		{`{"users":{"` + long + `":{}}}`, `the name of a user, want ` + access.WantSubject},
		{`{"groups":{"` + long + `":{}}}`, `the name of a group, want ` + access.WantSubject},
		{`{"users":{"a":{"read":["docs","a b"]}}}`, `:1:31: users.a.read[1]: got "a b", want ` + access.WantLabel},
		{`{"users":{"a":{"read":["docs"],"write":["x/*"]}}}`, `:1:41: users.a.write[0]: got "x/*", want ` + access.WantLabel},
		{`{"groups":{"a":{"read":[""]}}}`, `:1:25: groups.a.read[0]: got "", want ` + access.WantLabel},
		{`{"groups":{"a":{"admin":true}}}`, `:1:17: groups.a: unknown key "admin", want one of read, write`},
		{`{"users":{"a":{"read":"docs"}}}`, `:1:23: users.a.read: got "docs", want a list`},
	}
	for _, tt := range tests {
		path := write(t, tt.text)
		_, err := access.Read(path)
		if err == nil || !strings.HasPrefix(err.Error(), path) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("Read(%.80q)\n got %v\nwant %s", tt.text, err, tt.want)
		} else if !errors.Is(err, errkind.Invalid) {
			t.Errorf("Read(%.80q) = %v, which is not of kind Invalid", tt.text, err)
		}
	}
	if _, err := access.Read(filepath.Join(t.TempDir(), "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read(missing) = %v", err)
	}
	if _, err := access.Read(t.TempDir()); !errors.Is(err, errkind.Invalid) {
		t.Errorf("Read(a folder) = %v", err)
	}
}

// FuzzRead checks that no file makes Read panic, and that what it accepts is the same
// after it was edited.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `{"users":{"ann":{"sha256":"` + hashA + `","read":["*"],"admin":true}}}`,
		`{"users":{"a<b\u2028|c":{"read":null}},"groups":{"g":{"write":["docs"]}}}`, `{"users":{"a":{},"A":{}}}`, `[[`,
		"\ufeff{\"users\":null}"} {
		f.Add(s)
	}
	path := filepath.Join(f.TempDir(), "access.json")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := access.Read(path)
		file := access.Open(path, nil)
		if err != nil {
			if file.OfIssuer("ann", []string{"g"}) != nil || file.Err() == nil {
				t.Errorf("somebody is admitted by a damaged file: %s", text)
			}
			return
		}
		if err := access.Edit(context.Background(), path, func(*access.Content) error { return nil }); err != nil {
			t.Fatalf("Edit(%s): %v", text, err)
		}
		after, err := access.Read(path)
		if err != nil {
			t.Fatalf("Read after Edit(%s): %v", text, err)
		}
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Edit(%s) changes (-before +after):\n%s", text, diff)
		}
		for _, u := range before.Users {
			if c := file.OfIssuer(u.Name, nil); u.SHA256 != "" && c.Any() {
				t.Errorf("the issuer's user %q has the rights of a user with a token", u.Name)
			}
		}
	})
}
