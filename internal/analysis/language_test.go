package analysis_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
)

func tokensIn(s string, l analysis.Language) []string {
	var texts []string
	for t := range analysis.Tokens(s, l) {
		texts = append(texts, t.Text)
	}
	return texts
}

// Forms of a word have the same token in its language, with and without accents.
func TestForms(t *testing.T) {
	for code, groups := range map[string][]string{
		"en": {"connect connected connecting connection connections", "running runs run"},
		"de": {"Haus Häuser Hauses Häusern hauser", "Buch Bücher Büchern bucher", "Straße Straßen Strasse STRASSEN",
			"Kündigung Kündigungen kundigungen", "Aufträge Auftrag Auftrages"},
		"fr": {"cheval chevaux", "utiliser utilisé utilisées utilise utilisees", "qualité qualités qualite qualites",
			"première premier premières premieres", "journal journaux"},
		"es": {"canción canciones cancion", "información informaciones informacion", "libro libros",
			"versión versiones version", "tecnología tecnologías tecnologia"},
		"it": {"libro libri", "città citta", "qualità qualita", "documento documenti"},
		"pt": {"informação informações informacao informacoes", "versão versões versao", "livro livros",
			"responsável responsáveis responsavel"},
		"nl": {"boek boeken", "huizen huiz", "bestand bestanden"},
		"sv": {"bil bilar bilarna", "flicka flickor flickorna"},
		"da": {"bil bilen biler", "hest heste hestene"},
		"no": {"bil bilen biler", "hest hester hestene"},
		"fi": {"talo talossa talosta", "kirja kirjat kirjan"},
		"hu": {"ház házból házban hazbol", "könyv könyvek"},
		"ru": {"книга книги книгу книгой", "ёлка елка ёлки елки"},
		"ro": {"carte cartea", "informație informații informatie"},
		"tr": {"ev evler"},
	} {
		l := analysis.LanguageOf(code)
		if l.String() != code {
			t.Errorf("LanguageOf(%q) = %v", code, l)
		}
		for _, group := range groups {
			words := strings.Fields(group)
			want := tokensIn(words[0], l)
			if len(want) != 1 || !strings.HasPrefix(want[0], l.Prefix()) {
				t.Errorf("%s: the tokens of %q are %q, want one that begins with %q", code, words[0], want, l.Prefix())
			}
			for _, w := range words[1:] {
				if got := tokensIn(w, l); !slices.Equal(got, want) {
					t.Errorf("%s: the tokens of %q are %q, want %q as of %q", code, w, got, want, words[0])
				}
			}
		}
	}
}

func TestTokensOfLanguages(t *testing.T) {
	for _, tt := range []struct{ code, in, want string }{
		{"", "news reports", "news report"},
		{"ja", "検索 reports", "検索 索 report"},
		{"pl", "reports", "report"},
		{"fr", "news", "fr:new"},
		{"de", "Häuser utf8 検索 ня", "de:haus utf8 検索 索 ня"},
		{"ru", "Windows книги utf8", "window ru:книг utf8"},
		{"en", "книги ёж λόγος ΛΌΓΟΣ", "книги еж λογοσ λογοσ"},
		{"fr", "l'application n'est", "fr:l fr:appliqu fr:n fr:est"},
	} {
		if got := strings.Join(tokensIn(tt.in, analysis.LanguageOf(tt.code)), " "); got != tt.want {
			t.Errorf("Tokens(%q) in %q = %q, want %q", tt.in, tt.code, got, tt.want)
		}
	}
}

func TestVariants(t *testing.T) {
	for _, tt := range []struct {
		langs, in string
		prefix    bool
		want      string
	}{
		{"en", "running shoes", false, "run shoe"},
		{"en", "running shoes", true, "run shoes"},
		{"en de", "Straßen", false, "strassen|de:strass"},
		{"en de", "Straßen", true, "strassen|de:strassen"},
		{"en de", "utf8", true, "utf8"},
		{"en de fr", "検索", false, "検索"},
		{"en ru", "книги window", true, "книги window|ru:книг window"},
		{"de", "Häuser 検索", true, "de:haus 検索"},
		{"en", "", false, ""},
		{"en", "-", true, ""},
	} {
		var langs []analysis.Language
		for code := range strings.FieldsSeq(tt.langs) {
			langs = append(langs, analysis.LanguageOf(code))
		}
		var got []string
		for _, terms := range analysis.Variants(tt.in, langs, tt.prefix) {
			got = append(got, strings.Join(terms, " "))
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("Variants(%q, %q, %v) = %q, want %q", tt.in, tt.langs, tt.prefix, got, tt.want)
		}
	}
}

func TestSignificant(t *testing.T) {
	for _, tt := range []struct{ langs, in, want string }{
		{"", "how do I reset the password", "reset password"},
		{"", "how do I", "how do I"},
		{"", "wie kündige ich den Vertrag", "wie kündige ich den Vertrag"}, // no document is German
		{"de", "wie kündige ich den Vertrag", "kündige Vertrag"},
		{"de", "Wie KUNDIGE ich", "KUNDIGE"},
		{"de", "how do transistors die", "transistors die"}, // an English question
		{"de", "reset the password", "reset password"},
		{"fr", "comment est-ce que je change le mot de passe", "est-ce change mot passe"},
		{"es", "¿cómo puedo cambiar la contraseña?", "cambiar contraseña?"},
		{"es", "como puedo cambiar la contrasena", "cambiar contrasena"},
		{"it", "come posso cambiare la password", "cambiare password"},
		{"pt", "como posso mudar a senha", "mudar senha"},
		{"nl", "hoe kan ik het wachtwoord wijzigen", "wachtwoord wijzigen"},
		{"", "パスワード を 変更 する", "パスワード 変更"},
	} {
		langs := []analysis.Language{analysis.English}
		for code := range strings.FieldsSeq(tt.langs) {
			langs = append(langs, analysis.LanguageOf(code))
		}
		if got := strings.Join(analysis.Significant(strings.Fields(tt.in), langs), " "); got != tt.want {
			t.Errorf("Significant(%q) among %q = %q, want %q", tt.in, tt.langs, got, tt.want)
		}
	}
}

func TestFunctionWords(t *testing.T) {
	german := []analysis.Language{analysis.LanguageOf("de")}
	for _, tt := range []struct {
		word  string
		among []analysis.Language
		want  bool
	}{
		{"the", nil, true}, {"the", german, true}, {"und", nil, false}, {"und", german, true}, {"für", german, true},
		{"haus", german, false},
	} {
		if got := analysis.FunctionWord(tt.word, tt.among); got != tt.want {
			t.Errorf("FunctionWord(%q, %v) = %v, want %v", tt.word, tt.among, got, tt.want)
		}
	}
	for token, want := range map[string]bool{"the": true, "de:der": true, "der": false, "de:haus": false,
		"fr:le": true} {
		if got := analysis.StopToken(token); got != want {
			t.Errorf("StopToken(%q) = %v, want %v", token, got, want)
		}
	}
}

// tokensLike returns the tokens of a text that may be token.
func tokensLike(s string, l analysis.Language, token string) (texts []string) {
	for t := range analysis.TokensLike(s, l, slices.Values([]string{token})) {
		texts = append(texts, t.Text)
	}
	return texts
}

func TestTokensLike(t *testing.T) {
	for _, tt := range []struct{ token, want string }{{"walrus", "walrus want"}, {"window", "window wild"},
		{"zebra", ""}} {
		got := strings.Join(tokensLike("The Walruses want 2 windows, wildly.", analysis.English, tt.token), " ")
		if got != tt.want {
			t.Errorf("TokensLike(%q) = %q, want %q", tt.token, got, tt.want)
		}
	}
}

// FuzzLanguages checks in every language that a digest and TokensLike find each
// word of a text, that the first letter of a word is that of its token, and that words with and
// without accents are the same.
func FuzzLanguages(f *testing.F) {
	addTexts(f)
	for _, s := range []string{"Häuser Bücher", "canción qualità città", "книги ёлка", "yy yéy Yoyo bbb", "ığdır İzmir",
		"aeiou uuu iii"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, l := range append(analysis.Stemmed(), analysis.English) {
			texts := tokensIn(s, l)
			i := 0
			for tk := range analysis.Tokens(s, l) {
				if tk.Text != texts[i] {
					t.Fatalf("%v: the tokens of %q differ from call to call", l, s)
				}
				i++
				stem := tk.Text
				if p := l.Prefix(); p != "" {
					stem = strings.TrimPrefix(stem, p)
				}
				if stem == "" || stem[0] != tk.Surface[0] {
					t.Fatalf("%v: the token of %q is %q", l, tk.Surface, tk.Text)
				}
				if _, spans := analysis.Digest(s, l, analysis.NewWanted([]string{tk.Text}, nil), 40); len(spans) == 0 &&
					i < 5 {
					t.Fatalf("%v: the digest of %q does not find %q", l, s, tk.Text)
				}
				if found := tokensLike(s, l, tk.Text); i < 5 && !slices.Contains(found, tk.Text) {
					t.Fatalf("%v: TokensLike(%q, %q) = %q", l, s, tk.Text, found)
				}
				if tk.CJK || !strings.ContainsFunc(tk.Surface, unicode.IsLetter) {
					continue
				}
				if again := tokensIn(tk.Surface, l); !slices.Equal(again, []string{tk.Text}) {
					t.Fatalf("%v: %q is the token %q, and the same without accents, %q, is %q", l, s[tk.Start:tk.End],
						tk.Text, tk.Surface, again)
				}
			}
		}
	})
}

func TestQuestionLanguage(t *testing.T) {
	german, french := analysis.LanguageOf("de"), analysis.LanguageOf("fr")
	for _, tt := range []struct{ text, want string }{
		{"how do I change the message", "en"},
		{"wie ändere ich die Nachricht", "de"},
		{"comment changer le message dans les options", "fr"},
		{"kernel options", ""},
		{"Kerberos を使わない NFS を安全にする方法", "ja"},
		{"カーネル オプション", "ja"},
		{"what does の mean", "en"},
		{"비밀번호 변경", "ko"},
		{"内核 选项", ""}, // Chinese, or Japanese without kana
	} {
		if got := analysis.QuestionLanguage(strings.Fields(tt.text),
			[]analysis.Language{analysis.English, german, french}); got != tt.want {
			t.Errorf("QuestionLanguage(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
