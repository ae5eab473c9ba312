// Rendering of texts of documents as elements. marked and Prism divide texts into
// tokens; the elements are made here. Texts whose form would take them too long are
// shown as they are.

// markdown and prism return marked and Prism, which run when they are first needed:
// that takes longer than everything else of the page.
const markdown = once(() => { vendored.marked(); return globalThis.marked; });
const prism = once(() => {
  const prism = vendored.prism();
  prism.manual = true; // nothing is highlighted on its own
  return prism;
});

const limits = {
  markdown: 200000, // characters of a text that is read as Markdown
  code: 16000,      // characters that are highlighted: some grammars take quadratic time
  fence: 6000,      // the same in Markdown, which may have many
  json: 60000,      // characters of JSON that are highlighted, in linear time
  emphasis: 4e7,    // signs of emphasis times characters, of all paragraphs: marked takes about 10 ns for each
  line: 4000,       // characters of a line, in both
  depth: 24,        // of lists and quotes in one another
};

// languages names the grammar of Prism for endings of file names and for names that
// are used at fences.
const languages = {js: 'javascript', mjs: 'javascript', cjs: 'javascript', jsx: 'javascript', ts: 'typescript', tsx: 'typescript', py: 'python',
  rb: 'ruby', rs: 'rust', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', yml: 'yaml', golang: 'go', h: 'c', cc: 'cpp', cxx: 'cpp', hpp: 'cpp',
  'c++': 'cpp', cs: 'csharp', 'c#': 'csharp', kt: 'kotlin', kts: 'kotlin', html: 'markup', htm: 'markup', xml: 'markup', svg: 'markup', pl: 'perl',
  pm: 'perl', ps1: 'powershell', proto: 'protobuf', mk: 'makefile', dockerfile: 'docker', tf: 'hcl', conf: 'ini', cfg: 'ini', service: 'ini',
  properties: 'ini', patch: 'diff', jsonc: 'json', json5: 'json', jsonl: 'json', ipynb: 'json', gql: 'graphql', sc: 'scala'};

// languageOf returns the name of the grammar for a path or a media type; "" for none.
function languageOf(path, type) {
  const name = (path || '').split('/').pop().toLowerCase();
  const from = [/\./.test(name) ? name.split('.').pop() : name, (type || '').replace(/^(text|application)\/(x-)?/, '').replace(/(src|script)$/, '')];
  for (const s of from) {
    const grammar = languages[s] || s;
    if (grammarOf(grammar)) return grammar;
  }
  return '';
}

const grammarOf = name => Object.hasOwn(prism().languages, name) && typeof prism().languages[name] === 'object' ? prism().languages[name] : null;

// formOf returns how a text is shown: markdown, code or plain.
function formOf(path, type) {
  if (/^text\/(x-)?markdown$/.test(type || '') || /\.(md|mdx|markdown|mkd|qmd)$/i.test(path || '')) return 'markdown';
  if (/^text\/(html|plain)$|pdf|office|word|excel|sheet|presentation|opendocument|epub|rtf|message/.test(type || '') && !languageOf(path, '')) return 'plain';
  return /\.(html?|xhtml|txt|text|rst|adoc)$/i.test(path || '') || !languageOf(path, type) ? 'plain' : 'code';
}

// longestLine returns the length of the longest line.
function longestLine(text) {
  let longest = 0;
  for (let from = 0; from <= text.length;) {
    let to = text.indexOf('\n', from);
    if (to < 0) to = text.length;
    longest = Math.max(longest, to - from);
    from = to + 1;
  }
  return longest;
}

// renderCode returns the tokens of a code as text and elements, in a fragment.
function renderTokens(text, language) {
  const out = document.createDocumentFragment(), grammar = grammarOf(languages[language] || language || '');
  if (!grammar || text.length > (grammar === prism().languages.json ? limits.json : limits.code) || longestLine(text) > limits.line) {
    out.append(text);
    return out;
  }
  const add = (parent, token, depth) => {
    if (typeof token === 'string') return parent.append(token);
    if (Array.isArray(token)) return token.forEach(t => add(parent, t, depth));
    const span = el('span', {class: 'token ' + [token.type, token.alias].flat().filter(c => /^[\w-]+$/.test(c || '')).join(' ')});
    if (depth > limits.depth) span.append(plainOf(token));
    else add(span, token.content, depth + 1);
    parent.append(span);
  };
  const plainOf = t => typeof t === 'string' ? t : Array.isArray(t) ? t.map(plainOf).join('') : plainOf(t.content);
  add(out, prism().tokenize(text, grammar), 0);
  return out;
}

// renderCode returns a block of code with its language highlighted, if it is known.
function renderCode(text, language) {
  return el('pre', {class: 'code', tabindex: '0'}, el('code', null, renderTokens(text, (language || '').toLowerCase())));
}

// withoutLongMarks returns a text in which at most 100 of the marks that follow one another
// are left, such as accents on one letter: the time that browsers take to draw them grows
// with the square of their number.
function withoutLongMarks(text) {
  return text.replace(/(\p{M}{100})\p{M}+/gu, '$1…');
}

// renderPlain returns paragraphs whose lines stay. A text that is laid out needs letters
// of one width.
function renderPlain(text, laidOut) {
  return el('div', {class: plainClass(laidOut), dir: 'auto'}, text);
}

const plainClass = laidOut => laidOut ? 'plain laid-out' : 'plain';

// isLaidOut reports whether a text of a media type was written with columns or rules.
function isLaidOut(text, type) {
  return /^text\/(?!html)/.test(type || '') && (text.slice(0, 16000).match(/\S {3,}\S|^[=*_~#-]{5,}$/gm) || []).length > 1;
}

// pageWordOf returns how the pages of a document of a kind are called.
const pageWordOf = filetype => /^(powerpoint|odp)$/.test(filetype || '') ? 'Slide' : 'Page';

// isTame reports whether a text can be read as Markdown in a short time.
function isTame(text) {
  if (text.length > limits.markdown) return false;
  for (let from = 0; from < text.length;) {
    let to = text.indexOf('\n', from);
    if (to < 0) to = text.length;
    if (to - from > limits.line) return false;
    const marks = /^(?:\s|>|[-*+](?=\s)|\d+[.)](?=\s))*/.exec(text.slice(from, Math.min(to, from + 500)))[0];
    if (marks.replace(/\s/g, '').length > limits.depth || marks.length > 120 && /[-*+>\d]/.test(marks)) return false;
    from = to + 1;
  }
  return true;
}

// blocksOf returns the blocks of a Markdown text as tokens whose raw texts together are
// the text; null if it is not read as Markdown.
function blocksOf(text) {
  if (!isTame(text)) return null;
  const lexer = new (markdown().Lexer)({gfm: true}), inline = lexer.inlineTokens;
  let left = limits.emphasis;
  lexer.inlineTokens = (text, tokens = []) => {
    const cost = (text.split(/[*_~]/).length - 1) * text.length;
    if (cost <= left) {
      left -= cost;
      return inline.call(lexer, text, tokens);
    }
    tokens.push({type: 'text', raw: text, text});
    return tokens;
  };
  try {
    return lexer.lex(text);
  } catch {
    return null;
  }
}

// renderMarkdown returns a Markdown text as elements. Options:
// block(node, token) is called for each block;
// link(address) returns the address of a link that is relative, null for none;
// level is the level of the highest headings, 0 for paragraphs instead of headings.
function renderMarkdown(text, options) {
  const o = Object.assign({level: 2}, options), root = el('div', {class: 'markdown'});
  const blocks = blocksOf(text);
  if (!blocks) return append(root, renderPlain(text));
  for (const token of blocks) {
    const node = renderBlock(token, o, 0);
    if (!node) continue;
    root.append(node);
    if (o.block) o.block(node, token);
  }
  root.dir = 'auto'; // at the end: with it, each child that is added costs a walk over all
  return root;
}

function renderBlocks(tokens, o, depth) { return (tokens || []).map(t => renderBlock(t, o, depth)); }

function renderBlock(t, o, depth) {
  if (depth > limits.depth) return t.raw;
  switch (t.type) {
    case 'space': case 'def': return null;
    case 'heading': {
      const level = Math.max(2, Math.min(o.level + t.depth - 1, 6, (o.above || 1) + 1)); // none is left out
      o.above = level;
      return el(o.level ? 'h' + level : 'p', {class: 'h h' + t.depth}, renderInline(t.tokens, o, depth));
    }
    case 'paragraph': return el('p', null, renderInline(t.tokens, o, depth));
    case 'text': return t.tokens ? el('span', null, renderInline(t.tokens, o, depth)) : decoded(t.text);
    case 'code': return renderCode(t.text, t.text.length > limits.fence ? '' : /^[^\s{,]*/.exec(t.lang || '')[0]);
    case 'blockquote': return el('blockquote', null, renderBlocks(t.tokens, o, depth + 1));
    case 'hr': return el('hr');
    case 'list':
      return el(t.ordered ? 'ol' : 'ul', {start: t.ordered && t.start > 1 ? t.start : null}, t.items.map(item =>
        el('li', null, item.task ? (item.checked ? '☑ ' : '☐ ') : null,
          renderBlocks((item.tokens || []).filter(c => c.type !== 'checkbox'), o, depth + 1))));
    case 'table': {
      const cell = tag => c => el(tag, {class: c.align ? 'to-' + c.align : null, scope: tag === 'th' ? 'col' : null}, renderInline(c.tokens, o, depth));
      return el('div', {class: 'wide', tabindex: '0'}, el('table', null, el('thead', null, el('tr', null, t.header.map(cell('th')))),
        el('tbody', null, t.rows.map(row => el('tr', null, row.map(cell('td')))))));
    }
    case 'html': return el('pre', {class: 'source'}, t.raw.trimEnd());
  }
  return t.raw;
}

function renderInline(tokens, o, depth) {
  return (tokens || []).map(t => {
    if (depth > limits.depth) return t.raw;
    const inner = () => renderInline(t.tokens, o, depth + 1);
    switch (t.type) {
      case 'text': return t.tokens ? inner() : decoded(t.text);
      case 'escape': return t.text;
      case 'strong': return el('strong', null, inner());
      case 'em': return el('em', null, inner());
      case 'del': return el('del', null, inner());
      case 'codespan': return el('code', null, t.text);
      case 'br': return el('br');
      case 'html': return /^<br\s*\/?>$/i.test(t.raw) ? el('br') : el('span', {class: 'source'}, t.raw);
      case 'link': {
        const href = linkTo(decoded(t.href), o);
        const outside = href && !href.startsWith('#');
        return href ? el('a', outside ? {href, rel: 'noreferrer noopener', target: '_blank', title: href} : {href}, inner()) : el('span', {title: t.href}, inner());
      }
      case 'image': return el('span', {class: 'image'}, decoded(t.text || '') || 'Image', ' ', el('small', null, decoded(t.href)));
    }
    return t.raw;
  });
}

// linkTo returns the address for a link of a document; null if it is none that can be
// followed.
function linkTo(href, o) {
  const scheme = /^[\s\u0000-\u001f]*([a-z][a-z0-9+.-]*):/i.exec(href);
  if (scheme) return /^(https?|mailto)$/i.test(scheme[1]) ? safeURL(href) : null;
  if (/^\s*(\/\/|\\)/.test(href) || /^\s*$/.test(href)) return null;
  return o.link ? o.link(href) : null;
}

const entities = {amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', mdash: '—', ndash: '–', hellip: '…',
  rarr: '→', larr: '←', laquo: '«', raquo: '»', ldquo: '“', rdquo: '”', lsquo: '‘', rsquo: '’', bull: '•', middot: '·', times: '×', deg: '°', sect: '§', para: '¶',
  euro: '€', check: '✓', auml: 'ä', ouml: 'ö', uuml: 'ü', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', szlig: 'ß', eacute: 'é', egrave: 'è', agrave: 'à'};

// decoded returns a text with the characters that its entities mean.
function decoded(text) {
  return (text || '').replace(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});/gi, (all, name) => {
    if (name[0] !== '#') return Object.hasOwn(entities, name) ? entities[name] : all;
    const n = /x/i.test(name[1]) ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return n > 31 && n < 0x110000 && !(n >= 0xd800 && n < 0xe000) ? String.fromCodePoint(n) : '\ufffd';
  });
}

// Matched words

const stopWords = new Set(('a about an and are as at be by can could do does did for from has have how i if in is it its me my not of on or our ' +
  'shall should that the their them then there these they this to was we were what when where which who why will with would you your').split(' '));

// matcher returns a regular expression for the words of a query and words with
// another ending, or null if the query has none.
function matcher(query) {
  const words = (query || '').toLowerCase().replace(/\b(filetype|filename|label|lang|timestamp|mimetype|host):(\[[^\]]*\]|"[^"]*"|\S+)/g, ' ')
    .match(/[\p{L}\p{N}\p{M}]+/gu) || [];
  let kept = words.filter(w => !stopWords.has(w) && !/^(and|or|not|title)$/.test(w));
  if (kept.length === 0) kept = words;
  const forms = new Set();
  for (const word of kept.slice(0, 40)) {
    if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(word)) {
      const letters = Array.from(word);
      if (letters.length < 3) forms.add(word);
      for (let i = 0; letters.length > 2 && i + 1 < letters.length; i++) forms.add(letters[i] + letters[i + 1]);
      continue;
    }
    const stem = word.length < 5 ? word : word.replace(/(ations?|ings?|ies|ed|es|s|e|y)$/, '');
    forms.add('(?<![\\p{L}\\p{N}])' + (stem.length < 3 ? word : stem) + (word.length < 3 ? '' : '\\p{L}{0,' + (stem.length < 5 ? 3 : 6) + '}') + '(?![\\p{L}\\p{N}])');
  }
  return forms.size ? new RegExp('(?:' + Array.from(forms).join('|') + ')+', 'giu') : null;
}

// marked words in a text, as strings and elements.
function withMarks(text, words) {
  const out = [];
  let end = 0;
  for (const m of words ? text.matchAll(words) : []) {
    out.push(text.slice(end, m.index), el('mark', null, m[0]));
    end = m.index + m[0].length;
  }
  out.push(text.slice(end));
  return out;
}

// markWords marks the words in all texts of an element, up to 2,000 of them.
function markWords(root, words) {
  if (!words) return root;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), texts = [];
  for (let n; (n = walker.nextNode());) texts.push(n);
  let left = 2000;
  for (const node of texts) {
    if (left <= 0) break;
    const parts = withMarks(node.data, words);
    if (parts.length === 1) continue;
    left -= (parts.length - 1) / 2;
    node.replaceWith(...parts);
  }
  return root;
}
