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
// with those of Poppler's pdftotext: the share of its words, of its pairs of
// adjacent words, and of its pairs of adjacent characters of a word, that Read
// returns too. The last one is the measure for scripts without blanks. bench/pdf
// runs the test. It also writes the two texts of each file to the folder
// PDF_TEXTS, if that is set. Files with less than 100 words and less than 300
// pairs of characters are left out. A file that Read refuses counts as one of
// which nothing is read.
func TestAgainstPoppler(t *testing.T) {
	folder := os.Getenv("PDF_FILES")
	if folder == "" {
		t.Skip("PDF_FILES is not set: it is the folder with the files")
	}
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("pdftotext is missing: install poppler-utils and poppler-data")
	}
	sums := map[string]*comparison{}
	fmt.Println("| file | script | pages | words | recall | order | characters | time |\n|---|---|---|---|---|---|---|---|")
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
		chars := charPairsOf(theirs)
		if err != nil || len(theirs) < 100 && len(chars) < 300 {
			return nil // no text to compare with
		}
		script := scriptOf(theirs)
		sum := sums[script]
		if sum == nil {
			sum = &comparison{}
			sums[script] = sum
		}
		sum.files++
		sum.words += len(theirs)
		start := time.Now()
		x, err := Read(ctx, data, 0)
		took := time.Since(start)
		if err != nil {
			sum.refused++
			fmt.Printf("| %s | %s | | %d | %v | | | |\n", filepath.Base(name), script, len(theirs), err)
			return nil
		}
		ours := wordsOf(x.Body)
		recall, order, pairs := share(theirs, ours), share(pairsOf(theirs), pairsOf(ours)),
			share(chars, charPairsOf(ours))
		sum.recall, sum.order, sum.chars = sum.recall+recall, sum.order+order, sum.chars+pairs
		fmt.Printf("| %s | %s | %d | %d | %.1f %% | %.1f %% | %.1f %% | %d ms |\n",
			filepath.Base(name), script, len(x.Pages), len(theirs), 100*recall, 100*order, 100*pairs,
			took.Milliseconds())
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
	for _, script := range sortedKeys(sums) {
		s := sums[script]
		n := float64(s.files) / 100
		fmt.Printf("| mean of %d files, %d of them refused | %s | | %d | %.1f %% | %.1f %% | %.1f %% | |\n",
			s.files, s.refused, script, s.words, s.recall/n, s.order/n, s.chars/n)
	}
}

// A comparison sums up the comparisons of the files with text in one script.
type comparison struct {
	files, refused, words int
	recall, order, chars  float64
}

// scriptOf returns the script of a text: the first one that a tenth of its
// characters are in.
func scriptOf(words []string) string {
	scripts := []struct {
		name  string
		table *unicode.RangeTable
	}{{"Arabic", unicode.Arabic}, {"Korean", unicode.Hangul}, {"Japanese", unicode.Hiragana}, {"Chinese", unicode.Han}}
	counts, all := make([]int, len(scripts)), 0
	for _, w := range words {
		for _, r := range w {
			all++
			for i, s := range scripts {
				if unicode.Is(s.table, r) {
					counts[i]++
				}
			}
		}
	}
	for i, s := range scripts {
		if 10*counts[i] > all {
			return s.name
		}
	}
	return "other"
}

// charPairsOf returns the pairs of adjacent characters of words.
func charPairsOf(words []string) []string {
	var pairs []string
	for _, w := range words {
		rs := []rune(w)
		for i := 1; i < len(rs); i++ {
			pairs = append(pairs, string(rs[i-1:i+1]))
		}
	}
	return pairs
}

// wordsOf returns the words of a text in small letters, without marks and the
// differences between forms of a character.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(norm.NFKC.String(s)),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
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
