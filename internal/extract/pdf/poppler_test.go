package pdf

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// TestAgainstPoppler compares the texts of the files below the folder PDF_FILES
// with those of Poppler's pdftotext: the share of its words, and of its pairs of
// adjacent words, that Read returns too. bench/pdf runs it. It also writes the
// two texts of each file to the folder PDF_TEXTS, if that is set. Files with less
// than 100 words are left out.
func TestAgainstPoppler(t *testing.T) {
	folder := os.Getenv("PDF_FILES")
	if folder == "" {
		t.Skip("PDF_FILES is not set: it is the folder with the files")
	}
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("pdftotext is missing: install poppler-utils")
	}
	files, words, pairs, both := 0, 0.0, 0.0, 0
	fmt.Println("| file | pages | words | recall | order | time |\n|---|---|---|---|---|---|")
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(name) != ".pdf" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		want, err := exec.CommandContext(ctx, "pdftotext", "-enc", "UTF-8", "-nopgbrk", name, "-").Output()
		theirs := wordsOf(string(want))
		if err != nil || len(theirs) < 100 {
			return nil // no text to compare with
		}
		start := time.Now()
		x, err := Read(ctx, data)
		took := time.Since(start)
		both++
		if err != nil {
			fmt.Printf("| %s | | %d | %v | | |\n", filepath.Base(name), len(theirs), err)
			return nil
		}
		ours := wordsOf(x.Body)
		recall, order := share(theirs, ours), share(pairsOf(theirs), pairsOf(ours))
		files, words, pairs = files+1, words+recall, pairs+order
		fmt.Printf("| %s | %d | %d | %.1f %% | %.1f %% | %d ms |\n", filepath.Base(name), len(x.Pages), len(theirs), 100*recall, 100*order, took.Milliseconds())
		if texts := os.Getenv("PDF_TEXTS"); texts != "" {
			base := filepath.Join(texts, strings.ReplaceAll(strings.TrimPrefix(name, folder), "/", "_"))
			if err := os.WriteFile(base+".poppler.txt", want, 0o644); err != nil {
				return err
			}
			return os.WriteFile(base+".ours.txt", []byte(x.Body), 0o644)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("| mean of %d of %d files | | | %.1f %% | %.1f %% | |\n", files, both, 100*words/float64(files), 100*pairs/float64(files))
}

// wordsOf returns the words of a text in small letters, without marks and the
// differences between forms of a character.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(norm.NFKC.String(s)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func pairsOf(words []string) []string {
	var pairs []string
	for i := 1; i < len(words); i++ {
		pairs = append(pairs, words[i-1]+" "+words[i])
	}
	return pairs
}

// share returns the share of the elements of want that are in got, each as often
// as it is there.
func share(want, got []string) float64 {
	count := map[string]int{}
	for _, s := range got {
		count[s]++
	}
	n := 0
	for _, s := range want {
		if count[s] > 0 {
			count[s]--
			n++
		}
	}
	return float64(n) / float64(max(len(want), 1))
}
