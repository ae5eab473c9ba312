package charset

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// Texts of about 200 characters; without a declaration, statistics need some.
const (
	japaneseText = "この文書では、全文検索サーバーの設定方法について説明します。インストールが完了したら、管理画面を開いてください。クロール対象のフォルダーを指定すると、文書が索引に登録されます。検索結果にはタイトルと要約が表示されます。"
	chineseText  = "本文档介绍如何配置全文搜索服务器。安装完成后，请打开管理页面。指定要抓取的文件夹后，文档将被添加到索引中。搜索结果显示标题和摘要。如果没有结果，请检查日志文件中的错误信息。"
	taiwanText   = "本文件說明如何設定全文檢索伺服器。安裝完成之後，請開啟管理頁面。指定要擷取的資料夾之後，文件會加入索引。搜尋結果會顯示標題和摘要。如果沒有結果，請檢查記錄檔中的錯誤訊息。"
	koreanText   = "이 문서에서는 전문 검색 서버의 설정 방법에 대해 설명합니다. 설치가 완료되면 관리 화면을 열어 주십시오. 수집할 폴더를 지정하면 문서가 색인에 등록됩니다. 검색 결과에는 제목과 요약이 표시됩니다."
	russianText  = "В этом документе описано, как настроить сервер полнотекстового поиска. После установки откройте страницу управления. Укажите папку, и документы будут добавлены в индекс. В результатах поиска видны заголовок и краткое содержание."
	germanText   = "Dieses Dokument erklärt, wie der Server für die Volltextsuche eingerichtet wird. Öffnen Sie nach der Installation die Seite für die Verwaltung. Die Ergebnisse der Suche zeigen den Titel und eine kurze Übersicht."
	polishText   = "Ten dokument opisuje, jak skonfigurować serwer wyszukiwania. Po instalacji otwórz stronę zarządzania, która jest dostępna dla administratora. Wyniki mogą być puste, jeżeli nie ma żadnych dokumentów, także gdy indeks się jeszcze tworzy."
)

func encode(t *testing.T, e encoding.Encoding, s string) []byte {
	t.Helper()
	b, err := e.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCharsetIsFoundWithoutDeclaration(t *testing.T) {
	tests := []struct {
		name string
		e    encoding.Encoding
		text string
		lang string
	}{
		{"utf-8", unicode.UTF8, japaneseText, "ja"},
		{"utf-8 with mark", unicode.UTF8BOM, germanText, "de"},
		{"utf-16le with mark", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), japaneseText, "ja"},
		{"utf-16be with mark", unicode.UTF16(unicode.BigEndian, unicode.UseBOM), germanText, "de"},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), japaneseText, "ja"},
		{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), japaneseText, "ja"},
		{"utf-16le of German", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), germanText, "de"},
		{"utf-16be of Russian", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), russianText, "ru"},
		{"utf-16le of Chinese", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), chineseText, "zh"},
		{"shift_jis", japanese.ShiftJIS, japaneseText, "ja"},
		{"euc-jp", japanese.EUCJP, japaneseText, "ja"},
		{"iso-2022-jp", japanese.ISO2022JP, japaneseText, "ja"},
		{"gb18030", simplifiedchinese.GB18030, chineseText, "zh"},
		{"big5", traditionalchinese.Big5, taiwanText, "zh"},
		{"euc-kr", korean.EUCKR, koreanText, "ko"},
		{"windows-1251", charmap.Windows1251, russianText, "ru"},
		{"koi8-r", charmap.KOI8R, russianText, "ru"},
		{"windows-1252", charmap.Windows1252, germanText, "de"},
		{"windows-1250", charmap.Windows1250, polishText, "pl"},
		{"iso-8859-2", charmap.ISO8859_2, polishText, "pl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := encode(t, tt.e, tt.text)
			text := Decode(t.Context(), data, Options{})
			if lang := Language(text, ""); text != tt.text || lang != tt.lang {
				t.Errorf("text = %q, language %q, want %q, %q", text, lang, tt.text, tt.lang)
			}
		})
	}
}

// A text that was cut inside of a character, or has a few other bytes, stays UTF-8.
func TestDamagedUTF8(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 200) }
	tests := []struct{ name, in, want string }{
		{"Japanese, cut", many("海外に出張する場合、") + "日"[:2], many("海外に出張する場合、") + "\ufffd"},
		{"Chinese, cut", many("请假要提前申请。") + "请"[:1], many("请假要提前申请。") + "\ufffd"},
		{"German, cut", many("Größe und Länge ") + "ü"[:1], many("Größe und Länge ") + "\ufffd"},
		{"emoji, cut", many("hi 😀 ") + "😀"[:3], many("hi 😀 ") + "\ufffd"},
		{"one bad byte in the middle", many("会議室、") + "\xff" + many("総務へ。"), many("会議室、") + "\ufffd" + many("総務へ。")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Decode(t.Context(), []byte(tt.in), Options{}); got != tt.want {
				t.Errorf("body = %.60q ... %q, want %.60q ...", got, got[max(0, len(got)-20):], tt.want)
			}
		})
	}
}

// A short text in ASCII with a few other bytes is not UTF-16.
func TestDamagedASCII(t *testing.T) {
	for _, in := range []string{"invalid \xff utf-8 walrus\n", "alpha walrus \xff\xfe bytes", "hello walrus \xff\xff\xff\xff",
		"broken \xff\xfe\xfd walrus"} {
		got := Decode(t.Context(), []byte(in), Options{})
		if first, _, _ := strings.Cut(in, "\xff"); !strings.HasPrefix(got, first) || !strings.Contains(got, "walrus") {
			t.Errorf("Decode(%q) = %q, want its words", in, got)
		}
	}
}

// Short parts of Chinese and Japanese texts in UTF-16 are not taken for ASCII, although
// half of their bytes may be ASCII letters.
func TestShortUTF16(t *testing.T) {
	const units = 8
	for _, text := range []string{japaneseText, chineseText, taiwanText} {
		for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
			b := encode(t, unicode.UTF16(order, unicode.IgnoreBOM), text)
			for i := 0; i+2*units <= len(b); i += 2 {
				if mostlyLetters(b[i : i+2*units]) {
					t.Errorf("%s in UTF-16 is taken for ASCII", string([]rune(text)[i/2:i/2+units]))
				}
			}
		}
	}
}

// TestDecodedMemory checks that a text that becomes three times as long takes no
// more memory than its old and its new form.
func TestDecodedMemory(t *testing.T) {
	data := bytes.Repeat([]byte{0xa1, 0xa2, 0xd2, ' '}, 1<<20) // Thai
	want := 10 * len(data) / 4
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := decodeAs(t.Context(), data, "windows-874")
	runtime.ReadMemStats(&after)
	if len(s) != want {
		t.Fatalf("%d bytes, want %d", len(s), want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(want)*5/4 {
		t.Errorf("%d bytes were allocated for %d", n, want)
	}
}

func TestLanguage(t *testing.T) {
	tests := []struct{ text, declared, want string }{
		{"", "", ""},
		{"", "en-US", "en"},
		{"", "zh_TW", "zh"},
		{"", "english", ""},
		{"x1 y2 z3", "", ""},
		{germanText, "", "de"},
		{germanText, "en", "de"}, // a template's language
		{polishText, "", "pl"},
		{"The quick brown fox jumps over the lazy dog and is gone.", "", "en"},
		{"Le document est dans le dossier des rapports pour les clients.", "", "fr"},
		{"El documento está en la carpeta de los informes para los clientes.", "", "es"},
		{"Il documento è nella cartella dei rapporti per il cliente, non più qui.", "", "it"},
		{"O documento não está na pasta dos relatórios para o cliente, mas também aqui.", "", "pt"},
		{"Het document is niet in de map van de klant, maar het wordt hier bewaard.", "", "nl"},
		{"Dokumentet är inte i mappen som kunden har, och det kan vara här.", "", "sv"},
		{japaneseText, "", "ja"},
		{japaneseText, "en", "ja"},
		{strings.Repeat("The text is English and it names ", 20) + "東京タワー", "", "en"},
		{"手順: " + strings.Repeat("次のコマンドを実行します。 sudo apt-get install something; ", 5), "", "ja"},
		{chineseText, "", "zh"},
		{"人工知能", "ja", "ja"}, // could be either
		{koreanText, "", "ko"},
		{russianText, "", "ru"},
		{"Цей документ описує, як налаштувати сервер. Її можна відкрити після встановлення.", "", "uk"},
		{"Αυτό το έγγραφο περιγράφει τη ρύθμιση.", "", "el"},
		{"یک سند برای پیکربندی سرور جستجو", "", "fa"},
		{"func main() { fmt.Println(x); return } type T struct { a, b int }", "", ""},
	}
	for _, tt := range tests {
		if got := Language(tt.text, tt.declared); got != tt.want {
			t.Errorf("Language(%.60q, %q) = %q, want %q", tt.text, tt.declared, got, tt.want)
		}
	}
}
