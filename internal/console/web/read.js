// Reading a document. Offsets count bytes of UTF-8.

const readChars = 16000;   // of a part
const before = 12000;      // bytes before a passage, at most
const longest = 20000;     // bytes of a passage that is marked, at most: more is no passage
const listedPages = 2000;
const held = 64000;        // characters of an unfinished block that wait for the next part

const encode = text => new TextEncoder().encode(text);
const byteLength = text => encode(text).length;

const READ = {
  name: 'read',
  title: 'Document',
  available: state => state.endpoints.length > 0,

  async show(root, p, signal) {
    if (!p.id && !p.path) throw new Error('This address names no document.');
    if (this.shown && root.firstChild && this.shown.key === (p.id || p.path) && this.shown.goTo(p)) return;
    this.shown = null;
    root.replaceChildren(el('p', {class: 'soft'}, 'Reading…'));
    try {
      this.shown = await showDocument(root, p, signal);
    } catch (e) {
      if (signal.aborted || e instanceof Unauthorized || e.status === 0) throw e;
      const title = el('h1', {tabindex: '-1'}, 'This document cannot be shown');
      const labels = p.path && !p.in ? state.endpoints.map(e => e.label).filter(Boolean) : []; // several sources may have the path
      root.replaceChildren(...[backLink(p), title, labels.length > 1
        ? el('p', null, 'Several sources may have ', el('bdi', null, p.path), '. Open it in ', labels.map((l, i) => [i ? ', ' : '', el('a', {href: address('read', Object.assign({}, p, {in: l}))}, l)]), '.')
        : [el('p', null, 'It may have been moved or deleted, or you may not read it.'), el('p', {class: 'soft', dir: 'auto'}, e.message)]].flat().filter(Boolean));
      title.focus({preventScroll: true});
    }
  },

  hide() { this.shown = null; },

  key(e, typing) {
    const p = place().parameters;
    if (e.key === 'Escape' && !typing && p.q) location.hash = backAddress(p);
  },
};

const backAddress = p => address('search', Object.assign(Object.fromEntries(new URLSearchParams(p.f || '')), {q: p.q}));
const backLink = p => p.q ? el('a', {class: 'back', href: backAddress(p)}, '← Documents for “' + p.q + '”') : null;

async function showDocument(root, p, signal) {
  const endpoint = endpointOf(p.in), words = p.q ? matcher(p.q) : null;
  const tool = (name, args) => api.tool(endpoint.path, endpoint.domain + '_' + name, args, {signal});
  const about = await tool('get_document', p.id ? {docId: p.id} : {path: p.path});
  const id = about.doc_id, sections = withAnchors(about.sections || []), path = pathOf(about.url);
  const form = formOf(path, about.mimetype), language = languageOf(path, about.mimetype);
  const label = [about.label].flat()[0] || '', source = state.sources.find(s => s.label === label);
  const inside = source && path.startsWith(source.path + '/') ? path.slice(source.path.length + 1) : '';
  const link = inside ? linkFrom(inside, label) : null;

  const pages = await pagesOf(id, signal), pageWord = pageWordOf(about.filetype);

  const here = Object.assign({}, p, {id, path: '', at: '', len: '', page: '', heading: ''});
  // pageAddress returns the address of a page. Its label may be that of a page before.
  const pageAddress = page => address('read', Object.assign({}, here, {page: page.label, at: pages.find(o => o.label === page.label) === page ? '' : page.offset}));
  const pageMark = (page, title) => el('h2', {class: 'page-mark', 'data-page': page.offset, dir: 'auto'}, el('a', {href: pageAddress(page)}, title || pageWord + ' ' + page.label));
  // titleOf returns the line at the beginning of a text that names its page, with the blank
  // lines after it; "" for none.
  const titleOf = (page, text) => {
    const name = pageWord + ' ' + page.label;
    return text.startsWith(name) && !/^[\p{L}\p{N}]/u.test(text.slice(name.length)) ? /^[^\n]*\n*/.exec(text)[0] : '';
  };

  const options = {level: 2, link};
  const body = el('div', {class: 'body'}), earlier = el('p', {class: 'more'}), later = el('p', {class: 'more'});
  let laidOut = null; // whether the letters have one width
  let start = 0, end = 0, rest = '', last = false; // what is shown, in bytes; the text that waits; whether it ends the document
  const lengthOf = p => Math.min(Number(p.len) || 0, longest);
  const offsetOf = p => Number(p.at) || (pages.find(page => page.label === p.page) || sections.find(s => s.anchor === p.heading) || {}).offset || 0;
  let at = offsetOf(p), length = lengthOf(p);

  const read = async (from, maxChars) => {
    const r = await tool('read_content', {docId: id, from, maxChars});
    return {text: r.text, from: r.offset || 0, last: r.isLast};
  };
  const beginning = () => {
    if (at <= before) return 0;
    const above = (sections.length ? sections : pages).filter(s => s.offset <= at && s.offset >= at - before);
    return above.length ? above[above.length - 1].offset : at - 1500;
  };

  // part renders a text that begins at an offset. Unless it ends the text, the last
  // block of Markdown is left out and returned: it may continue.
  const part = (text, offset, isLast) => {
    const box = el('div', {class: 'part'});
    let kept = '';
    const blocks = form === 'markdown' ? blocksOf(text.replace(/\r\n?/g, '\n')) : null;
    if (blocks) {
      if (!isLast && blocks.length > 1) {
        const tail = blocks.pop();
        if (tail.raw.length < held) kept = text.slice(text.length - rawLength(text, tail.raw));
      }
      const view = el('div', {class: 'markdown'});
      let from = offset, i = 0, passage = null; // that has the blocks of the passage
      for (const block of blocks) {
        const n = consumed(text, i, block.raw.length), to = from + byteLength(text.slice(i, i + n));
        const isTitle = from === 0 && block.type === 'heading' && block.depth === 1 && block.text === about.title;
        if (isTitle) options.level = 1; // the title of the page stands for it
        const node = isTitle ? null : renderBlock(block, options, 0);
        if (node) {
          const e = typeof node === 'string' ? el('p', null, node) : node;
          e.dataset.offset = from;
          if (!length || from >= at + length || to <= at) passage = null;
          else if (!passage) view.append(passage = el('div', {class: 'passage'}));
          (passage || view).append(e);
        }
        i += n;
        from = to;
      }
      if (kept) kept = text.slice(i);
      markWords(view, words);
      view.dir = 'auto'; // at the end, see renderMarkdown
      return {box: append(box, view), kept};
    }
    laidOut ??= isLaidOut(text, about.mimetype);
    const data = encode(text), size = data.length, decode = (a, b) => new TextDecoder('utf-8', {ignoreBOM: true}).decode(data.subarray(a, b));
    const marks = new Map(); // the pages that begin in the text
    for (const page of pages) {
      if (page.offset >= offset && page.offset < offset + size) marks.set(wordStart(data, page.offset - offset), page);
    }
    const cuts = new Set([0, size, ...marks.keys(), ...length ? [at - offset, at + length - offset] : []]);
    const places = Array.from(cuts).filter(c => c >= 0 && c <= size).sort((a, b) => a - b);
    const text2 = el(form === 'code' ? 'code' : 'div', form === 'code' ? null : {dir: 'auto'});
    for (const [i, a] of places.entries()) {
      const b = places[i + 1], page = marks.get(a), all = b ? decode(a, b) : '', pageTitle = page ? titleOf(page, all) : '';
      if (page) {
        const mark = pageMark(page, pageTitle.trim());
        if (pageTitle) mark.dataset.offset = offset + a;
        text2.append(markWords(mark, pageTitle && words));
      }
      if (!b) break;
      const isPassage = length && offset + a >= at && offset + b <= at + length, text = all.slice(pageTitle.length);
      const span = el('span', {class: isPassage ? 'passage' : null}, form === 'code' ? renderTokens(text, language) : text);
      span.dataset.offset = offset + a + byteLength(pageTitle);
      text2.append(markWords(span, words));
    }
    append(box, form === 'code' ? el('pre', {class: 'code', tabindex: '0'}, text2) : el('div', {class: plainClass(laidOut)}, text2));
    return {box, kept};
  };

  const button = (name, act) => el('button', {type: 'button', onclick: async e => {
    e.target.disabled = true;
    say('');
    let added = null;
    try { added = await act(); } catch (e) { fail(e, signal); }
    controls();
    if (!added) return;
    added.tabIndex = -1;
    added.focus({preventScroll: true});
  }}, name);
  const controls = () => {
    earlier.replaceChildren(...start > 0 ? [button('Text before', readEarlier)] : []);
    later.replaceChildren(...last ? [] : [button('Text after', readLater)]);
  };
  const addLater = r => {
    const text = rest + r.text, from = r.from - byteLength(rest);
    const shown = part(text, from, r.last);
    rest = shown.kept;
    end = r.from + byteLength(r.text);
    last = r.last || r.text === '';
    body.append(shown.box);
  };
  // readLater and readEarlier show more and return its first element.
  const readLater = async () => { // a block that continues is not yet shown
    const shown = body.querySelectorAll('[data-offset]').length;
    do addLater(await read(end, readChars)); while (!last && !body.lastChild.querySelector('[data-offset]'));
    return body.querySelectorAll('[data-offset]')[shown];
  };
  const readEarlier = async () => {
    const to = start;
    let from = Math.max(0, to - readChars);
    const near = sections.filter(s => s.offset < to && s.offset >= from);
    if (from > 0 && near.length) from = near[0].offset;
    let text = '', first = -1;
    for (let next = from; next < to;) {
      const r = await read(next, readChars);
      if (!r.text) break;
      if (first < 0) first = r.from;
      text += r.text;
      next = r.from + byteLength(r.text);
    }
    if (first < 0) return null;
    text = new TextDecoder('utf-8', {ignoreBOM: true}).decode(encode(text).subarray(0, to - first));
    const y = later.getBoundingClientRect().top;
    const {above} = options;
    options.above = 1; // the first heading comes after the title of the page
    body.prepend(part(text, first, true).box);
    options.above = above;
    start = first;
    scrollBy(0, later.getBoundingClientRect().top - y); // what was visible stays there
    return body.querySelector('[data-offset]');
  };

  const first = await read(beginning(), readChars);
  start = first.from;
  addLater(first);
  while (!last && (length && end < at + length || !body.querySelector('[data-offset]'))) await readLater();
  controls();
  if (signal.aborted) return null;

  document.title = (about.title || id) + ' – knowhow';
  const web = /^https?:\/\//i.test(about.url || '');
  const title = el('h1', {dir: 'auto', tabindex: '-1'}, about.title || id);
  const actions = el('div', {class: 'row'}), similar = el('section', {class: 'similar-documents', hidden: true});
  root.replaceChildren(el('div', {class: 'beside read'},
    el('aside', {'aria-label': 'Contents'}, contents(sections, about.moreSections, s => address('read', Object.assign({}, here, {at: s.offset})), pages, pageWord, pageAddress), isWide() && similar),
    append(el('article'), backLink(p), title,
      el('div', {class: 'soft facts'}, label && [label, ' · '], web ? el('a', {href: about.url, rel: 'noreferrer noopener', target: '_blank'}, about.url) : el('bdi', null, inside || path),
        about.filetype && ' · ' + typeName(about.filetype), about.content_length > 0 && ' · ' + bytes(about.content_length), about.timestamp && [' · ', el('time', {datetime: about.timestamp, title: new Date(about.timestamp).toLocaleString()}, age(about.timestamp))]),
      actions, earlier, body, later, !isWide() && similar)));
  const goTo = to => {
    at = offsetOf(to);
    length = lengthOf(to);
    if (at < start || at >= end && !last) return false;
    const mark = to.page && !length && body.querySelector('[data-page="' + at + '"]');
    const all = Array.from(body.querySelectorAll('[data-offset]'));
    let target = mark || body.querySelector('.passage');
    if (mark || !length || !target) {
      body.querySelectorAll('.passage').forEach(n => n.classList.remove('passage'));
      const exact = mark || all.filter(n => Number(n.dataset.offset) <= at).pop();
      if (!mark && form !== 'markdown' && at > start && (!exact || Number(exact.dataset.offset) !== at)) {
        if (!exact || !splitAt(exact, at)) return false;
        target = exact.nextSibling;
      } else target = exact;
    }
    if (at === 0 && !length && !mark || !target) {
      title.focus({preventScroll: true});
      scrollTo(0, 0);
      return true;
    }
    target.tabIndex = -1;
    target.focus({preventScroll: true});
    target.scrollIntoView({block: 'start'});
    document.querySelectorAll('.contents a').forEach(a => a.removeAttribute('aria-current'));
    for (const [list, places] of [['.sections', sections], ['.pages', pages]]) {
      const current = document.querySelectorAll('.contents ' + list + ' a')[places.filter(s => s.offset <= at).length - 1];
      if (current) { current.setAttribute('aria-current', 'true'); current.scrollIntoView({block: 'nearest'}); }
    }
    target.scrollIntoView({block: 'start'});
    return true;
  };
  goTo(p);
  announce(about.title || id);
  SEARCH.opened = id; // gets the focus when its reader goes back to the results
  offerDownload(actions, id, path, signal);
  offerSimilar(similar, id, signal);
  return {key: p.id || p.path, goTo};
}

// splitAt divides a span of text at an offset; it reports whether it did.
function splitAt(span, offset) {
  const data = encode(span.textContent), n = offset - Number(span.dataset.offset);
  if (n <= 0 || n >= data.length) return false;
  let chars = new TextDecoder('utf-8', {ignoreBOM: true}).decode(data.subarray(0, n)).length;
  const walker = document.createTreeWalker(span, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node; (node = walker.nextNode());) {
    if (chars < node.length) {
      range.setStart(node, chars);
      range.setEndAfter(span.lastChild);
      const next = el('span');
      next.dataset.offset = offset;
      next.append(range.extractContents());
      span.after(next);
      return true;
    }
    chars -= node.length;
  }
  return false;
}

// consumed returns how many characters of a text from i on are n characters after its
// line ends have become one character each.
function consumed(text, i, n) {
  let j = i;
  for (; n > 0 && j < text.length; n--) j += text[j] === '\r' && text[j + 1] === '\n' ? 2 : 1;
  return j - i;
}

// rawLength returns the length that the end of a text has before its line ends become
// one character each.
function rawLength(text, raw) {
  let j = text.length;
  for (let n = raw.length; n > 0 && j > 0; n--) j -= text[j - 1] === '\n' && text[j - 2] === '\r' ? 2 : 1;
  return text.length - j;
}

// wordStart returns the place at which the word begins that a place in UTF-8 is in: a page
// can begin inside a word that was divided.
function wordStart(data, place) {
  const blank = i => i < 0 || data[i] <= 0x20;
  if (blank(place)) return place;
  let i = place;
  while (!blank(i - 1) && place - i < 40) i--;
  return blank(i - 1) ? i : place;
}

// pagesOf returns the pages of a document, none if it has one at most.
async function pagesOf(id, signal) {
  try {
    const pages = await api.get('/console/pages?' + new URLSearchParams({id}), {signal});
    return pages.length > 1 ? pages : [];
  } catch (e) {
    if (signal.aborted || e instanceof Unauthorized) throw e;
    return []; // without them, the page is whole
  }
}

// withAnchors gives sections the anchors that links to them have: as GitHub forms them
// from headings.
function withAnchors(sections) {
  const counts = new Map();
  return sections.map(s => {
    const anchor = s.heading.split(' > ').pop().toLowerCase().replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '').replace(/ /g, '-'), n = counts.get(anchor) || 0;
    counts.set(anchor, n + 1);
    return Object.assign({anchor: n ? anchor + '-' + n : anchor}, s);
  });
}

// contents returns the table of contents: the headings, and the pages unless each has a
// heading, as slides have.
function contents(sections, more, to, pages, pageWord, toPage) {
  const offsets = new Set(sections.map(s => s.offset));
  if (pages.every(p => offsets.has(p.offset))) pages = [];
  if (sections.length < 2 && !pages.length) return null;
  const top = Math.min(...sections.map(s => s.heading.split(' > ').length));
  const box = el('details', {class: 'contents'}, el('summary', null, 'Contents'));
  if (sections.length > 1) {
    box.append(el('nav', {'aria-label': 'Sections', class: 'sections'}, el('ul', null, sections.map(s => {
      const headings = s.heading.split(' > ');
      return el('li', {class: 'depth-' + Math.min(headings.length - top, 4)}, el('a', {href: to(s), dir: 'auto'}, headings.pop()));
    }))));
    if (more) box.append(el('p', {class: 'soft'}, 'and ' + plural(more, 'more section', 'more sections')));
  }
  if (pages.length) {
    box.append(el('nav', {'aria-label': pageWord + 's', class: 'pages'}, el('h2', null, pageWord + 's'),
      el('ol', null, pages.slice(0, listedPages).map(p => el('li', null, el('a', {href: toPage(p), dir: 'auto'}, el('span', {class: 'unseen'}, pageWord + ' '), p.label)))),
      pages.length > listedPages ? el('p', {class: 'soft'}, 'and ' + number(pages.length - listedPages) + ' more') : null));
  }
  box.open = isWide();
  return box;
}

// pathOf returns the path of a file URL, and other URLs as they are.
function pathOf(url) {
  if (!/^file:\/\//.test(url || '')) return url || '';
  try { return decodeURIComponent(new URL(url).pathname); } catch { return url; }
}

// offerDownload offers the original file if the server has it for the caller.
async function offerDownload(actions, id, path, signal) {
  const address = '/console/file?' + new URLSearchParams({id});
  try {
    await request('HEAD', address, {signal});
  } catch { return; }
  actions.append(el('button', {type: 'button', class: 'small', onclick: async () => {
    say('');
    try {
      const response = await request('GET', address, {signal, headers: {Accept: '*/*'}});
      const url = URL.createObjectURL(await response.blob());
      el('a', {href: url, download: path.split('/').pop() || id}).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (e) { fail(e, signal); }
  }}, icon('M12 4v11m0 0 4-4m-4 4-4-4M5 20h14'), ' Original'));
}

// offerSimilar shows documents that are similar by meaning, if there are any.
async function offerSimilar(section, id, signal) {
  try {
    const answer = await api.get('/console/similar?' + new URLSearchParams({id}), {signal});
    const list = Array.isArray(answer) ? answer : answer.documents || answer.results || [];
    if (list.length === 0) return;
    append(section, el('h2', null, 'Similar documents'), el('ul', null, list.map(d => el('li', null,
      el('a', {href: address('read', {id: d.id}), dir: 'auto'}, d.title || d.path || d.id), el('div', {class: 'soft'}, [d.source, d.path].filter(Boolean).join(' · '))))));
    section.hidden = false;
  } catch { /* an offer: without it, the page is whole */ }
}
