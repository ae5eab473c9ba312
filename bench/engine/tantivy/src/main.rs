//! The driver of tantivy; see ../../main.go for what a driver is. Its chunks have
//! one field of tokens, with positions, and a label. Neither is stored. With the
//! argument "totals" before the others, the total is exact. Otherwise it is the
//! number of hits, so that tantivy need not look at all chunks.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Instant;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, RegexQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, WhitespaceTokenizer};
use tantivy::{Index, IndexWriter, Term, doc};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let totals = args.first().is_some_and(|a| a == "totals");
    if totals {
        args.remove(0);
    }
    let [action, corpus, data] = args.as_slice() else {
        return Err("usage: tantivy-driver [totals] index|query FOLDER DATA".into());
    };
    let mut schema = Schema::builder();
    let positions = TextFieldIndexing::default()
        .set_tokenizer("blanks")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(positions));
    let label = schema.add_text_field("label", STRING);
    let fields = Fields { text, label };

    let began = Instant::now();
    let index = match action.as_str() {
        "index" => Index::create_in_dir(data, schema.build())?,
        _ => Index::open_in_dir(data)?,
    };
    index.tokenizers().register("blanks", TextAnalyzer::builder(WhitespaceTokenizer::default()).build());
    if action == "index" {
        return fields.build(&index, corpus, began);
    }

    let searcher = index.reader()?.searcher();
    println!("{}", began.elapsed().as_secs_f64());
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in BufReader::new(File::open(format!("{corpus}/queries.jsonl"))?).lines() {
        let line: serde_json::Value = serde_json::from_str(&line?)?;
        let tokens: Vec<&str> = line["tokens"].as_array().ok_or("no tokens")?.iter().filter_map(|t| t.as_str()).collect();
        let class = line["class"].as_str().unwrap_or_default();
        let label = line["label"].as_str().unwrap_or_default();
        let began = Instant::now();
        let query = fields.query(class, &tokens, label)?;
        let best = TopDocs::with_limit(10).order_by_score();
        let total = match totals {
            true => searcher.search(&query, &(Count, best))?.0,
            false => searcher.search(&query, &best)?.len(),
        };
        writeln!(out, "{} {}", began.elapsed().as_secs_f64(), total)?;
    }
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Fields {
    text: Field,
    label: Field,
}

impl Fields {
    /// Builds the index with one thread, and merges it into one segment.
    fn build(&self, index: &Index, corpus: &str, began: Instant) -> Result<()> {
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 200_000_000)?;
        for line in BufReader::with_capacity(1 << 20, File::open(format!("{corpus}/chunks.tsv"))?).lines() {
            let line = line?;
            let (label, tokens) = line.split_once('\t').ok_or("a line has no tab")?;
            writer.add_document(doc!(self.label => label, self.text => tokens))?;
        }
        writer.commit()?;
        println!("{}", began.elapsed().as_secs_f64());
        let segments = index.searchable_segment_ids()?;
        if segments.len() > 1 {
            writer.merge(&segments).wait()?;
        }
        writer.garbage_collect_files().wait()?;
        writer.wait_merging_threads()?;
        Ok(())
    }

    fn query(&self, class: &str, tokens: &[&str], label: &str) -> Result<Box<dyn Query>> {
        let term = |t: &str| Term::from_field_text(self.text, t);
        let each = |occur: Occur| -> Box<dyn Query> {
            let terms = tokens.iter().map(|t| -> (Occur, Box<dyn Query>) {
                (occur, Box::new(TermQuery::new(term(t), IndexRecordOption::WithFreqs)))
            });
            Box::new(BooleanQuery::new(terms.collect()))
        };
        Ok(match class {
            "one word" => Box::new(TermQuery::new(term(tokens[0]), IndexRecordOption::WithFreqs)),
            "two words, AND" | "three words, AND" => each(Occur::Must),
            "phrase of three words" => Box::new(PhraseQuery::new(tokens.iter().map(|t| term(t)).collect())),
            "prefix of four letters" => Box::new(RegexQuery::from_pattern(&format!("{}.*", tokens[0]), self.text)?),
            "fuzzy, one edit" => Box::new(FuzzyTermQuery::new(term(tokens[0]), 1, true)),
            _ if label.is_empty() => each(Occur::Should),
            _ => {
                let in_label = TermQuery::new(Term::from_field_text(self.label, label), IndexRecordOption::Basic);
                Box::new(BooleanQuery::new(vec![
                    (Occur::Must, Box::new(ConstScoreQuery::new(Box::new(in_label), 0.0))),
                    (Occur::Must, each(Occur::Should)),
                ]))
            }
        })
    }
}
