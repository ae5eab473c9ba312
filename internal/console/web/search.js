// The search: results while one types, with filters beside them.

const pageSize = 10, passageChars = 10000;

const types = {html: 'Web pages', txt: 'Text and Markdown', others: 'Code and data', pdf: 'PDF', word: 'Word', excel: 'Excel', powerpoint: 'PowerPoint',
  odt: 'OpenDocument text', ods: 'OpenDocument sheets', odp: 'OpenDocument slides', epub: 'E-books', eml: 'Mail'};
const times = {'7d': 'Last 7 days', '30d': 'Last 30 days', '1y': 'Last year', '5y': 'Last 5 years'};
const sorts = {'': 'Relevance', 'timestamp.desc': 'Newest first', 'timestamp.asc': 'Oldest first', 'filename.asc': 'Name', 'content_length.desc': 'Longest first'};
const groups = {in: 'Source', set: 'Dataset', type: 'Kind', lang: 'Language', since: 'Changed'};

// endpointOf returns the endpoint of one source, or the first one.
const endpointOf = label => state.endpoints.find(e => (e.label || '') === (label || '')) || state.endpoints[0];

// isAsked reports whether a source is asked at each search instead of being indexed.
const isAsked = s => /^(fess|datasets|kb)$/.test(s.kind || '');

const typeName = t => Object.hasOwn(types, t) ? types[t] : t;

function languageName(code) {
  try { return new Intl.DisplayNames('en', {type: 'language'}).of(code); } catch { return code; }
}

// filtered returns a query with the conditions of the filters. They restrict what the
// words of a question find, and do not count in its ranking.
function filtered(query, p) {
  const conditions = [];
  const any = (field, values) => values.length && conditions.push(values.length > 1
    ? '(' + values.map(v => field + ':"' + v.replace(/["\\]/g, '') + '"').join(' OR ') + ')' : field + ':"' + values[0].replace(/["\\]/g, '') + '"');
  const labels = split(p.in);
  if (labels.length > 1) any('label', labels);
  any('segment', split(p.set));
  any('filetype', split(p.type));
  if (Object.hasOwn(times, p.since || '')) conditions.push('timestamp:[now-' + p.since + ' TO *]');
  if (conditions.length === 0) return query;
  if (query === '*') return conditions.join(' ');
  return [/\b(AND|OR|NOT)\b|&&|\|\|/.test(query) ? '(' + query + ')' : query, ...conditions].join(' ');
}

// callOf returns the endpoint and the arguments that an agent would use for a search.
function callOf(p) {
  const labels = split(p.in), endpoint = endpointOf(labels.length === 1 ? labels[0] : '');
  const other = labels.length === 1 && (endpoint.label || '') !== labels[0];
  const args = {query: filtered(p.q, other ? Object.assign({}, p, {in: labels[0] + ',' + labels[0]}) : p)};
  if (p.lang) args.lang = p.lang;
  if (Object.hasOwn(sorts, p.sort || '') && p.sort) args.sort = p.sort;
  return {endpoint, name: endpoint.domain + '_search', args};
}

const SEARCH = {
  name: 'search',
  title: 'Search',
  available: state => state.endpoints.length > 0,

  async show(root, p, signal) {
    if (!p.q) return showStart(root, p, signal);
    document.title = p.q + ' – knowhow';
    if ($('query').value.trim() !== p.q) $('query').value = p.q;
    root.setAttribute('aria-busy', 'true');
    if (!root.querySelector('.results')) root.replaceChildren(el('div', {class: 'results'}, el('p', {class: 'soft'}, 'Searching…')));
    try {
      if (p.agent) await showAgent(root, p, signal);
      else await showResults(root, p, signal);
      remember(p.q);
    } catch (e) {
      if (signal.aborted || e instanceof Unauthorized || isOutdated(e) || e.status === 0) throw e;
      const refused = /^argument "query": (?:got .*, )?want (.*)$/s.exec(e.message);
      root.replaceChildren(refused ? problemPage('Nothing is searched yet', 'Write ' + refused[1] + '.') : problemPage('The search failed', e.message));
    } finally {
      if (!signal.aborted) root.removeAttribute('aria-busy');
    }
  },

  focusFirst() { const first = document.querySelector('.hit h2 a'); if (first) first.focus(); },

  // key moves between the results.
  key(e, typing) {
    const links = Array.from(document.querySelectorAll('.hit h2 a, .start .list a')), hit = document.activeElement.closest && document.activeElement.closest('.hit');
    const at = links.indexOf(hit ? hit.querySelector('h2 a') : document.activeElement);
    const to = e.key === 'ArrowDown' || !typing && e.key === 'j' ? at + 1 : e.key === 'ArrowUp' || !typing && e.key === 'k' ? at - 1 : null;
    if (to !== null && links.length && (at >= 0 || to === 0) && !(typing && e.key === 'ArrowUp')) {
      e.preventDefault();
      if (to < 0) return $('query').focus();
      const link = links[Math.min(to, links.length - 1)];
      link.focus({preventScroll: true});
      link.closest('li').scrollIntoView({block: 'nearest'});
    } else if (!typing && e.key === 'x' && hit) {
      const buttons = Array.from(hit.querySelectorAll('.section > button')), fold = buttons.some(b => b.getAttribute('aria-expanded') === 'true');
      buttons.filter(b => (b.getAttribute('aria-expanded') === 'true') === fold).forEach(b => b.click());
    } else if (e.key === 'Escape' && !typing) {
      $('query').focus();
      $('query').select();
    }
  },
};

// Recent searches are kept in this tab only.

const recent = () => { try { return JSON.parse(sessionStorage.getItem('recent')) || []; } catch { return []; } };

const remember = debounce(q => {
  const list = recent().filter(r => !q.startsWith(r) && r !== q);
  sessionStorage.setItem('recent', JSON.stringify([q, ...list].slice(0, 8)));
}, 1500);

async function showStart(root, p, signal) {
  const links = list => el('ul', {class: 'chips'}, list);
  const chip = (text, p, note) => el('li', null, el('a', {href: address('search', p), dir: 'auto'}, text, note && el('small', null, ' ' + note)));
  const newest = el('section', {hidden: true}), searches = recent();
  const sources = state.sources.filter(s => isAsked(s) || s.documents).slice(0, 40);
  const documents = state.sources.reduce((n, s) => n + (s.documents || 0), 0);
  root.replaceChildren(append(el('div', {class: 'start'}),
    el('h1', {dir: 'auto'}, 'Search ' + (p.in ? split(p.in).join(', ') : documents ? plural(documents, 'document') : 'the documents')),
    p.in && el('p', null, el('a', {href: address('search')}, 'Search all sources')),
    el('p', {class: 'soft'}, 'You see what agents see: this page searches with the same tools. Press ', el('kbd', null, '/'), ' to type and ', el('kbd', null, '?'), ' for keys and operators.'),
    searches.length > 0 && el('section', null, el('h2', null, 'Recent in this tab'), links(searches.map(q => chip(q, {q})))),
    el('section', null, el('h2', null, 'Sources'), links(sources.map(s => chip(s.label, {q: '*', in: s.label, sort: 'timestamp.desc'}, isAsked(s) ? s.kind : number(s.documents))))),
    newest));
  const call = callOf({q: '*', sort: 'timestamp.desc', in: p.in});
  try {
    const page = await api.tool(call.endpoint.path, call.name,
      Object.assign(call.args, {pageSize: 6, maxChars: 0, includeFields: ['doc_id', 'title', 'timestamp', 'filetype']}), {signal});
    if (page.results.length === 0) return;
    append(newest, el('h2', null, 'Changed last'), el('ol', {class: 'list'}, page.results.map(hit => el('li', null,
      el('a', {href: address('read', {id: hit.doc_id, in: call.endpoint.label}), dir: 'auto'}, hit.title || hit.path || hit.doc_id), el('div', {class: 'soft'}, facts(hit))))));
    newest.hidden = false;
  } catch (e) {
    if (e instanceof Unauthorized) throw e; // the list is an offer: without it, the page is whole
  }
}

// facts returns a line about a document.
function facts(hit, withType) {
  return [hit.source, hit.path && el('bdi', null, hit.path), withType !== false && hit.filetype && typeName(hit.filetype),
    hit.timestamp && el('time', {datetime: hit.timestamp, title: new Date(hit.timestamp).toLocaleString()}, age(hit.timestamp))]
    .filter(Boolean).flatMap((f, i) => i ? [' · ', f] : [f]);
}

async function showResults(root, p, signal) {
  const {endpoint, name, args} = callOf(p), began = performance.now(), key = JSON.stringify(p);
  // A reader who comes back from a document finds as many results as before.
  const first = SEARCH.opened && SEARCH.read && SEARCH.read.key === key ? Math.min(SEARCH.read.documents, 100) : pageSize;
  const fields = countable(endpoint), ranges = Object.keys(times).map(t => 'timestamp:[now-' + t + ' TO *]');
  const ask = more => api.tool(endpoint.path, name, Object.assign({}, args, {pageSize: first, maxChars: passageChars * first / pageSize,
    includeFields: ['title', 'digest', 'score', 'filetype', 'mimetype', 'timestamp', 'url']}, more), {signal});
  const page = await ask({facets: {field: fields, query: ranges, size: 20}}).catch(e => {
    if (!/facet/i.test(e.message)) throw e;
    return ask(); // a source that is asked may not count
  });
  if (signal.aborted) return;
  const took = performance.now() - began, words = matcher(p.q);
  const list = el('ol', {class: 'hits'}, page.results.map(hit => showHit(hit, p, words))), more = el('p', {class: 'more'});
  const offer = next => {
    more.replaceChildren();
    if (next) {
      more.append(el('button', {type: 'button', onclick: async e => {
        e.target.disabled = true;
        try {
          const page = await ask({start: next, pageSize, maxChars: passageChars}), items = page.results.map(hit => showHit(hit, p, words));
          append(list, items);
          foldLong(list);
          SEARCH.read = {key, documents: next + items.length};
          offer(page.nextStart);
          if (items.length) items[0].querySelector('h2 a').focus();
        } catch (e) { fail(e, signal); }
      }}, 'More documents'));
    }
  };
  offer(page.nextStart);
  const count = page.total ? (page.totalIsLowerBound ? 'At least ' : '') + plural(page.total, 'document') : 'Nothing found';
  const results = el('div', {class: 'results'}, el('h1', {class: 'unseen'}, 'Documents for ' + p.q), toolbar(p, el('p', {class: 'count'}, el('strong', null, count),
    el('span', {class: 'soft'}, page.allWords !== undefined && page.total ? ', ' + (page.allWords ? number(page.allWords) : 'none') + ' with all words' : '',
      ' · ' + (took < 1000 ? Math.round(took) + ' ms' : (took / 1000).toFixed(1) + ' s')))), notices(page, p), list, more);
  const focused = root.contains(document.activeElement) ? document.activeElement.id : null;
  root.replaceChildren(el('div', {class: 'beside'}, filters(page, p), results));
  if (focused !== null) (focused && $(focused) || root.querySelector('.hit h2 a') || root).focus({preventScroll: true});
  foldLong(list);
  announce(count);
  scrollTo(0, 0);
  const opened = SEARCH.opened && Array.from(root.querySelectorAll('.hit h2 a')).find(a => a.dataset.id === SEARCH.opened);
  if (opened && document.activeElement === document.body) opened.focus();
  SEARCH.opened = null;
  await countOthers(root, page.facets, p, signal);
}

// countable returns the fields by which all sources of an endpoint can count.
function countable(endpoint) {
  const unknown = state.sources.some(s => (!endpoint.label || endpoint.label === s.label) && (s.kind === 'fess' || s.kind === 'datasets'));
  return unknown ? ['label', 'filetype'] : ['label', 'filetype', 'lang'];
}

// datasetsIn returns the datasets among which a search can choose: those of its only source.
function datasetsIn(p) {
  const labels = split(p.in), sources = state.sources.filter(s => labels.length === 0 || labels.includes(s.label));
  return sources.length === 1 && sources[0].datasets || [];
}

// toolbar has what stands above the results.
function toolbar(p, left) {
  const select = el('select', {id: 'sort', 'aria-label': 'Sort by', onchange: e => go('search', Object.assign({}, p, {sort: e.target.value}))},
    Object.entries(sorts).map(([value, text]) => el('option', {value, selected: value === (p.sort || '')}, text)));
  return el('div', {class: 'toolbar'}, left, el('div', {class: 'row'}, select,
    el('a', {class: 'button', href: address('search', Object.assign({}, p, {agent: p.agent ? '' : '1'}))}, p.agent ? 'Back to the results' : 'As an agent sees it')));
}

// notices says what a reader of the results has to know.
function notices(page, p) {
  const list = [];
  if (page.relaxed) list.push('No document has all of it as written. These have some of the words.');
  if (page.hint) list.push(page.hint);
  for (const f of page.failed || []) list.push(f.source + ' could not be searched: ' + f.message);
  if (page.partial && !page.hint) list.push('Not all documents were searched.');
  if (page.indexing) list.push(number(page.indexing.done) + ' of ' + plural(page.indexing.total, 'document') + ' are indexed so far.');
  const similar = (page.didYouMean || []).slice(0, 8);
  return [list.length ? el('ul', {class: 'notices'}, list.map(t => el('li', {dir: 'auto'}, t))) : null,
    similar.length ? el('p', {class: 'similar'}, 'Did you mean ', similar.map((w, i) => [i ? ', ' : '', el('a', {href: address('search', Object.assign({}, p, {q: w}))}, w)]), '?') : null];
}

// filters returns the filters with counts. A time that leaves nothing out is no choice.
function filters({facets, total}, p) {
  const values = {in: [], set: datasetsIn(p).filter(d => d.state === 'ready').map(d => ({value: d.id})), type: [], lang: [], since: []};
  for (const f of facets && facets.fields || []) {
    const group = {label: 'in', filetype: 'type', lang: 'lang'}[f.name];
    if (group) values[group] = f.result;
  }
  values.since = (facets && facets.queries || []).map((c, i) => ({value: Object.keys(times)[i], count: c.count}))
    .filter(v => p.since || v.count < total);
  const box = el('details', {class: 'filters', id: 'filters'}, el('summary', null, 'Filters' + (activeFilters(p) ? ' (' + activeFilters(p) + ')' : '')));
  box.open = isWide();
  for (const [group, title] of Object.entries(groups)) box.append(el('fieldset', {'data-group': group}, el('legend', null, title), el('div')));
  if (activeFilters(p)) box.append(el('p', null, el('a', {href: address('search', {q: p.q, sort: p.sort})}, 'Remove all filters')));
  for (const group of Object.keys(groups)) fillGroup(box, group, values[group], p);
  return el('aside', {'aria-label': 'Filters'}, box);
}

const activeFilters = p => Object.keys(groups).reduce((n, g) => n + split(p[g]).length, 0);

// fillGroup writes the values of a group of filters.
function fillGroup(box, group, values, p) {
  const fieldset = box.querySelector('[data-group=' + group + ']'), chosen = split(p[group]);
  const all = (group === 'since' ? [{value: ''}] : []).concat(values, chosen.filter(c => !values.some(v => v.value === c)).map(value => ({value, count: group === 'set' ? undefined : 0})));
  fieldset.hidden = chosen.length === 0 && (group === 'since' ? !all.some(v => v.count) : all.length < 2);
  const name = {in: v => v, set: v => (datasetsIn(p).find(d => d.id === v) || {}).name || v, type: typeName, lang: languageName, since: v => times[v] || v || 'Any time'}[group];
  fieldset.lastChild.replaceChildren(...all.map(v => {
    const box = el('input', {type: group === 'since' ? 'radio' : 'checkbox', name: group, id: 'filter-' + group + '-' + v.value, checked: chosen.includes(v.value) || !v.value && !chosen.length, onchange: () => {
      const kept = group === 'since' ? [] : chosen.filter(c => c !== v.value);
      SEARCH.focus = box.id;
      go('search', Object.assign({}, p, {[group]: box.checked ? [...kept, v.value] : kept}));
    }});
    return el('label', {class: v.count === 0 ? 'none' : ''}, box, el('span', {dir: 'auto'}, name(v.value)), v.count === undefined ? null : el('span', {class: 'number'}, number(v.count)));
  }));
  if (SEARCH.focus && $(SEARCH.focus)) $(SEARCH.focus).focus({preventScroll: true});
}

// countOthers counts each group in which a value is chosen without its own filter, so
// that the other values can be chosen as well.
async function countOthers(root, facets, p, signal) {
  const fields = {in: 'label', type: 'filetype', lang: 'lang'};
  await Promise.all(Object.keys(fields).filter(g => split(p[g]).length).map(async group => {
    const {endpoint, name, args} = callOf(Object.assign({}, p, {[group]: ''}));
    const page = await api.tool(endpoint.path, name, Object.assign(args, {pageSize: 1, maxChars: 0, facets: {field: [fields[group]], size: 20}}), {signal});
    const box = root.querySelector('.filters');
    if (box && page.facets && page.facets.fields[0]) fillGroup(box, group, page.facets.fields[0].result, p);
  }));
  if (SEARCH.focus && $(SEARCH.focus)) $(SEARCH.focus).focus({preventScroll: true});
  SEARCH.focus = null;
}

// showHit returns a result: one line for each section, the first open.
function showHit(hit, p, words) {
  const open = passage => address('read', {id: hit.doc_id, in: readIn(p), at: passage && passage.offset,
    len: passage && new TextEncoder().encode(passage.text).length, page: passage && passage.page, q: p.q, f: searchState(p)});
  const path = hit.path || hit.url || '', form = formOf(path, hit.mimetype);
  const sections = [];
  for (const passage of hit.passages || []) {
    const last = sections.find(s => s.heading === passage.heading && s.page === passage.page);
    if (last) last.passages.push(passage);
    else sections.push({heading: passage.heading, page: passage.page, passages: [passage]});
  }
  const title = hit.title || hit.path || hit.doc_id;
  const li = el('li', {class: 'hit'}, el('h2', {dir: 'auto'}, el('a', {href: open((hit.passages || [])[0]), 'data-id': hit.doc_id}, withMarks(title, words))),
    el('div', {class: 'soft'}, facts(hit)));
  sections.forEach((s, i) => li.append(showSection(s, i === 0, {form, path, hit, in: readIn(p), title, words, open})));
  if (!sections.length && hit.digest) li.append(el('p', {class: 'plain', dir: 'auto'}, withMarks(hit.digest, words)));
  if (hit.also) {
    li.append(el('p', {class: 'soft also'}, 'Also in ', hit.also.map((path, i) => [i ? ', ' : '', el('a', Object.assign({dir: 'auto'}, /^https?:/i.test(path)
      ? {href: path, rel: 'noreferrer noopener', target: '_blank'} : {href: address('read', {path, in: readIn(p), q: p.q})}), path)])));
  }
  return li;
}

const readIn = p => split(p.in).length === 1 ? p.in : '';
const searchState = p => new URLSearchParams(Object.entries(p).filter(([k, v]) => v && k !== 'q' && k !== 'agent')).toString();

let sectionNumber = 0; // for ids

function showSection(section, isOpen, o) {
  const id = 'section-' + ++sectionNumber, body = el('div', {id, class: 'passages', hidden: !isOpen});
  const headings = (section.heading || '').split(' > ').filter((h, i) => h && (i > 0 || h !== o.title));
  const page = section.page, pageWord = pageWordOf(o.hit.filetype);
  const name = headings.length ? headings.map((h, i) => [i ? el('span', {class: 'soft'}, ' › ') : '', i === headings.length - 1 ? el('span', {class: 'last'}, h) : h]) : page ? '' : section.heading ? 'Beginning' : 'Open at this passage';
  const fill = () => {
    for (const passage of section.passages) body.append(showPassage(passage, o, section.heading));
  };
  const button = el('button', {type: 'button', class: 'fold', 'aria-expanded': String(isOpen), 'aria-controls': id,
    'aria-label': 'Passage in ' + (headings.at(-1) || (page ? pageWord.toLowerCase() + ' ' + page : 'this document')), onclick: () => {
      if (!body.firstChild) fill();
      body.hidden = !body.hidden;
      button.setAttribute('aria-expanded', String(!body.hidden));
      foldLong(body);
    }}, icon('m9 6 6 6-6 6'));
  if (isOpen) fill();
  return el('div', {class: 'section'}, button, el('a', {class: 'heading', href: o.open(section.passages[0]), dir: 'auto'}, name,
    page && !(headings.at(-1) || '').startsWith(pageWord + ' ' + page) ? el('span', {class: 'badge'}, (name ? pageWord.toLowerCase() : pageWord) + ' ' + page) : ''), body);
}

// foldLong shows the beginning of long passages below an element, with a button that
// shows all.
function foldLong(root) {
  for (const text of root.querySelectorAll('.passage-text:not(.cut, .whole)')) {
    if (text.scrollHeight <= text.clientHeight) continue;
    const isLong = text.scrollHeight > text.clientHeight * 1.25;
    text.classList.add(isLong ? 'cut' : 'whole');
    if (isLong) {
      text.after(el('button', {type: 'button', class: 'small', onclick: e => {
        text.classList.replace('cut', 'whole');
        e.currentTarget.remove();
        text.tabIndex = -1;
        text.focus({preventScroll: true});
      }}, 'Show all', el('span', {class: 'unseen'}, ' of this passage')));
    }
  }
}

// showPassage renders a passage without its first line if that is the heading.
function showPassage(passage, o, heading) {
  let text = passage.text;
  const last = (heading || '').split(' > ').pop(), first = /^#*\s*([^\n]*)\n+/.exec(text);
  if (first && last && first[1].trim() === last && o.form !== 'code') text = text.slice(first[0].length);
  const body = o.form === 'markdown' ? renderMarkdown(wholeFences(text), {level: 0, link: linkFrom(o.hit.path, o.hit.source || o.in)})
    : o.form === 'code' ? renderCode(text, languageOf(o.path, o.hit.mimetype)) : renderPlain(text.trim(), isLaidOut(text, o.hit.mimetype));
  markWords(body, o.words);
  return el('div', {class: 'passage-text'}, body);
}

// wholeFences returns a passage of Markdown that may begin inside of a block of code, so that
// the block has both of its fences. The first fence ends a block if a later one, which has
// the name of a language, would not begin one otherwise, or if the passage begins with it
// and has no other.
function wholeFences(text) {
  const fences = Array.from(text.matchAll(/^ {0,3}(?:```|~~~)[`~]*[ \t]*(.*)$/gm)), named = fences.findIndex(f => f[1]);
  if (!fences.length) return text;
  const code = text.slice(0, fences[0].index).trim() !== '';
  if (named < 0 ? code || fences.length > 1 : named % 2 === 0) return text;
  return code ? fences[0][0] + '\n' + text : text.slice(fences[0].index + fences[0][0].length);
}

// linkFrom returns a function for relative links of a document at a path in a source, and
// for those to its own headings.
function linkFrom(path, source) {
  return href => {
    if (!path) return null;
    try {
      const url = new URL(href, 'http://documents.invalid/' + path.split('/').map(encodeURIComponent).join('/'));
      const to = decodeURIComponent(url.pathname.slice(1));
      return to ? address('read', {path: to, in: source, heading: decodeURIComponent(url.hash.slice(1))}) : null;
    } catch { return null; }
  };
}

// As an agent sees it

// tokens estimates the number of tokens of a text for a usual model: about one for six
// letters of a word, for three digits, for two signs, and for each character of Chinese,
// Japanese and Korean.
function tokens(text) {
  let n = 0;
  for (const [part] of text.matchAll(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]+|[a-zA-Z]+|\p{N}+|\p{L}+|[^\s\p{L}\p{N}]+|\n+/gu)) {
    n += /^[a-zA-Z]/.test(part) ? Math.ceil(part.length / 6) : /^\p{N}/u.test(part) ? Math.ceil(part.length / 3)
      : /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(part) ? Array.from(part).length
        : /^\p{L}/u.test(part) ? Math.ceil(part.length / 3) : /^\n/.test(part) ? 1 : Math.ceil(part.length / 2);
  }
  return n;
}

async function showAgent(root, p, signal) {
  const {endpoint, name, args} = callOf(p), began = performance.now();
  const answer = await api.call(endpoint.path, name, args, {signal});
  if (signal.aborted) return;
  const took = Math.round(performance.now() - began);
  const request = JSON.stringify({method: 'tools/call', params: answer.params}, null, 2);
  let shown = answer.text;
  try { shown = JSON.stringify(JSON.parse(answer.text), null, 2); } catch { /* it is text */ }
  const size = text => 'about ' + plural(tokens(text), 'token') + ' (an estimate), ' + bytes(new TextEncoder().encode(text).length);
  const part = (title, text, sent) => el('section', null, el('div', {class: 'toolbar'}, el('h2', null, title, ' ', el('span', {class: 'soft'}, size(sent))),
    copyButton(sent)), renderCode(text, 'json'));
  root.replaceChildren(el('div', {class: 'results agent'}, el('h1', {class: 'unseen'}, 'As an agent sees it: ' + p.q),
    toolbar(p, el('p', {class: 'count'}, el('strong', null, name), el('span', {class: 'soft'}, ' at ' + location.origin + endpoint.path + ' · ' + took + ' ms'))),
    el('p', {class: 'soft'}, 'The same search with the defaults of an agent. It receives the result without the line breaks that are shown here.'),
    part('Request', request, JSON.stringify(answer.params)), part(answer.result.isError ? 'Error' : 'Result', shown, answer.text)));
  announce('The result has ' + size(answer.text));
}
