package configfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A strangeFile is a file that is damaged or written in an unusual way.
type strangeFile struct {
	name    string
	data    string
	refused bool // it cannot be changed, and the error has a line
	lineEnd bool // it has other values without the last line end
}

// strange returns the strange files of a format, each with several line ends and
// marks, and one that is cut off in many places.
func strange(format configfile.Format, isList bool) []strangeFile {
	var files []strangeFile
	var whole string
	switch {
	case isList:
		files, whole = strangeLists, wholeList
	case format == configfile.JSON:
		files, whole = strangeJSON, wholeJSON
	case format == configfile.TOML:
		files, whole = strangeTOML, wholeTOML
	default:
		files, whole = strangeYAML, wholeYAML
	}
	var all []strangeFile
	for _, f := range files {
		all = append(all, f)
		if crlf := strings.ReplaceAll(f.data, "\n", "\r\n"); crlf != f.data {
			all = append(all, strangeFile{f.name + ", CRLF", crlf, f.refused, f.lineEnd})
		}
		if !strings.HasPrefix(f.data, "\xff") && !strings.HasPrefix(f.data, "\xfe") && !strings.HasPrefix(f.data, "\ufeff") {
			all = append(all, strangeFile{f.name + ", byte order mark", "\ufeff" + f.data, f.refused, f.lineEnd})
		}
		if cut := strings.TrimRight(f.data, "\n"); cut != f.data && !f.lineEnd {
			all = append(all, strangeFile{f.name + ", no line end", cut, f.refused, f.lineEnd})
		} else {
			all = append(all, strangeFile{f.name + ", more lines", f.data + "\n\n", f.refused, f.lineEnd})
		}
	}
	for n := 1; n < len(whole); n += 7 {
		all = append(all, strangeFile{fmt.Sprintf("the first %d bytes", n), whole[:n], false, false})
	}
	return all
}

// TestStrange checks that every strange file is refused, with the line, or is
// changed by the entry alone, and is its old self after that.
func TestStrange(t *testing.T) {
	count := 0
	for _, kind := range []struct {
		format configfile.Format
		list   bool
	}{{configfile.JSON, false}, {configfile.TOML, false}, {configfile.YAML, false}, {configfile.YAML, true}} {
		for _, f := range strange(kind.format, kind.list) {
			count++
			t.Run(fmt.Sprintf("%s %v %s", kind.format, kind.list, f.name), func(t *testing.T) {
				cut := strings.HasPrefix(f.name, "the first ")
				ok := checkFile(t, kind.format, kind.list, []byte(f.data))
				if !cut && ok == f.refused {
					_, err := configfile.Set(kind.format, []byte(f.data), placeIn(kind.format, kind.list), entry)
					t.Errorf("%q: changed: %v, want %v; %v", f.data, ok, !f.refused, err)
				}
				onDisk(t, kind.format, kind.list, f.data, ok)
			})
		}
	}
	if count < 200 {
		t.Errorf("there are %d files, want 200", count)
	}
}

// onDisk adds and removes an entry in a file on disk.
func onDisk(t *testing.T, format configfile.Format, isList bool, data string, ok bool) {
	t.Helper()
	path := filepath.Join(tempDir(t), "config")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	place := placeIn(format, isList)
	_, had, _ := configfile.Get(format, []byte(data), place)
	err := configfile.Change(path, configfile.Options{First: true}, func(old []byte) ([]byte, error) {
		return configfile.Set(format, old, place, entry)
	})
	switch {
	case ok && err != nil:
		t.Errorf("Change() = %v", err)
	case !ok && (!errors.Is(err, errkind.Invalid) || !strings.HasPrefix(err.Error(), path+":")):
		t.Errorf("Change() = %v, want Invalid with the line", err)
	case ok && !had:
		backup, err := configfile.Backup(path)
		if err != nil || string(backup) != data {
			t.Errorf("the backup has %q, %v", backup, err)
		}
		if err := configfile.Change(path, configfile.Options{Last: true}, func(old []byte) ([]byte, error) {
			return configfile.Undo(format, old, backup, place)
		}); err != nil {
			t.Errorf("Change() to undo = %v", err)
		}
	case ok:
		return // an entry of the user was replaced
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, []byte(data)) {
		t.Errorf("the file became %q, %v", now, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("there is more than the file: %v, %v", left, err)
	}
}

// tempDir returns a new folder, in memory if the system has such folders: a file
// is synced quickly there.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "configfile")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

var strangeJSON = []strangeFile{
	{"empty", "", false, false},
	{"blank", " \n\t\n", false, false},
	{"a comment only", "// settings\n", false, false},
	{"block comments only", "/* a */ /* b\n */\n", false, false},
	{"empty object", "{}\n", false, false},
	{"empty object with spaces", "{   }\n", false, false},
	{"empty object with lines", "{\n\n\n}\n", false, false},
	{"comment in an empty object", "{\n  // nothing\n}\n", false, false},
	{"block comment in an empty object", "{/* nothing */}\n", false, false},
	{"comment after the object", "{} // end\n", false, false},
	{"comments in all places",
		"/*1*/ { /*2*/ \"mcpServers\" /*3*/ : /*4*/ { /*5*/ \"a\" /*6*/ : /*7*/ {} /*8*/ , /*9*/ } /*10*/ } /*11*/\n", false, false},
	{"line comments in all places",
		"//1\n{ //2\n\"mcpServers\" //3\n: //4\n{ //5\n\"a\" //6\n: //7\n{} //8\n, //9\n} //10\n} //11\n", false, false},
	{"comment with braces", "{\"a\": 1 /* }, \"mcpServers\": { */}\n", false, false},
	{"comment with a quotation mark", "{\n  // don't \"\n  \"mcpServers\": {\"a\": {}} // \"\n}\n", false, false},
	{"string with a comment", "{\"a\": \"// no\", \"b\": \"/* no\", \"mcpServers\": {\"c\": {}}}\n", false, false},
	{"string with the key", "{\"a\": \"\\\"mcpServers\\\": {\", \"mcpServers\": {\"c\": {}}}\n", false, false},
	{"trailing commas", "{\"a\": [1,], \"mcpServers\": {\"c\": {\"d\": 1,},},}\n", false, false},
	{"comma on the next line", "{\n  \"a\": 1\n  , \"mcpServers\": {\n    \"c\": {}\n  }\n}\n", false, false},
	{"braces on lines of their own", "{\n  \"mcpServers\":\n  {\n    \"c\":\n    {\n      \"d\": 1\n    }\n  }\n}\n", false, false},
	{"tabs", "{\n\t\"mcpServers\":\t{\n\t\t\"c\":\t{\n\t\t\t\"d\":\t1\n\t\t}\n\t}\n}\n", false, false},
	{"three spaces", "{\n   \"mcpServers\": {\n      \"c\": {\n         \"d\": 1\n      }\n   }\n}\n", false, false},
	{"no indentation", "{\n\"mcpServers\": {\n\"c\": {\n\"d\": 1\n}\n}\n}\n", false, false},
	{"mixed indentation", "{\n\t  \"mcpServers\": {\n   \t\"c\": {\"d\": 1}}}\n", false, false},
	{"last brace on the line of the entry", "{\n  \"mcpServers\": {\n    \"c\": {} }}\n", false, false},
	{"minified", "{\"a\":1,\"mcpServers\":{\"c\":{\"d\":[1,2]}}}\n", false, false},
	{"escapes in keys", "{\"\\u006dcpServers\": {\"\\u0063\": {}, \"\\ud83d\\ude00\": {}}}\n", false, false},
	{"escaped name of the entry", "{\"mcpServers\": {\"fi\\u006ces\": {\"a\": 1}, \"b\": 2}}\n", false, false},
	{"key with a slash and dots", "{\"a/b.c~1\": {}, \"\": {}, \"mcpServers\": {\" \": {}}}\n", false, false},
	{"unrelated keys twice", "{\"a\": 1, \"a\": 2, \"mcpServers\": {\"b\": {}, \"b\": {}}}\n", false, false},
	{"other case", "{\"MCPServers\": [], \"mcpservers\": 1}\n", false, false},
	{"numbers", "{\"a\": 1e999, \"b\": -0, \"c\": 1.0000, \"d\": 123456789012345678901234567890, \"mcpServers\": {\"x\": 1E+2}}\n", false, false},
	{"other entries that are no objects", "{\"mcpServers\": {\"a\": null, \"b\": [], \"c\": \"\"}}\n", false, false},
	{"entry that is no object", "{\"mcpServers\": {\"files\": null}}\n", false, false},
	{"the key deeper inside", "{\"a\": {\"mcpServers\": {\"files\": {}}}}\n", false, false},
	{"deep but allowed", strings.Repeat("{\"a\":", 150) + "1" + strings.Repeat("}", 150) + "\n", false, false},
	{"brackets in a string", "{\"a\": \"" + strings.Repeat("[{", 300) + "\"}\n", false, false},
	{"unusual characters", "{\"ü\u2028\u00a0\u200b\": \"\u007f😀\", \"mcpServers\": {\"é\": {}}}\n", false, false},

	{"parent is a list", "{\n\"mcpServers\": [\n]}\n", true, false},
	{"parent is a string", "{\"mcpServers\": \"x\"}\n", true, false},
	{"parent is null", "{\"mcpServers\": null}\n", true, false},
	{"parent is a number", "{\"mcpServers\": 1}\n", true, false},
	{"parent twice", "{\"mcpServers\": {}, \"mcpServers\": {}}\n", true, false},
	{"parent twice, once with escapes", "{\"mcpServers\": {}, \"\\u006dcpServers\": {}}\n", true, false},
	{"entry twice", "{\"mcpServers\": {\"files\": {}, \"files\": {}}}\n", true, false},
	{"root is a list", "[{\"mcpServers\": {}}]\n", true, false},
	{"root is a string", "\"mcpServers\"\n", true, false},
	{"two values", "{}\n{}\n", true, false},
	{"text after the object", "{} x\n", true, false},
	{"no closing brace", "{\"mcpServers\": {}\n", true, false},
	{"brace too many", "{\"mcpServers\": {}}}\n", true, false},
	{"no comma", "{\"a\": 1 \"mcpServers\": {}}\n", true, false},
	{"two commas", "{\"a\": 1,, \"mcpServers\": {}}\n", true, false},
	{"single quotation marks", "{'mcpServers': {}}\n", true, false},
	{"keys without quotation marks", "{mcpServers: {}}\n", true, false},
	{"comment that does not end", "{} /* x\n", true, false},
	{"string that does not end", "{\"a\": \"x\n}\n", true, false},
	{"line end in a string", "{\"a\": \"x\ny\"}\n", true, false},
	{"hash comment", "# x\n{}\n", true, false},
	{"NaN", "{\"a\": NaN}\n", true, false},
	{"merge conflict", "{\n<<<<<<< HEAD\n\"a\": 1\n=======\n\"a\": 2\n>>>>>>> b\n}\n", true, false},
	{"NUL bytes", "{\"a\": 1}\x00\x00\x00\n", true, false},
	{"only NUL bytes", "\x00\x00\x00\x00", true, false},
	{"UTF-16 LE", "\xff\xfe{\x00}\x00", true, false},
	{"UTF-16 BE", "\xfe\xff\x00{\x00}", true, false},
	{"UTF-16 without a mark", "{\x00}\x00", true, false},
	{"Latin-1", "{\"a\": \"\xe9\"}\n", true, false},
	{"too deep", strings.Repeat("[", 100000) + "\n", true, false},
	{"too deep, objects", strings.Repeat("{\"a\":", 201) + "1" + strings.Repeat("}", 201) + "\n", true, false},
}

const wholeJSON = `{
  // a comment
  "theme": "dark\u0041", /* another */
  "numbers": [1, 2.50, -3e10,],
  "mcpServers": {
    "a": {"command": "x", "args": ["y"]}, // last
  },
}
`

var strangeTOML = []strangeFile{
	{"empty", "", false, false},
	{"blank", " \n\t\n", false, false},
	{"a comment only", "# settings\n", false, false},
	{"empty parent", "[mcp_servers]\n", false, false},
	{"empty parent with a comment", "[mcp_servers] # none\n# yet\n", false, false},
	{"parent in quotation marks", "[\"mcp_servers\".a]\nb = 1\n", false, false},
	{"parent with escapes", "[\"mcp\\u005fservers\"] # c\na.b = 1\n", false, false},
	{"parent in single quotation marks", "['mcp_servers'.'a.b']\nb = 1\n", false, false},
	{"spaces in headers", "[ mcp_servers . a ]\nb = 1\n", false, false},
	{"indentation", "[mcp_servers]\n  [mcp_servers.a]\n    b = 1\n", false, false},
	{"tables out of order", "[mcp_servers.a.env]\nB = '1'\n\n[z]\n\n[mcp_servers.a]\nb = 1\n\n[y]\n", false, false},
	{"comments everywhere", "# 1\n[mcp_servers.a] # 2\n# 3\nb = 1 # 4\n# 5\n\n# 6\n[c] # 7\n# 8\n", false, false},
	{"comment of the next table", "[mcp_servers.a]\nb = 1\n# about c\n[c]\nd = 1\n", false, false},
	{"no blank lines", "a = 1\n[mcp_servers.a]\nb = 1\n[c]\nd = 1\n", false, false},
	{"many blank lines", "a = 1\n\n\n\n[c]\nd = 1\n\n\n\n", false, false},
	{"inline parent", "mcp_servers = { a = { b = 1 } } # c\n", false, false},
	{"empty inline parent", "mcp_servers = {}\n", false, false},
	{"empty inline parent with a space", "mcp_servers = { } # c\n", false, false},
	{"inline entry", "[mcp_servers]\nfiles = { command = \"a\" } # c\nb = { c = 1 }\n", false, false},
	{"dotted inline entry", "mcp_servers.files = { command = \"a\" }\n", false, false},
	{"dotted entry", "mcp_servers.files.command = \"a\"\nmcp_servers.files.args = [\n  'b', # ]\n]\nc = 1\n", false, false},
	{"dotted neighbour", "[mcp_servers]\na.b = 1\na.c = 2\n", false, false},
	{"dotted neighbour at the root", "mcp_servers.a.b = 1\n", false, false},
	{"entry with a table in between", "[mcp_servers.files]\na = 1\n[b]\n[mcp_servers.files.env]\nA = 'b'\n[c]\n", false, false},
	{"entry with tables before it", "[mcp_servers.files.env]\nA = 'b'\n\n[mcp_servers.files]\na = 1\n", false, false},
	{"entry with a list of tables", "[mcp_servers.files]\na = 1\n[[mcp_servers.files.b]]\nc = 1\n[[mcp_servers.files.b]]\n", false, false},
	{"other list of tables", "[[a]]\nb = 1\n[[a]]\n[a.mcp_servers.files]\nc = 1\n", false, false},
	{"multi-line strings", "a = \"\"\"\n[mcp_servers.files]\ncommand = \"b\" \\\n  \"\"\" # c\nb = '''\n[mcp_servers.files]''''\n", false, false},
	{"quotation marks at the end of a string", "a = \"\"\"b\"\"\"\"\"\nc = '''d'''''\n[mcp_servers.a]\n", false, false},
	{"header in a list", "a = [\n  [ 'mcp_servers' ], # [\n  [\"]\"],\n]\n[mcp_servers.a]\n", false, false},
	{"strings with comments", "a = \"# no\" # \"yes\nb = '#' # '\n[mcp_servers.a]\n", false, false},
	{"literal strings", "[mcp_servers.a]\ncommand = 'C:\\new\\x'\n", false, false},
	{"numbers and dates", "a = 1_000\nb = 0xFF\nc = inf\nd = nan\ne = 1979-05-27 07:32:00Z\nf = 07:32:00\ng = 1e3\n[mcp_servers.a]\n", false, false},
	{"empty keys", "\"\" = 1\n[mcp_servers.'']\n'' = 1\n", false, false},
	{"unusual characters", "'ü😀' = \"\\U0001F600\u00a0\u2028\"\n[mcp_servers.\"é\"]\n", false, false},
	{"white space at line ends", "[mcp_servers.a]  \nb = 1\t\n  \n[c]\t# d \n", false, false},
	{"super table later", "[mcp_servers.a]\nb = 1\n[mcp_servers]\n", false, false},
	{"similar names", "[mcp_servers_old.files]\na = 1\n[mcp.servers.files]\n[mcp_servers.files2]\n", false, false},
	{"brackets in a string", "a = \"" + strings.Repeat("[", 300) + "\"\n", false, false},

	{"list of tables", "a = 1\n[[mcp_servers]]\nname = 'a'\n", true, false},
	{"parent is a list", "mcp_servers = []\n", true, false},
	{"parent is a string", "mcp_servers = 'x'\n", true, false},
	{"parent is a date", "mcp_servers = 1979-05-27\n", true, false},
	{"parent twice", "[mcp_servers]\n[mcp_servers]\n", true, false},
	{"entry twice", "[mcp_servers.files]\n[mcp_servers.files]\n", true, false},
	{"key twice", "a = 1\na = 2\n", true, false},
	{"inline parent extended", "mcp_servers = {}\n[mcp_servers.a]\n", true, false},
	{"dotted entry in an inline parent", "mcp_servers = { files.command = 'x' }\n", true, false},
	{"no value", "a =\n", true, false},
	{"no key", "= 1\n", true, false},
	{"no equals sign", "[mcp_servers]\nfiles\n", true, false},
	{"header that does not end", "[mcp_servers\n", true, false},
	{"string that does not end", "a = \"x\n", true, false},
	{"long string that does not end", "a = '''x\n[mcp_servers.files]\n", true, false},
	{"list that does not end", "a = [1, 2\n[mcp_servers]\n", true, false},
	{"JSON", "{\"mcp_servers\": {}}\n", true, false},
	{"YAML", "mcp_servers:\n  a: 1\n", true, false},
	{"bad escape", "a = \"\\q\"\n", true, false},
	{"bad number", "a = 01\n", true, false},
	{"control character", "a = \"\x01\"\n", true, false},
	{"NUL byte", "a = 1\n\x00\n", true, false},
	{"UTF-16", "\xff\xfea\x00", true, false},
	{"Latin-1", "a = \"\xe9\"\n", true, false},
	{"merge conflict", "<<<<<<< HEAD\na = 1\n", true, false},
	{"too deep", "a = " + strings.Repeat("[", 100000) + "\n", true, false},
	{"key with too many dots", strings.Repeat("a.", 300) + "b = 1\n", true, false},
}

const wholeTOML = `# a comment
model = "dark\u0041" # another
numbers = [1, 2.50, -3e10,]

[mcp_servers.a]
command = "x" # c
args = [
  'y',
]
[mcp_servers.a.env]
A = """
[mcp_servers.b]
"""

[profiles.'b.c']
d = { e = 1, f = 1979-05-27 }
`

var strangeYAML = []strangeFile{
	{"empty", "", false, false},
	{"blank", " \n\n", false, false},
	{"a comment only", "# settings\n", false, false},
	{"start of a document only", "---\n", false, false},
	{"start and comment", "--- # c\n# d\n", false, false},
	{"start and end", "---\na: 1\n...\n", false, false},
	{"directive", "%YAML 1.1\n---\na: 1\n", false, false},
	{"version that the parser does not know", "%YAML 1.2\n---\na: 1\n", true, false},
	{"missing value", "extensions:\n", false, false},
	{"missing value with a comment", "extensions: # none\n# yet\na: 1\n", false, false},
	{"missing value at the end", "a: 1\nextensions:\n", false, false},
	{"empty parent", "extensions: {}\n", false, false},
	{"empty parent with a space", "extensions: { } # c\na: 1\n", false, false},
	{"empty file in braces", "{}\n", false, false},
	{"JSON", "{\n  \"extensions\": {\n    \"a\": {\"cmd\": \"b\"}\n  }\n}\n", false, false},
	{"four spaces", "extensions:\n    a:\n        cmd: b\n", false, false},
	{"one space", "extensions:\n a:\n  cmd: b\n", false, false},
	{"odd indentation", "extensions:\n   a:\n     cmd: b\nc:\n d: 1\n", false, false},
	{"comments everywhere", "# 1\nextensions: # 2\n  # 3\n  a: # 4\n    cmd: b # 5\n    # 6\n  # 7\n# 8\nc: 1 # 9\n# 10\n", false, false},
	{"comments at the end", "extensions:\n  a:\n    cmd: b\n  # off:\n  #   cmd: c\n\n# end\n", false, false},
	{"blank lines between entries", "extensions:\n\n  a:\n    cmd: b\n\n\n  c:\n    cmd: d\n\n\ne: 1\n", false, false},
	{"keys in quotation marks", "\"extensions\":\n  'a':\n    cmd: b\n", false, false},
	{"key with escapes", "\"ext\\x65nsions\":\n  a: 1\n", false, false},
	{"lists at the margin", "extensions:\n  a:\n    args:\n    - b\n    - c\nlist:\n- d\n", false, false},
	{"literal at the end", "extensions:\n  a:\n    text: |\n      b\n      # c\n\n", false, true},
	{"literal with other keys", "text: |\n  extensions:\n    files: 1\nextensions:\n  a: 1\n", false, false},
	{"folded with indentation", "extensions:\n  a: >2\n      b\n     c\nd: 1\n", false, false},
	{"literal that is stripped", "extensions:\n  a: |-\n    b\n\n\nc: 1\n", false, false},
	{"literal that keeps lines", "extensions:\n  a: |+\n    b\n\n\nc: 1\n", false, false},
	{"plain text on several lines", "extensions:\n  a: b\n    c\n    d\n", false, false},
	{"quoted text on several lines", "extensions:\n  a: \"b\n    # c\n\n    d\"\ne: 1\n", false, false},
	{"quoted text at the margin", "extensions:\n  a: 'b\n\n    c'\n", false, false},
	{"braces in entries", "extensions:\n  a: {cmd: b, args: [c, \"d}\"]}\n  e: {\n    cmd: f\n  }\n", false, false},
	{"braces elsewhere", "a: {b: [c]}\nextensions:\n  d: {}\n", false, false},
	{"anchors elsewhere", "a: &x\n  b: 1\nc: *x\nextensions:\n  d: *x\n  e:\n    <<: *x\n", false, false},
	{"tags elsewhere", "a: !x b\nextensions:\n  c: !!str 1\n", false, false},
	{"numbers and words", "a: 0777\nb: 1e999\nc: yes\nd: ~\ne: 2001-01-01\nf: .nan\nextensions:\n  no: 1\n  1: 2\n  null: 3\n", false, false},
	{"entry to replace", "extensions:\n  files: # c\n    cmd: old # d\n    # e\n  b:\n    cmd: c\n", false, false},
	{"entry in braces to replace", "extensions:\n  files: {cmd: old}\n  b: 1\n", false, false},
	{"entry without a value", "extensions:\n  files:\n  b: 1\n", false, false},
	{"entry between others", "extensions:\n  a: 1\n  files: 2\n  b: 3\n", false, false},
	{"question marks", "? a\n: b\nextensions:\n  ? c\n  : d\n", false, false},
	{"unrelated keys twice", "a: 1\na: 2\nextensions:\n  b: 1\n  b: 2\n", false, false},
	{"unusual characters", "ü: 😀\nextensions:\n  é: \"\u00a0\\u2028\"\n", false, false},
	{"other line ends", "a: \"b\u2028  c\"\nextensions:\n  d: 1\n", false, false},
	{"white space at line ends", "extensions:  \n  a:   \n    cmd: b\t\n  \nc: 1\n", false, false},
	{"list in a list", "a:\n- - b\n  - c\n-\n  - d\nextensions:\n  e: [[f]]\n", false, false},

	{"parent is a list", "extensions:\n  - a\n", true, false},
	{"parent is an empty list", "extensions: []\n", true, false},
	{"parent is a string", "extensions: x\n", true, false},
	{"parent is null", "extensions: null\n", true, false},
	{"parent is a tilde", "extensions: ~\n", true, false},
	{"parent in braces", "extensions: {a: {cmd: b}}\n", true, false},
	{"parent twice", "extensions:\n  a: 1\nextensions:\n  b: 1\n", true, false},
	{"entry twice", "extensions:\n  files: 1\n  files: 2\n", true, false},
	{"parent is an alias", "a: &x {}\nextensions: *x\n", true, false},
	{"parent has an anchor", "extensions: &x\n  a: 1\nb: *x\n", true, false},
	{"parent is merged", "a: &x\n  extensions: {}\n<<: *x\n", true, false},
	{"root is a list", "- extensions\n", true, false},
	{"root is a string", "extensions\n", true, false},
	{"several documents", "a: 1\n---\nb: 1\n", true, false},
	{"tabs", "extensions:\n\ta: 1\n", true, false},
	{"bad indentation", "extensions:\n    a: 1\n  b: 1\n", true, false},
	{"parent with a tag", "!x extensions:\n  a: 1\n", true, false},
	{"entry with a tag", "extensions:\n  !!0 files: 1\n", true, false},
	{"unknown alias", "a: *x\n", true, false},
	{"brace that does not end", "extensions: {a: 1\n", true, false},
	{"string that does not end", "a: \"b\n", true, false},
	{"two colons", "a: b: c\n", true, false},
	{"bad escape", "a: \"\\q\"\n", true, false},
	{"at sign", "a: @b\n", true, false},
	{"TOML", "[extensions.a]\nb = 1\n", true, false},
	{"control character", "a: \x01\n", true, false},
	{"NUL byte", "a: 1\n\x00\n", true, false},
	{"UTF-16", "\xff\xfea\x00", true, false},
	{"Latin-1", "a: \xe9\n", true, false},
	{"merge conflict", "<<<<<<< HEAD\na: 1\n=======\n", true, false},
	{"too deep", "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", true, false},
	{"much too deep", strings.Repeat("- ", 100000) + "\n", true, false},
}

const wholeYAML = `# a comment
GOOSE_MODEL: "dark\u0041" # another
numbers: [1, 2.50, -3e10]
extensions:
  a:
    cmd: x # c
    args:
    - 'y'
    text: |
      b
      # d

  e: {f: "g"}
last: &h
  i: >-
    j
`

var strangeLists = []strangeFile{
	{"empty", "", false, false},
	{"other keys", "name: a\nversion: 1\n", false, false},
	{"missing value", "mcpServers:\nname: a\n", false, false},
	{"empty list", "mcpServers: [] # c\nname: a\n", false, false},
	{"at the margin", "mcpServers:\n- name: a\n  command: b\nname: a\n", false, false},
	{"indented", "mcpServers:\n    - name: a\n      command: b\n    - name: c\n", false, false},
	{"wide dashes", "mcpServers:\n-   name: a\n    command: b\n", false, false},
	{"dashes on lines of their own", "mcpServers:\n  -\n    name: a\n  -\n    # c\n    name: b\n", false, false},
	{"comments", "mcpServers: # 1\n  # 2\n  - name: a # 3\n    # 4\n    command: b\n  # 5\n# 6\nrules: []\n", false, false},
	{"comment of the next key", "mcpServers:\n- name: a\n# rules\nrules: []\n", false, false},
	{"name last", "mcpServers:\n  - command: b\n    name: a\n", false, false},
	{"elements without names", "mcpServers:\n  - a\n  - {}\n  - uses: b/c\n  -\n", false, false},
	{"elements in braces", "mcpServers:\n  - {name: a, command: b}\n", false, false},
	{"same names", "mcpServers:\n  - name: a\n  - name: a\n", false, false},
	{"entry to replace", "mcpServers:\n  - name: a\n  # c\n  - name: files\n    command: old\n  - name: b\n", false, false},
	{"entry with the name last", "mcpServers:\n  - command: old\n    name: \"files\"\n  - name: b\n", false, false},

	{"parent is a mapping", "mcpServers:\n  a:\n    command: b\n", true, false},
	{"parent in brackets", "mcpServers: [{name: a}]\n", true, false},
	{"entry twice", "mcpServers:\n  - name: files\n  - name: files\n", true, false},
	{"name twice", "mcpServers:\n  - name: a\n    name: b\n", true, false},
	{"JSON", "{\"mcpServers\": [{\"name\": \"a\"}]}\n", true, false},
}

const wholeList = `name: x
mcpServers:
  - name: a
    command: b # c
  # d
  - name: e
    args: ["f"]
rules:
  - g
`
