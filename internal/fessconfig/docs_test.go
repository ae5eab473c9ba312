package fessconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// page returns a page of the documents.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the second cells of the rows of a page's tables whose first cell
// is a name in backquotes, by that name.
func rows(text string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`|]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// configKeys returns the defaults of a configuration by their keys.
func configKeys(v reflect.Value, prefix string) map[string]any {
	keys := map[string]any{}
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Tag.Get("json"), v.Field(i)
		if field.Kind() != reflect.Struct {
			keys[name] = field.Interface()
			continue
		}
		for k, d := range configKeys(field, name+".") {
			keys[k] = d
		}
	}
	return keys
}

// Every key of the bridge's configuration is in the documents with its default,
// and no other one.
func TestDocumentedKeys(t *testing.T) {
	documented := rows(page(t, "fess-configuration.md"))
	for key, def := range rows(page(t, "content.md")) {
		documented["contentFetch."+key] = def
	}
	delete(documented, "contentFetch.*")
	keys := configKeys(reflect.ValueOf(defaults()).Elem(), "")
	for key, def := range keys {
		got, ok := documented[key]
		var want []string
		switch d := def.(type) {
		case []string:
			want = []string{"none"}
			if len(d) > 0 {
				want = []string{"`[\"" + strings.Join(d, `", "`) + "\"]`"}
			}
		case string:
			want = []string{"`" + d + "`"}
			if d == "" {
				want = []string{"required", "none", "empty", "`knowhow/VERSION`"}
			}
		default:
			want = []string{fmt.Sprintf("`%v`", def)}
		}
		if key == "logging.dir" {
			want = []string{"`log` beside the file"}
		}
		if !ok || !strings.Contains("|"+strings.Join(want, "|")+"|", "|"+got+"|") {
			t.Errorf("docs: key %s has the default %q, want one of %v", key, got, want)
		}
	}
	for key := range documented {
		if _, ok := keys[key]; !ok && !strings.HasPrefix(key, "--") {
			t.Errorf("docs: there is no key %s", key)
		}
	}
}

// The examples of configurations in the documents can be used.
func TestDocumentedConfigurations(t *testing.T) {
	block := regexp.MustCompile("(?s)```json\n(.*?)```")
	for _, name := range []string{"fess.md", "fess-configuration.md", "content.md", "security.md", "getting-started.md", "messages.md"} {
		for _, m := range block.FindAllStringSubmatch(page(t, name), -1) {
			text := m[1]
			if !regexp.MustCompile(`"(fessBaseUrl|fessAuth|contentFetch|httpTransport|security|limits|timeouts|logging|tls)"`).MatchString(text) {
				continue
			}
			if !strings.HasPrefix(text, "{") {
				text = fmt.Sprintf(minimal, ", "+text)
			}
			text = regexp.MustCompile(`\$\{[A-Z_]+\}`).ReplaceAllString(text, "secret")
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Read(path, Options{HTTP: true}); err != nil {
				t.Errorf("%s: %s\n%v", name, m[1], err)
			}
		}
	}
}
