// Sources: what the server serves, how far and how fast it is indexed, and what is left
// out and why. Nothing can be changed here.
const SOURCES = (() => {
  const kinds = {folder: 'Folder', repository: 'Repository', site: 'Web site', fess: 'Fess domain', datasets: 'Datasets', kb: 'Notes'};
  const pageOf = 50; // left-out paths

  // meanings says what reasons mean that have no message of their own.
  const meanings = {hidden: 'the name of the file, or of a folder above it, begins with a dot', empty: 'it has no text and no title, and is indexed when it gets text',
    'without text': 'an image, a program or another file whose text cannot be read', 'excluded by ignore files': 'a .gitignore or .ignore file excludes it; --no-ignore turns that off',
    'excluded by patterns': 'a pattern of --exclude matches it', 'not matched by the patterns to include': 'no pattern of --include matches it'};
  let ui = null;   // elements; null while another view is shown
  let ends = null; // ends the events

  function show(root, parameters, signal) {
    if (!ui) {
      ui = {summary: el('p', {class: 'soft'}), live: el('p', {class: 'live', role: 'status'}), list: el('ol', {class: 'sources'}),
        vectors: el('div'), end: el('div', {class: 'after'}), cards: new Map(), progress: new Map()};
      root.replaceChildren(el('div', {class: 'page'}, el('div', {class: 'head'}, el('h1', {tabindex: -1}, 'Sources'), ui.live),
        ui.summary, ui.vectors, ui.list, ui.end));
      listen();
    }
    ui.open = parameters.source || '';
    draw();
    const card = ui.cards.get(ui.open);
    if (card) return card.leftOut.show(parameters, signal);
  }

  function hide() {
    if (ends) ends.abort();
    ends = ui = null;
  }

  // listen keeps the status as it is on the server.
  async function listen() {
    const signal = (ends = new AbortController()).signal;
    const current = () => ui && !signal.aborted;
    try {
      await api.events('/console/events', (name, value) => {
        if (!current() || !value.sources) return;
        state = value;
        live('Live', true);
        draw();
      }, {signal, onLost: () => { if (current()) live('The connection is lost, trying again…', false); }});
    } catch (e) {
      if (!current()) return;
      live(e.status === 404 ? '' : 'Not live', false);
      if (e.status !== 404) fail(e, signal);
    }
  }

  function live(text, good) {
    if (ui.live.textContent === text) return;
    ui.live.textContent = text;
    ui.live.classList.toggle('good', good);
  }

  const asked = s => s.kind === 'fess' || s.kind === 'datasets' || s.kind === 'kb';

  function draw() {
    const indexed = state.sources.filter(s => !asked(s));
    const documents = indexed.reduce((n, s) => n + s.documents, 0), text = indexed.reduce((n, s) => n + s.textBytes, 0);
    ui.summary.textContent = state.sources.length ? [plural(state.sources.length, 'source'), plural(documents, 'document'),
      bytes(text) + ' of text', 'knowhow ' + state.version].join(' · ') : 'No source is served, or you may read none.';
    ui.vectors.replaceChildren(...vectors());
    for (const [label, card] of ui.cards) {
      if (!state.sources.some(s => s.label === label)) { card.node.remove(); ui.cards.delete(label); }
    }
    for (const s of state.sources) {
      let card = ui.cards.get(s.label);
      if (!card) ui.cards.set(s.label, card = newCard(s.label));
      card.update(s);
      if (!card.node.isConnected) ui.list.append(card.node);
    }
    const endpoints = JSON.stringify(state.endpoints);
    if (ui.endpoints === endpoints) return;
    ui.endpoints = endpoints;
    setChildren(ui.end, el('h2', {}, 'Endpoints'), state.endpoints.length ? scroller('MCP endpoints', el('table', {},
      el('caption', {class: 'unseen'}, 'MCP endpoints'),
      el('thead', {}, el('tr', {}, ['Address', 'Sources', 'Tools begin with', ''].map(h => h ? el('th', {scope: 'col'}, h) : el('td')))),
      el('tbody', {}, state.endpoints.map(e => el('tr', {}, el('td', {}, el('code', {}, location.origin + e.path)),
        el('td', {}, e.label || 'all'), el('td', {}, el('code', {}, e.domain + '_')),
        el('td', {}, copyButton(location.origin + e.path, 'Copy')))))))
      : el('p', {}, 'You have no tools for searching here: you may read no source, or the server was started without ', el('code', {}, '--tools search'), '.'),
    el('h2', {}, 'Change the sources'),
    el('p', {}, 'Sources are set on the command line of the server, not here. ', el('code', {}, 'knowhow serve DIR ...'),
      ' adds what it serves, and ', el('code', {}, 'knowhow sources rm LABEL'), ' removes a source and its documents from the data folder. ',
      el('code', {}, '--include'), ', ', el('code', {}, '--exclude'), ' and ', el('code', {}, '--no-ignore'), ' change what is left out.'));
  }

  // vectors returns how far the search by meaning is.
  function vectors() {
    const v = state.vectors;
    if (!v || !v.total) return [];
    const text = 'Search by meaning: ' + (v.done < v.total ? number(v.done) + ' of ' + plural(v.total, 'passage') + ' are ready' +
      (v.secondsLeft ? ', about ' + duration(v.secondsLeft) + ' left' : '') : 'all ' + plural(v.total, 'passage') + ' are ready');
    return [el('p', {class: 'soft'}, v.done < v.total ? [bar(v, text), ' '] : null, text)];
  }

  const bar = (p, text) => el('progress', {max: p.total || 1, value: p.done, 'aria-label': text});

  const duration = s => s < 90 ? Math.ceil(s) + ' s' : s < 5400 ? Math.round(s / 60) + ' min' : (s / 3600).toFixed(1) + ' h';

  // rateOf returns how many documents of a source have been indexed in a second, in the last
  // 20 seconds in which the page was shown; 0 until that is known.
  function rateOf(label, p) {
    const now = performance.now(), all = ui.progress.get(label) || [];
    if (all.length && all.at(-1).done > p.done) all.length = 0; // it has begun anew
    all.push({now, done: p.done});
    while (all.length > 2 && now - all[0].now > 20000) all.shift();
    ui.progress.set(label, all);
    return now - all[0].now < 2000 ? 0 : (p.done - all[0].done) / (now - all[0].now) * 1000;
  }

  // counts returns texts such as "3 binary" with the greatest number first.
  const counts = of => Object.entries(of || {}).sort((a, b) => b[1] - a[1]).map(([reason, n]) => number(n) + ' ' + reason);

  const total = of => Object.values(of || {}).reduce((a, b) => a + b, 0);

  function newCard(label) {
    const facts = el('div'), id = 'left-out-' + label, leftOut = newLeftOut(label);
    const toggle = el('button', {type: 'button', class: 'small', id, 'aria-expanded': 'false',
      onclick: () => go('sources', {source: ui.open === label ? '' : label})});
    const more = el('div', {class: 'row', hidden: true}, toggle);
    const node = el('li', {class: 'card'}, facts, more, leftOut.node);
    let drawn = '';
    const update = s => {
      const text = JSON.stringify([s, state.endpoints.length, age(s.indexed)]), out = total(s.leftOut), part = total(s.inPart);
      const open = ui.open === label;
      more.hidden = out + part === 0 && !open;
      toggle.setAttribute('aria-expanded', String(open));
      toggle.replaceChildren(open ? 'Hide what is left out' : 'Show what is left out', el('span', {class: 'unseen'}, ' of ' + label));
      leftOut.node.hidden = !open;
      if (text === drawn) return;
      drawn = text;
      const focused = facts.contains(document.activeElement);
      setChildren(facts, about(s, out, part));
      if (focused) facts.querySelector('a')?.focus();
    };
    return {node, update, leftOut};
  }

  // about returns what is known of a source.
  function about(s, out, part) {
    const fact = (name, ...value) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
    const searchable = state.endpoints.some(e => !e.label || e.label === s.label);
    const status = asked(s) ? ['asked at each search', ''] : s.incomplete ? ['stopped', 'bad'] : s.indexing ? ['indexing', 'busy']
      : s.watched ? ['up to date', 'good'] : ['not watched for changes', ''];
    const parts = [
      el('div', {class: 'head'}, el('h2', {}, s.label), el('span', {class: 'pill'}, kinds[s.kind] || s.kind || 'Folder'),
        el('span', {class: 'pill ' + status[1]}, status[0]),
        searchable ? el('a', {href: address('search', {in: s.label}), class: 'push'}, 'Search', el('span', {class: 'unseen'}, ' in ' + s.label)) : null),
      s.path === s.label ? null : el('p', {class: 'soft path', dir: 'auto'}, s.path),
      s.description ? el('p', {dir: 'auto'}, s.description) : null,
    ];
    if (s.indexing) {
      const p = s.indexing, rate = rateOf(s.label, p), text = number(p.done) + ' of ' + plural(p.total, 'document') + (rate >= 0.05 ? ', ' +
        (rate < 10 ? rate.toFixed(1) : number(Math.round(rate))) + ' per second, about ' + duration((p.total - p.done) / rate) + ' left' : '');
      parts.push(el('p', {class: 'progress'}, bar(p, text), ' ', text));
    }
    if (s.incomplete) parts.push(el('p', {class: 'error'}, sentence(s.incomplete)));
    if (!asked(s)) {
      parts.push(el('dl', {class: 'facts'},
        fact('Documents', number(s.documents)),
        fact('Text', bytes(s.textBytes)),
        s.indexed ? fact('Last read', el('time', {datetime: s.indexed, title: new Date(s.indexed).toLocaleString()}, age(s.indexed))) : null,
        fact('Left out', number(out)),
        s.errors ? fact('Errors', el('span', {class: 'error'}, number(s.errors))) : null));
      if (out) parts.push(el('p', {class: 'soft'}, 'Left out: ' + counts(s.leftOut).join(', ')));
      if (part) parts.push(el('p', {class: 'soft'}, 'Indexed, but ' + counts(s.inPart).join(', ')));
    } else {
      parts.push(el('p', {class: 'soft'}, s.kind === 'fess' ? 'A Fess server answers each search. Its documents are not in the index of this server.'
        : s.kind === 'datasets' ? datasetsText(s)
          : 'Notes and files that people and agents have added.', s.kind === 'kb' && NOTES.available(state)
          ? [' ', el('a', {href: address('notes')}, 'Open the notes')] : null));
    }
    if (s.datasets) parts.push(el('ul', {class: 'datasets'}, s.datasets.map(d => aboutDataset(s, d, fact, searchable))));
    if (s.moreDatasets) parts.push(el('p', {class: 'soft'}, 'and ' + plural(s.moreDatasets, 'dataset') + ' more'));
    return parts;
  }

  function datasetsText(s) {
    if (!s.datasets) return ['No dataset is in this folder. ', el('code', {}, 'knowhow datasets create --datasets DIR ID FOLDER'), ' makes one.'];
    const failed = s.datasets.filter(d => d.state === 'error').length;
    return plural(s.datasets.length + (s.moreDatasets || 0), 'dataset') + (failed ? ', ' + number(failed) + ' cannot be searched' : '') +
      '. A change on the disk is seen within seconds.';
  }

  // aboutDataset returns what is known of a dataset of a source.
  function aboutDataset(s, d, fact, searchable) {
    const state = {ready: ['ready', 'good'], loading: ['loading', 'busy']}[d.state] || ['cannot be searched', 'bad'];
    const name = d.name || d.id, known = (title, value) => value ? fact(title, el('bdi', {}, value)) : null;
    return el('li', {}, el('div', {class: 'head'}, el('h3', {dir: 'auto'}, name), name !== d.id && el('code', {}, d.id),
      el('span', {class: 'pill ' + state[1]}, state[0]),
      searchable && d.state === 'ready' ? el('a', {href: address('search', {q: '*', in: s.label, set: d.id}), class: 'push'},
        'Search', el('span', {class: 'unseen'}, ' in the dataset ' + name)) : null),
    d.description && d.description !== name ? el('p', {dir: 'auto'}, d.description) : null,
    d.failure ? el('p', {class: 'error', dir: 'auto'}, sentence(d.failure)) : null,
    (d.warnings || []).map(w => el('p', {class: 'soft', dir: 'auto'}, sentence(w))),
    el('dl', {class: 'facts'},
      d.state === 'ready' && fact('Texts', number(d.documents)),
      d.state === 'ready' && fact('Vectors', d.vectors ? number(d.vectors) + ' of ' + plural(d.dimensions, 'dimension') : 'none: searched by words'),
      known('Index', [d.index, d.metric].filter(Boolean).join(', ')), known('Model', d.vectors && d.model),
      known('Version', d.version), known('License', d.license), d.bytes ? fact('Size', bytes(d.bytes)) : null));
  }

  // newLeftOut returns the list of what is left out of a source.
  function newLeftOut(label) {
    const input = el('input', {type: 'search', autocomplete: 'off', maxlength: 500, placeholder: 'A part of a path, or a reason',
      'aria-label': 'Search in what is left out of ' + label});
    const count = el('p', {class: 'soft', role: 'status'}), rows = el('tbody'), pages = el('div', {class: 'row'});
    const table = scroller('Left out of ' + label, el('table', {}, el('caption', {class: 'unseen'}, 'Left out of ' + label),
      el('thead', {}, el('tr', {}, ['Path', 'Reason', 'Details'].map(h => el('th', {scope: 'col'}, h)))), rows));
    const node = el('div', {class: 'left-out', hidden: true}, input, count, table, pages);
    const typed = debounce(() => { if (ui) go('sources', {source: label, q: input.value.trim()}, true); }, 200);
    input.addEventListener('input', typed);
    const shown = async (parameters, signal) => {
      const start = Math.max(0, Number(parameters.start) || 0);
      if (document.activeElement !== input) input.value = parameters.q || '';
      let page;
      try {
        page = await api.get('/console/left-out?' + new URLSearchParams({source: label, q: parameters.q || '', start}), {signal});
      } catch (e) {
        if (e.status !== 404) throw e;
        page = {paths: [], total: 0}; // the source is gone
      }
      const to = start + page.paths.length;
      count.textContent = page.total === 0 ? 'Nothing is left out' + (parameters.q ? ' that contains “' + parameters.q + '”.' : '.')
        : number(start + 1) + ' to ' + number(to) + ' of ' + number(page.total);
      table.hidden = page.paths.length === 0;
      rows.replaceChildren(...page.paths.map(p => el('tr', {}, el('td', {dir: 'auto', class: 'path'}, visible(p.path)), el('td', {}, p.reason),
        el('td', {dir: 'auto'}, sentence(p.message || meanings[p.reason] || '')))));
      const link = (name, at) => el('a', {class: 'button', href: address('sources', {source: label, q: parameters.q, start: at})}, name);
      setChildren(pages, start > 0 && link('Previous', Math.max(0, start - pageOf)), to < page.total && link('Next', to));
    };
    return {node, show: shown};
  }

  return {name: 'sources', title: 'Sources', show, hide};
})();

// setChildren replaces what is in an element by children as in el.
function setChildren(parent, ...children) {
  parent.replaceChildren();
  return append(parent, children);
}

// scroller returns an element in which a wide table scrolls, also with the keyboard.
const scroller = (name, table) => el('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': name}, table);

// sentence returns a message of the server as a sentence.
function sentence(text) {
  text = String(text).trim();
  return text && (text.startsWith('knowhow') ? text : text[0].toUpperCase() + text.slice(1)) + (/[.!?…]$/.test(text) ? '' : '.');
}
