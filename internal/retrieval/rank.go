package retrieval

import (
	"cmp"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/fusion"
)

// rank returns the documents of candidates by relevance, with their final scores.
// Documents that are not ranked keep their order at the end.
func rank(p *Plan, c *Candidates) []Document {
	all := distinct(c.Documents)
	n := 0 // ranked by words
	for n < len(all) && all[n].Chunk >= 0 {
		n++
	}
	words, others := slices.Clone(all[:n]), all[n:]
	prefer(p, words[:min(n, NearHits)])
	list := fuse(p, c, words, others)
	preferQuoted(list)
	return preferTitled(p, all, list)
}

// distinct returns the first document of each text.
func distinct(list []Document) []Document {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(d Document) bool {
		again := d.Text != "" && seen[d.Text]
		seen[d.Text] = true
		return again
	})
}

// prefer raises the scores of documents with all words that count, of those whose name
// is a word of the query, and of those in
// the language of the question if others are in another one: of a document and its
// translations, those in other languages come later.
func prefer(p *Plan, best []Document) {
	if p.Some {
		for i := range best {
			if best[i].Complete {
				best[i].Score *= 1 + CompleteBonus
			}
		}
	}
	for i := range best {
		if best[i].Named {
			best[i].Score *= 1 + NameBonus
		}
	}
	if p.Language != "" {
		same := 0
		for _, d := range best {
			if d.Same {
				same++
			}
		}
		for i := range best {
			if best[i].Same && same < len(best) {
				best[i].Score *= 1 + LanguageBonus
			}
		}
	}
	byScore(best)
}

// preferQuoted raises the scores of documents in which quoted words stand together,
// whatever the meaning of the others is.
func preferQuoted(list []Document) {
	found := false
	for i := range list {
		if list[i].Quoted {
			list[i].Score *= 1 + QuotedBonus
			found = true
		}
	}
	if found {
		byScore(list)
	}
}

// byScore sorts documents, best first. Documents with equal scores keep the order of
// the store.
func byScore(list []Document) {
	slices.SortStableFunc(list, func(a, b Document) int { return cmp.Compare(b.Score, a.Score) })
}

// fuse ranks the first Fused documents by words, which are in order, together with those
// that are near in meaning. Which ones these are does not depend on how many candidates
// there are, which later pages have more of. The others keep their order. Scores stay
// between those by words.
func fuse(p *Plan, c *Candidates, words, others []Document) []Document {
	n := min(len(words), Fused)
	by := map[int64]Document{}
	var lexical, near []fusion.Hit[int64]
	for i, d := range slices.Concat(words, others) {
		if i < n {
			by[d.Number] = d
			lexical = append(lexical, fusion.Hit[int64]{ID: d.Number, Score: d.Score})
		}
		if d.NearChunk >= 0 {
			by[d.Number] = d
			near = append(near, fusion.Hit[int64]{ID: d.Number, Score: d.Cosine})
		}
	}
	if len(near) == 0 {
		return append(words, others...)
	}
	slices.SortStableFunc(near, func(a, b fusion.Hit[int64]) int { return cmp.Compare(b.Score, a.Score) })
	// The only document with all words stays first if it is so by words.
	only := n > 0 && p.Some && c.Complete == 1 && words[0].Complete
	var out []Document
	for _, f := range fusion.Rerank(lexical, near, Fused, fusion.Scale{Full: c.Full, All: n < Fused}, only) {
		d := by[f.ID]
		d.Score = f.Score
		if d.Chunk < 0 {
			d.Chunk = d.NearChunk
		}
		out = append(out, d)
	}
	for _, d := range slices.Concat(words[n:], others) {
		if _, ok := by[d.Number]; !ok {
			out = append(out, d)
		}
	}
	return out
}

// preferTitled puts documents first whose title is the query, in the order of their
// scores by words.
func preferTitled(p *Plan, candidates, list []Document) []Document {
	if p.Titles == nil || len(list) < 2 {
		return list
	}
	var first []Document
	titled := map[int64]bool{}
	for _, d := range candidates {
		if d.Titled && d.Chunk >= 0 && len(first) < TitleHits {
			d.Score += list[0].Score
			first = append(first, d)
			titled[d.Number] = true
		}
	}
	byScore(first)
	return append(first, slices.DeleteFunc(list, func(d Document) bool { return titled[d.Number] })...)
}
