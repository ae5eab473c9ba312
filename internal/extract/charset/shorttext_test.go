package charset

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// Short texts without a declaration are read in the charset in which they make
// words of a language.
func TestShortTexts(t *testing.T) {
	w1250, l2, w1252, w1254 := charmap.Windows1250, charmap.ISO8859_2, charmap.Windows1252, charmap.Windows1254
	for _, tt := range []struct {
		e    encoding.Encoding
		text string
	}{
		{w1252, "Größe 1"},
		{w1252, "Größe"},
		{w1252, "Öffnungszeiten: täglich 9–17 Uhr"},
		{w1252, "Überweisung fällig am 3. März"},
		{w1252, "Schöne Grüße aus Köln"},
		{w1252, "Straße"},
		{w1252, "Preis: 12 €"},
		{w1252, "5 °C, ±2 µm, § 3"},
		{w1252, "Café"},
		{w1252, "déjà vu"},
		{w1252, "Réunion annulée, à bientôt"},
		{w1252, "Voilà l'été"},
		{w1252, "El niño está aquí"},
		{w1252, "¿Dónde está la reunión mañana?"},
		{w1252, "perché è così"},
		{w1252, "São Paulo: reunião às 9, não às 10"},
		{w1252, "Mötet är på måndag"},
		{w1252, "Blåbærgrød på bordet"},
		{w1252, "Hyvää päivää"},
		{w1252, "“quoted” – it’s fine…"},
		{w1252, "naïve coöperation"},
		{charmap.ISO8859_1, "Größe und Höhe"},
		{w1250, "Zażółć gęślą jaźń"},
		{w1250, "Książka"},
		{w1250, "Jeśli chcesz, napisz później"},
		{w1250, "Łódź, Kraków i Gdańsk"},
		{l2, "Zażółć gęślą jaźń"},
		{l2, "Jeśli chcesz, napisz później"},
		{l2, "Łódź, Kraków i Gdańsk"},
		{w1250, "Příliš žluťoučký kůň"},
		{w1250, "Schůzka bude v úterý večer"},
		{l2, "Příliš žluťoučký kůň"},
		{l2, "Šéf přijde až v pondělí"},
		{w1250, "Stretnutie sa končí až večer"},
		{w1250, "Árvíztűrő tükörfúrógép"},
		{w1250, "A megbeszélés délután lesz, később jövök"},
		{l2, "Őszi szünet: később"},
		{w1254, "Toplantı yarın saat dokuzda"},
		{w1254, "Işık açık değil, şimdi kapatıldı"},
		{charmap.ISO8859_9, "İstanbul'da güneşli bir gün"},
		{w1250, "Şedinţa începe mâine"},
		{charmap.Windows1251, "Привет"},
		{charmap.Windows1251, "Встреча завтра в девять"},
		{charmap.Windows1251, "Цена: 100 рублей"},
		{charmap.KOI8R, "Привет, мир"},
		{charmap.KOI8R, "Встреча завтра в девять"},
		{charmap.CodePage866, "Встреча завтра в девять"},
		{charmap.Windows1251, "Зустріч завтра о дев'ятій, її не буде"},
		{charmap.Windows1253, "Καλημέρα σας"},
		{charmap.Windows1253, "Η συνάντηση είναι αύριο στις εννέα"},
		{charmap.ISO8859_7, "Η ώρα είναι εννέα"},
		{charmap.Windows1255, "שלום לכולם, הפגישה היא מחר"},
		{charmap.Windows1255, "של הבית"},
		{charmap.Windows1256, "الاجتماع غدا في الساعة التاسعة"},
		{charmap.Windows1257, "Susitikimas bus rytoj, ačiū už žinią"},
		{japanese.ShiftJIS, "会議は明日の九時です"},
		{japanese.EUCJP, "会議は明日の九時です"},
		{simplifiedchinese.GB18030, "会议在明天上午九点开始"},
		{unicode.UTF8, "Größe 1"},
		{unicode.UTF8, "Łódź"},
		{unicode.UTF8, "ё"},
		{unicode.UTF8, "日本"},
	} {
		data := encode(t, tt.e, tt.text)
		if got := Decode(t.Context(), data, Options{}); got != tt.text {
			t.Errorf("%v: %q is read as %q", tt.e, tt.text, got)
		}
	}
}

// The words of lines in ASCII count, too.
func TestShortTextInOtherLines(t *testing.T) {
	const text = "Miasta, do nich jest tylko jedna droga.\nTo jest lista.\n\nBrzeziń"
	data := encode(t, charmap.Windows1250, text)
	if got := Decode(t.Context(), data, Options{}); got != text {
		t.Errorf("text = %q, want %q", got, text)
	}
}

func BenchmarkDetect(b *testing.B) {
	data, err := charmap.Windows1250.NewEncoder().Bytes([]byte(strings.Repeat(polishText+"\n", 200)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		detect(b.Context(), data, nil)
	}
}

// The name of a file and the language of its neighbours decide what the text
// leaves open.
func TestShortTextsWithHints(t *testing.T) {
	for _, tt := range []struct {
		name, lang string
		e          encoding.Encoding
		text       string
	}{
		{"uwagi.pl.txt", "", charmap.Windows1250, "Gdańsk"},
		{"a.txt", "pl", charmap.Windows1250, "Gdańsk"},
		{"a.txt", "es", charmap.Windows1252, "España"},
		{"docs/pl/a.txt", "", charmap.ISO8859_2, "Wałbrzych"},
		{"a.txt", "pl", charmap.ISO8859_2, "Wałbrzych"},
		{"notes_cs.txt", "", charmap.Windows1250, "Dvořák"},
		{"a.txt", "hu", charmap.Windows1250, "nő"},
		{"a.txt", "tr", charmap.Windows1254, "dağ"},
		{"a.txt", "ru", charmap.Windows1251, "да"},
		{"a.txt", "ru", charmap.KOI8R, "Киев"},
		{"a.txt", "el", charmap.Windows1253, "ναι"},
		{"a.txt", "he", charmap.Windows1255, "כן"},
		{"a-de.txt", "", charmap.Windows1252, "Maß"},
		{"a.txt", "ja", japanese.ShiftJIS, "日本"},
		// A hint is not stronger than the text.
		{"uwagi.pl.txt", "ru", charmap.Windows1252, "Die Größe ist für alle gleich"},
		{"a.txt", "de", charmap.Windows1251, "Встреча завтра"},
		{"tool.pl", "", charmap.Windows1252, "# Größe"},
	} {
		data := encode(t, tt.e, tt.text)
		if got := Decode(t.Context(), data, Options{Languages: Hints(tt.name, tt.lang)}); got != tt.text {
			t.Errorf("%s, %s, %v: %q is read as %q", tt.name, tt.lang, tt.e, tt.text, got)
		}
	}
}
