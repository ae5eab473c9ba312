// The knowledge base: notes and files that people and agents have added, their jobs, and
// for callers who may write, adding, changing, moving and deleting them.
const NOTES = (() => {
  const base = '/kb/api/v1', pageOf = 50;
  const shownText = 100000;                       // characters of a text that are shown at once
  const edited = {characters: 500000, line: 20000, marks: 500}; // at most, in a text that is edited here
  const uploads = [];           // they continue while another view is shown
  const notes = new Map();      // titles of notes, by the ID of the job that adds them
  const titles = new Map();     // those of the list, by the ID of the document
  const watched = new Map();    // jobs of this tab that run, with what to do after them
  let ui = null, timer = 0;
  let flush = () => {};         // keeps the draft that is being written at once

  const tagOf = name => 'collection:' + name;
  const collectionOf = d => (d.tags.find(t => t.startsWith('collection:')) || 'collection:documents').slice(11);
  const tagsOf = d => d.tags.filter(t => !t.startsWith('collection:'));
  // The list of collections is empty if those that the user may write to may not be read.
  const writes = () => Boolean(state && state.user && state.user.write);
  const mayWrite = name => writes() && (state.user.write === true || state.user.write.includes(name));

  // Unsaved texts, by the ID of the note or "new". They stay in the tab until they are
  // saved or discarded.
  const drafts = {
    key: id => 'draft ' + id,
    get: id => { try { return JSON.parse(sessionStorage.getItem(drafts.key(id))); } catch { return null; } },
    kept: {}, // those that the storage has no room for
    set: (id, draft) => {
      try { sessionStorage.setItem(drafts.key(id), JSON.stringify(draft)); delete drafts.kept[id]; }
      catch { sessionStorage.removeItem(drafts.key(id)); drafts.kept[id] = draft; }
    },
    find: id => drafts.kept[id] || drafts.get(id),
    drop: id => { sessionStorage.removeItem(drafts.key(id)); delete drafts.kept[id]; },
  };

  // unsaved reports whether something is lost with the page, or with all that the tab
  // keeps: a draft, or a file that is not sent.
  function unsaved(withTab) {
    flush();
    return Object.keys(drafts.kept).length > 0 || withTab && Object.keys(sessionStorage).some(k => k.startsWith('draft ')) ||
      uploads.some(u => u.state === 'waiting' || u.state === 'sending' || u.state === 'failed' && !u.final);
  }

  async function show(root, parameters, signal) {
    if (!ui) {
      ui = {root, jobs: el('section', {'aria-label': 'Jobs and uploads', class: 'jobs'}), main: el('div')};
      root.replaceChildren(el('div', {class: 'page notes'}, ui.main));
      ui.clock = setInterval(() => { for (const t of root.querySelectorAll('time')) t.textContent = age(t.dateTime); }, 10000);
      for (const [name, f] of handlers) addEventListener(name, f);
    }
    ui.parameters = parameters;
    ui.signal = signal;
    drawJobs();
    loadJobs().catch(e => fail(e, signal));
    if (parameters.edit) return showEditor(parameters.edit, parameters, signal);
    if (parameters.id) return showDocument(parameters.id, parameters, signal);
    return showList(parameters, signal);
  }

  function hide() {
    if (!ui) return;
    for (const [name, f] of handlers) removeEventListener(name, f);
    flush();
    ui.root.classList.remove('dropping');
    clearTimeout(timer);
    clearInterval(ui.clock);
    ui = null;
  }

  // explain returns what an error means and what to do.
  function explain(e) {
    const after = e.retryAfter > 0 ? 'in ' + plural(Math.ceil(e.retryAfter), 'second') : 'a little later';
    switch (e.status) {
      case 0: return sentence(e.message) + ' Nothing is lost: try again when it answers.';
      case 403: case 404: case 409: case 415: case 422: return sentence(e.message);
      case 413: return sentence(e.message) + ' A file has at most ' + bytes(state.maxUpload || 100 * 2 ** 20) + ', and a note 4 MB.';
      case 429: case 503: case 504: return sentence(e.message) + ' Try again ' + after + '.';
    }
    return sentence(e.message);
  }

  // problem shows an error in a place, and announces it.
  function problem(where, e) {
    if (e.name === 'AbortError') return;
    if (e instanceof Unauthorized) return askToken(e.message);
    where.className = 'error notice';
    where.setAttribute('role', 'alert');
    where.replaceChildren(explain(e));
    where.scrollIntoView({block: 'nearest'});
  }

  // List

  async function showList(parameters, signal) {
    const {collection, tag} = parameters, start = Math.max(0, Number(parameters.start) || 0);
    const query = new URLSearchParams({limit: pageOf, offset: start, added: 'true'});
    if (collection) query.set('collection', collection);
    if (tag) query.set('tag', tag);
    const [list, names] = await Promise.all([api.get(base + '/documents?' + query, {signal}), api.get(base + '/collections', {signal})]);
    if (start > 0 && list.documents.length === 0 && list.total > 0) return go('notes', {collection, tag}, true);
    const to = start + list.documents.length;
    for (const d of list.documents) titles.set(d.document_id, d.title);
    const at = values => address('notes', Object.assign({collection, tag}, values));
    const link = (name, current, values) => el('li', {}, el('a', {href: at(values), 'aria-current': current ? 'true' : null, dir: 'auto'}, name));
    const filter = el('input', {type: 'search', value: tag || '', maxlength: 200, placeholder: 'Tag', 'aria-label': 'Only documents with the tag'});
    const rows = list.documents.map(d => el('tr', {}, el('td', {class: 'title', dir: 'auto'}, el('a', {href: address('notes', {id: d.document_id})}, d.title || 'Untitled'),
      d.source_path && d.source_path !== d.title ? el('div', {class: 'soft path'}, visible(d.source_path)) : null),
    el('td', {}, kindOf(d.type)), el('td', {}, el('a', {href: at({collection: collectionOf(d), start: ''})}, collectionOf(d))),
    el('td', {class: 'tags'}, tagsOf(d).map(t => tagLink(t, collection))), el('td', {}, when(d.updated_at))));
    const title = el('h1', {tabindex: -1}, 'Notes');
    const focused = ui.jobs.contains(document.activeElement);
    setChildren(ui.main, el('div', {class: 'head'}, title, writes() ? el('div', {class: 'row push'},
      el('a', {class: 'button primary', href: address('notes', {edit: 'new', collection})}, 'New note'), fileButton(collection)) : null),
    writes() ? el('p', {class: 'soft only-wide'}, 'Files can also be dropped anywhere on this page.') : null,
    ui.jobs, newDraft(collection),
    el('div', {class: 'columns'},
      el('nav', {'aria-label': 'Collections'}, el('h2', {}, 'Collections'), el('ul', {class: 'choices'},
        link('All', !collection, {collection: '', start: ''}), names.collections.map(c => link(c, c === collection, {collection: c, start: ''}))),
      el('form', {class: 'row', onsubmit: e => { e.preventDefault(); go('notes', {collection, tag: filter.value.trim()}); }}, filter,
        el('button', {}, 'Filter'))),
      el('div', {}, tag ? el('p', {}, 'With the tag ', el('strong', {dir: 'auto'}, tag), ' ', el('a', {href: at({tag: '', start: ''})}, 'Show all')) : null,
        el('p', {class: 'soft', role: 'status'}, list.total ? number(start + 1) + ' to ' + number(to) + ' of ' + plural(list.total, 'document') + ', newest first'
          : collection || tag ? 'Nothing has this collection and this tag.' : writes() ? 'Nothing has been added yet. Write a note, or upload a file.'
            : 'Nothing has been added yet that you may read.'),
        rows.length ? scroller('Notes and files', el('table', {class: 'documents'}, el('caption', {class: 'unseen'}, 'Notes and files'),
          el('thead', {}, el('tr', {}, ['Title', 'Kind', 'Collection', 'Tags', 'Changed'].map(h => el('th', {scope: 'col'}, h)))),
          el('tbody', {}, rows))) : null,
        el('div', {class: 'row'}, start > 0 ? el('a', {class: 'button', href: at({start: Math.max(0, start - pageOf) || ''})}, 'Newer') : null,
          to < list.total ? el('a', {class: 'button', href: at({start: to})}, 'Older') : null))));
    drawJobs();
    if (focused) ui.jobs.querySelector('summary')?.focus();
  }

  // kindOf returns the name of a type of documents, as in the search.
  const kindOf = type => ({note: 'Note', markdown: types.txt, text: types.txt, html: 'Web page', csv: 'CSV'})[type] || types[type] || type.toUpperCase();
  const when = time => time ? el('time', {datetime: time, title: new Date(time).toLocaleString()}, age(time)) : '';
  const tagLink = (t, collection) => el('a', {class: 'pill', href: address('notes', {tag: t, collection}), dir: 'auto'}, t);

  function newDraft() {
    const d = writes() && drafts.find('new');
    return d && d.text && d.text.trim() ? el('p', {class: 'notice'}, 'There is a note that is not saved. ', el('a', {href: address('notes', {edit: 'new'})}, 'Go on with it')) : null;
  }

  // A document

  async function showDocument(id, parameters, signal) {
    const d = await find(id, signal);
    if (!d) return;
    const markdown = d.type === 'note' || d.type === 'markdown';
    let text = (d.chunks || []).map(c => c.text).join('');
    const heading = markdown && /^# +(.*?)[ #]*\r?\n/.exec(text);
    const repeated = heading && heading[1] === d.title;
    if (repeated) text = text.slice(heading[0].length); // it is above the text
    const body = el('div', {class: 'document', dir: 'auto'}), rest = el('p'), trouble = el('div');
    if (!text.trim()) body.append(el('p', {class: 'soft'}, 'There is no text in it. A search finds it by its title only.'));
    let shown = 0;
    const more = () => {
      const to = partEnd(text, shown), part = withoutLongMarks(text.slice(shown, to));
      body.append(markdown ? renderMarkdown(part, {link: () => null, level: repeated ? 1 : 2}) : renderPlain(part));
      shown = to;
      rest.replaceChildren(...to < text.length ? [el('button', {type: 'button', onclick: more}, 'Show more of the text'), ' ',
        el('span', {class: 'soft'}, number(to) + ' of ' + plural(text.length, 'character') + ' are shown')] : []);
    };
    if (text.trim()) more();
    const collection = collectionOf(d), title = el('h1', {dir: 'auto', tabindex: -1}, d.title || 'Untitled');
    setChildren(ui.main, back(collection), el('div', {class: 'head'}, title, mayWrite(collection) ? el('div', {class: 'row push'},
      el('a', {class: 'button primary', href: address('notes', {edit: d.document_id})}, d.type === 'note' ? 'Edit' : 'Tags and collection'),
      el('button', {type: 'button', class: 'danger', onclick: () => askDelete(d, trouble)}, 'Delete')) : null),
    el('p', {class: 'soft'}, kindOf(d.type), ' in ', el('a', {href: address('notes', {collection})}, collection), ' · changed ', when(d.updated_at),
      d.created_at && d.created_at !== d.updated_at ? [' · added ', when(d.created_at)] : null,
      d.source_path ? [' · ', el('span', {class: 'path', dir: 'auto'}, visible(d.source_path))] : null),
    tagsOf(d).length ? el('p', {class: 'tags'}, tagsOf(d).map(t => tagLink(t))) : null,
    drafts.find(String(d.document_id)) ? el('p', {class: 'notice'}, 'This note has changes that are not saved. ',
      el('a', {href: address('notes', {edit: d.document_id})}, 'Go on with them')) : null,
    ui.jobs, trouble, body, rest);
    document.title = (d.title || 'Untitled') + ' – knowhow';
    title.focus({preventScroll: true});
    scrollTo(0, 0);
  }

  // partEnd returns where the part of a text ends that begins at a position: at the end of
  // a paragraph, of a line or of a word, if there is one.
  function partEnd(text, from) {
    const to = from + shownText, least = from + shownText / 2;
    if (to >= text.length) return text.length;
    for (const mark of ['\n\n', '\n', ' ']) {
      const at = text.lastIndexOf(mark, to - mark.length);
      if (at >= least) return at + mark.length;
    }
    return /[\udc00-\udfff]/.test(text[to]) ? to - 1 : to;
  }

  // find returns a document. If there is none, it says so and returns null.
  async function find(id, signal) {
    try {
      return await api.get(base + '/documents/' + encodeURIComponent(id), {signal});
    } catch (e) {
      if (e.status !== 404 && e.status !== 400) throw e;
      const draft = drafts.find(id);
      setChildren(ui.main, back(), el('h1', {tabindex: -1}, 'Not found'), el('p', {class: 'error'}, sentence(e.message)),
        draft && draft.text && [el('p', {}, 'Your changes to it are not saved:'), el('div', {class: 'document'}, renderPlain(withoutLongMarks(draft.text.slice(0, shownText)))),
          el('div', {class: 'row'}, saveAsNew(id, draft), copyButton(draft.text, 'Copy the text'))]);
      return null;
    }
  }

  const back = collection => el('p', {}, el('a', {href: address('notes', {collection})}, '← ' + (collection || 'Notes')));

  // confirmation asks a question in a dialog and returns whether it was answered with
  // the button.
  function confirmation(title, text, name) {
    return new Promise(done => {
      const dialog = el('dialog', {'aria-labelledby': 'confirm-title', onclose: () => { dialog.remove(); done(dialog.returnValue === 'yes'); }},
        el('form', {method: 'dialog'}, el('h2', {id: 'confirm-title'}, title), el('p', {dir: 'auto'}, text),
          el('div', {class: 'row end'}, el('button', {value: 'no', autofocus: true}, 'Cancel'), el('button', {value: 'yes', class: 'danger'}, name))));
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  async function askDelete(d, trouble) {
    if (!await confirmation('Delete this document?', 'Agents no longer find “' + (d.title || 'Untitled') + '”. This cannot be undone.', 'Delete')) return;
    try {
      await api.send('DELETE', base + '/documents/' + d.document_id);
      drafts.drop(String(d.document_id));
      announce('Deleted');
      go('notes', {collection: collectionOf(d)});
    } catch (e) { problem(trouble, e); }
  }

  // Editor

  async function showEditor(id, parameters, signal) {
    const isNew = id === 'new';
    let old = null;
    if (!isNew && !(old = await find(id, signal))) return;
    if (!writes()) {
      setChildren(ui.main, back(), el('p', {class: 'error'}, 'You may not change the knowledge base. An administrator gives the right to write.'));
      return;
    }
    const isText = isNew || old.type === 'note';
    const stored = isNew ? {title: '', text: '', tags: '', collection: parameters.collection || ''} : {title: old.title,
      text: isText ? (old.chunks || []).map(c => c.text).join('') : '', tags: tagsOf(old).join('\n'), collection: collectionOf(old), updated: old.updated_at};
    const draft = drafts.find(id) || Object.assign({}, stored);
    if (!draft.collection) draft.collection = mayWrite('documents') ? 'documents' : Array.isArray(state.user.write) ? state.user.write[0] || '' : 'documents';
    const names = await api.get(base + '/collections', {signal}).then(c => c.collections, () => []);

    const changed = () => ['title', 'text', 'tags', 'collection'].some(k => draft[k] !== stored[k] && !(isNew && k === 'collection'));
    const store = () => { if (changed()) drafts.set(id, draft); else drafts.drop(id); }, keep = debounce(store, 250);
    flush = () => { keep.cancel(); store(); };
    signal.addEventListener('abort', () => { flush(); flush = () => {}; }, {once: true});
    const preview = el('div', {class: 'preview document', dir: 'auto', 'aria-label': 'Preview', role: 'region', tabindex: 0});
    const render = debounce(() => { if (!preview.hidden) preview.replaceChildren(renderMarkdown(withoutLongMarks(draft.text.slice(0, shownText)), {link: () => null})); }, 200);
    const note = (name, value) => { draft[name] = value; keep(); if (name === 'text') render(); };
    const tooLong = draft.text.length > edited.characters || longestLine(draft.text) > edited.line || new RegExp('\\p{M}{' + edited.marks + '}', 'u').test(draft.text);
    const text = tooLong ? textByFile() : el('textarea', {id: 'note-text', rows: 18, value: draft.text, dir: 'auto', spellcheck: 'true', oninput: e => note('text', e.target.value)});
    // textByFile returns what changes a text that would make the browser stop for long.
    function textByFile() {
      const chosen = el('p', {class: 'soft', role: 'status'});
      const download = () => {
        const url = URL.createObjectURL(new Blob([draft.text], {type: 'text/markdown'}));
        el('a', {href: url, download: 'note-' + id + '.md'}).click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
      };
      return el('div', {class: 'notice'}, el('p', {}, 'The text of ' + plural(draft.text.length, 'character') + ', or a line of it, is too long to be edited in a browser. ' +
        'Download it, change it in an editor, and choose the changed file.'),
      el('div', {class: 'row'}, el('button', {type: 'button', onclick: download}, 'Download the text'),
        el('input', {id: 'note-text', type: 'file', accept: '.md,.txt,text/*', onchange: async e => {
          const file = e.target.files[0];
          if (!file) return;
          if (file.size > 4 * 2 ** 20) return void (chosen.textContent = 'The file has ' + bytes(file.size) + ', and a note has at most 4 MB.');
          note('text', await file.text());
          chosen.textContent = file.name + ' replaces the text when you save.';
        }})), chosen);
    }
    const title = el('input', {id: 'note-title', value: draft.title, maxlength: 1000, dir: 'auto', placeholder: 'The first heading or line', oninput: e => note('title', e.target.value)});
    const collection = el('input', {id: 'note-collection', value: draft.collection, maxlength: 100, list: 'note-collections', pattern: '[A-Za-z0-9_.\\-]+', required: true,
      title: 'Letters, digits, _, . and -', oninput: e => note('collection', e.target.value)});
    const tags = el('textarea', {id: 'note-tags', rows: 2, value: draft.tags, dir: 'auto', oninput: e => note('tags', e.target.value)});
    const known = new Set([...names.filter(mayWrite), ...Array.isArray(state.user.write) ? state.user.write : ['documents']]);
    const toggle = el('button', {type: 'button', class: 'small', 'aria-pressed': 'false', onclick: () => {
      preview.hidden = !preview.hidden;
      toggle.setAttribute('aria-pressed', String(!preview.hidden));
      render();
    }}, 'Preview');
    preview.hidden = !matchMedia('(min-width: 60rem)').matches;
    toggle.setAttribute('aria-pressed', String(!preview.hidden));
    const trouble = el('div'), save = el('button', {class: 'primary'}, 'Save');
    const discard = () => {
      keep.cancel();
      flush = () => {};
      drafts.drop(id);
    };
    const leave = () => go('notes', isNew ? {collection: parameters.collection} : {id});
    const submit = async over => {
      if (isText && !draft.text.trim()) {
        problem(trouble, new Failure('Write a text first.', 400));
        return text.focus();
      }
      keep.cancel();
      drafts.set(id, draft); // until the server has it
      save.disabled = true;
      save.textContent = 'Saving…';
      trouble.replaceChildren();
      trouble.className = '';
      const mine = ui && ui.parameters === parameters;
      try {
        if (isNew) await addNote(draft);
        else if (!await changeDocument(id, stored, draft, isText, over)) return conflict();
        drafts.drop(id);
        flush = () => {};
        announce('Saved');
        if (mine && ui && ui.parameters === parameters) {
          if (isNew) go('notes', {collection: draft.collection});
          else go('notes', {id});
        }
      } catch (e) {
        if (e.status === 404 && !isNew) return deleted();
        problem(trouble, e);
        if (isText) append(trouble, ' The text is kept in this tab.');
      } finally {
        save.disabled = false;
        save.textContent = 'Save';
      }
    };
    const choose = (...choices) => {
      trouble.className = 'error notice';
      trouble.setAttribute('role', 'alert');
      setChildren(trouble, choices);
      trouble.scrollIntoView({block: 'nearest'});
    };
    const discardButton = to => el('button', {type: 'button', onclick: () => { discard(); to(); }}, isText ? 'Discard mine' : 'Back to the list');
    const deleted = () => choose(el('p', {}, 'The document was deleted after you opened it. ', isText ? 'Your text is kept in this tab.' : ''),
      el('div', {class: 'row'}, isText ? saveAsNew(id, draft, () => { keep.cancel(); flush = () => {}; }) : null, isText ? copyButton(() => draft.text, 'Copy the text') : null,
        discardButton(() => go('notes', {collection: stored.collection}))));
    const conflict = () => choose(el('p', {}, 'The document was changed by someone else after you opened it. ', el('a', {href: address('notes', {id}), target: '_blank', rel: 'noopener'},
        'Look at the other version'), ', then choose.'), el('div', {class: 'row'},
        el('button', {type: 'button', class: 'danger', onclick: () => submit(true)}, 'Replace it with mine'),
        el('button', {type: 'button', onclick: () => { discard(); leave(); }}, 'Discard mine')));
    const field = (input, name, hint) => el('div', {class: 'field'}, el('label', {for: input.id}, name), input, hint ? el('p', {class: 'soft'}, hint) : null);
    const heading = el('h1', {tabindex: -1}, isNew ? 'New note' : isText ? 'Edit the note' : 'Tags and collection');
    setChildren(ui.main, back(isNew ? '' : stored.collection), heading, ui.jobs, changed() ? el('p', {class: 'notice'}, 'These changes are not saved yet. Save stores them, Cancel discards them.') : '',
      el('form', {class: 'editor', onsubmit: e => { e.preventDefault(); submit(false); }},
        isText ? [field(title, 'Title'), el('div', {class: 'field'}, el('div', {class: 'head'}, el('label', {for: 'note-text'}, 'Text in Markdown'), toggle),
          el('div', {class: 'split'}, text, preview))] : el('p', {dir: 'auto'}, old.title),
        el('div', {class: 'pair'}, field(collection, 'Collection', Array.isArray(state.user.write) ? 'You may write to ' + (state.user.write.join(', ') || 'a collection that you may not read') + '.' : 'An existing one, or a new name.'),
          field(tags, 'Tags', 'One in a line.')),
        el('datalist', {id: 'note-collections'}, [...known].map(c => el('option', {value: c}))),
        trouble, el('div', {class: 'row'}, save, el('button', {type: 'button', onclick: async () => {
          if (changed() && !await confirmation('Discard the changes?', 'The text has not been saved.', 'Discard')) return;
          discard();
          leave();
        }}, 'Cancel'))));
    render();
    if (isText) text.focus(); else heading.focus();
  }

  // saveAsNew returns a button that saves the draft of a document that is gone as a new note.
  function saveAsNew(id, draft, then) {
    if (!writes()) return null;
    const trouble = el('div'), button = el('button', {type: 'button', class: 'primary', onclick: async () => {
      button.disabled = true;
      try {
        await addNote(draft);
        if (then) then();
        drafts.drop(id);
        announce('Saved');
        go('notes', {collection: draft.collection});
      } catch (e) {
        problem(trouble, e);
        button.disabled = false;
      }
    }}, 'Save as a new note');
    return [button, trouble];
  }

  const linesOf = text => [...new Set(text.split('\n').map(t => t.trim()).filter(Boolean))];

  async function addNote(draft) {
    const note = {type: 'note', text: draft.text, tags: [tagOf(draft.collection.trim()), ...linesOf(draft.tags)]};
    if (draft.title.trim()) note.title = draft.title.trim();
    const {job_id: job} = await send('POST', base + '/jobs', note);
    notes.set(job, draft.title.trim() || draft.text.trim().split('\n')[0].replace(/^#+ /, '').slice(0, 100));
    watch(job, 'The note');
  }

  // changeDocument changes a document from what was stored to what a draft has. It returns
  // false if the document has changed meanwhile.
  async function changeDocument(id, stored, draft, isText, over) {
    const path = base + '/documents/' + encodeURIComponent(id), now = await api.get(path);
    if (!over && now.updated_at !== stored.updated) return false;
    const change = {};
    if (isText && (over || draft.text !== stored.text)) change.text = draft.text;
    if (isText && draft.title.trim() !== now.title.trim() && (over || draft.title !== stored.title)) change.title = draft.title.trim();
    if (Object.keys(change).length) stored.updated = (await send('PATCH', base + '/notes/' + encodeURIComponent(id), change)).updated_at;
    Object.assign(stored, isText ? {text: draft.text, title: draft.title} : {});
    const want = linesOf(draft.tags), have = tagsOf(now), added = want.filter(t => !have.includes(t));
    if (draft.collection.trim() !== collectionOf(now)) added.push(tagOf(draft.collection.trim()));
    for (const t of have.filter(t => !want.includes(t))) await send('DELETE', path + '/tags/' + encodeURIComponent(t));
    if (added.length) await send('POST', path + '/tags', {tags: added});
    return true;
  }

  const send = (method, path, body) => api.send(method, path, body);

  // Uploads: one after another, so that the state of each is clear.

  function fileButton(collection) {
    const input = el('input', {type: 'file', multiple: true, class: 'unseen', tabindex: -1, 'aria-hidden': 'true', onchange: () => {
      add([...input.files], collection);
      input.value = '';
    }});
    return [input, el('button', {type: 'button', onclick: () => input.click()}, 'Upload files')];
  }

  const hasFiles = e => e.dataTransfer && [...e.dataTransfer.types].includes('Files');

  function dragged(e) {
    if (!hasFiles(e)) return;
    e.preventDefault(); // a browser opens a file that is dropped elsewhere, and leaves the page
    e.dataTransfer.dropEffect = writes() ? 'copy' : 'none';
    ui.root.classList.toggle('dropping', writes());
  }

  function left(e) { if (!e.relatedTarget) ui.root.classList.remove('dropping'); }

  function dropped(e) {
    if (!hasFiles(e)) return;
    e.preventDefault();
    ui.root.classList.remove('dropping');
    if (!writes()) return;
    const items = [...e.dataTransfer.items || []], folders = items.filter(i => i.webkitGetAsEntry && i.webkitGetAsEntry()?.isDirectory).length;
    add([...e.dataTransfer.files].filter((f, i) => !(items[i] && items[i].webkitGetAsEntry && items[i].webkitGetAsEntry()?.isDirectory)), ui.parameters.collection);
    if (folders) say('Folders cannot be uploaded. The command knowhow serve DIR indexes a folder.', true);
  }

  function add(files, collection) {
    const target = collection && mayWrite(collection) ? collection : mayWrite('documents') ? 'documents' : Array.isArray(state.user.write) ? state.user.write[0] || '' : 'documents';
    for (const file of files) {
      const u = {file, name: file.name, collection: target, state: 'waiting', sent: 0, added: new Date().toISOString()};
      if (state.maxUpload && file.size > state.maxUpload) Object.assign(u, {state: 'failed', error: 'The file has ' + bytes(file.size) + ', at most ' + bytes(state.maxUpload) + ' are accepted: split it.', final: true});
      uploads.unshift(u);
    }
    announce(plural(files.length, 'file') + ' to upload');
    next();
  }

  const handlers = [['dragover', dragged], ['dragleave', left], ['drop', dropped], ['pagehide', () => flush()]];

  let uploading = false;
  async function next() {
    const u = uploads.findLast(u => u.state === 'waiting');
    drawJobs();
    if (uploading || !u) return;
    uploading = true;
    u.state = 'sending';
    drawJobs();
    try {
      const {job_id: job} = await upload(u);
      u.state = 'stored';
      u.job = job;
      watch(job, u.name, j => {
        Object.assign(u, j.status === 'done' ? {state: 'done', document: j.document_id} : {state: 'failed', error: reasonOf(j), final: true});
        drawJobs();
      });
    } catch (e) {
      if (e instanceof Unauthorized) { u.state = 'failed'; u.error = 'A token is required.'; askToken(e.message); }
      else Object.assign(u, {state: 'failed', error: e.name === 'AbortError' ? 'Cancelled.' : explain(e)});
    }
    uploading = false;
    next();
  }

  // upload sends a file and returns the answer. fetch does not tell how much is sent.
  async function upload(u) {
    const token = await SIGN_ON.token();
    return new Promise((done, failed) => {
      const x = u.request = new XMLHttpRequest(), form = new FormData();
      form.append('tags', tagOf(u.collection));
      form.append('file', u.file, u.name);
      x.open('POST', base + '/jobs');
      x.setRequestHeader('Accept', 'application/json');
      if (token) x.setRequestHeader('Authorization', 'Bearer ' + token);
      x.upload.onprogress = e => { if (e.lengthComputable) { u.sent = e.loaded / e.total; drawProgress(u); } };
      x.onabort = () => failed(new DOMException('cancelled', 'AbortError'));
      x.onerror = () => failed(new Failure('The upload was interrupted: knowhow does not answer, or the file has changed or cannot be read.', 0));
      x.onload = () => {
        let answer = null;
        try { answer = JSON.parse(x.responseText); } catch { /* of a proxy */ }
        if (x.status === 401) return failed(SIGN_ON.refused(x.getResponseHeader('WWW-Authenticate'), token));
        if (x.status < 300 && answer && answer.job_id) return done(answer);
        const e = new Failure(answer && answer.error && answer.error.message || 'The server answered with status ' + x.status + '.', x.status);
        e.retryAfter = Number(x.getResponseHeader('Retry-After')) || 0;
        failed(e);
      };
      x.send(form);
    });
  }

  function drawProgress(u) {
    if (!u.bar || !u.bar.isConnected) return;
    u.bar.value = u.sent;
    u.text.textContent = Math.round(u.sent * 100) + ' %';
  }

  // Jobs

  let jobs = [];

  let loaded = false; // whether the jobs were read before

  // watch looks at a job until it has ended.
  function watch(id, name, then) {
    watched.set(id, {name, then});
    clearTimeout(timer);
    timer = setTimeout(look, 300);
  }

  async function look() {
    try {
      await loadJobs();
    } catch (e) {
      if (e instanceof Unauthorized) return askToken(e.message);
      timer = setTimeout(look, 3000);
    }
  }

  async function loadJobs() {
    const before = jobs, first = !loaded;
    loaded = true;
    jobs = (await api.get(base + '/jobs?limit=20')).jobs.filter(j => !removed().includes(j.job_id));
    for (const j of jobs) {
      const w = watched.get(j.job_id);
      if (!w || j.status !== 'done' && j.status !== 'failed') continue;
      watched.delete(j.job_id);
      announce(j.status === 'done' ? w.name + ' is stored' : w.name + ' could not be stored: ' + reasonOf(j));
      if (w.then) w.then(j);
    }
    drawJobs();
    const ended = before.some(b => active(b) && jobs.some(j => j.job_id === b.job_id && !active(j)));
    const fresh = jobs.some(j => j.status === 'done' && !before.some(b => b.job_id === j.job_id)) && !first;
    if (ui && (ended || fresh) && !ui.parameters.edit && !ui.parameters.id) showList(ui.parameters, ui.signal).catch(e => fail(e, ui && ui.signal));
    clearTimeout(timer);
    if (watched.size || ui && jobs.some(active)) timer = setTimeout(look, document.hidden ? 5000 : 700);
  }

  // Failed jobs that are removed from the list of this tab. The server keeps all for some time.
  const removed = () => { try { return JSON.parse(sessionStorage.getItem('removed jobs')) || []; } catch { return []; } };

  function removeJob(id) {
    sessionStorage.setItem('removed jobs', JSON.stringify(removed().concat(id).slice(-100)));
    jobs = jobs.filter(j => j.job_id !== id);
    drawJobs();
  }

  const nameOf = j => j.filename || notes.get(j.job_id) || titles.get(j.document_id) || 'A note';
  const reasonOf = j => j.error.replace(/^extracting text: /, '');

  const active = j => j.status === 'queued' || j.status === 'running';
  const states = {queued: 'waiting', running: 'being read', done: 'done', failed: 'failed', waiting: 'waiting', sending: 'sending', stored: 'being read'};

  function drawJobs() {
    if (!ui) return;
    const mine = new Set(uploads.map(u => u.job).filter(Boolean)), open = ui.jobs.querySelector('details')?.open;
    const rows = uploads.map(uploadRow).concat(jobs.filter(j => !mine.has(j.job_id)).map(j => el('tr', {},
      el('td', {dir: 'auto'}, j.document_id ? el('a', {href: address('notes', {id: j.document_id})}, nameOf(j)) : nameOf(j)),
      el('td', {class: j.status === 'failed' ? 'error' : ''}, active(j) ? [el('progress', {'aria-label': states[j.status]}), ' '] : null, states[j.status] || j.status,
        j.error ? [': ' + sentence(reasonOf(j)), ' ', el('button', {type: 'button', class: 'small', onclick: () => removeJob(j.job_id)}, 'Remove')] : null), el('td', {}, when(j.created_at)))));
    const working = uploads.filter(u => u.state !== 'done' && u.state !== 'failed').length + jobs.filter(j => active(j) && !mine.has(j.job_id)).length;
    const failed = uploads.filter(u => u.state === 'failed').length + jobs.filter(j => j.status === 'failed' && !mine.has(j.job_id)).length;
    const text = [working ? number(working) + ' in progress' : '', failed ? number(failed) + ' failed' : ''].filter(Boolean).join(', ');
    const elsewhere = ui.parameters.id || ui.parameters.edit;
    ui.jobs.hidden = rows.length === 0 || Boolean(elsewhere) && working === 0;
    const focused = ui.jobs.contains(document.activeElement);
    setChildren(ui.jobs, rows.length > 0 && el('details', {class: 'card', open: open === undefined ? working > 0 || uploads.some(u => u.state === 'failed') : open || working > 0 && !ui.working},
      el('summary', {}, 'Jobs' + (text ? ': ' + text : '')),
      scroller('Jobs', el('table', {}, el('caption', {class: 'unseen'}, 'Jobs'),
        el('thead', {}, el('tr', {}, ['Document', 'State', 'Added'].map(h => el('th', {scope: 'col'}, h)))), el('tbody', {}, rows)))));
    ui.working = working;
    if (focused) ui.jobs.querySelector('summary')?.focus();
  }

  function uploadRow(u) {
    let shown = [u.state === 'done' && u.file.size === 0 ? 'done, but the file is empty: a search finds it by its name only' : states[u.state]];
    if (u.state === 'sending') {
      u.bar = el('progress', {max: 1, value: u.sent, 'aria-label': 'Sending ' + u.name});
      u.text = el('span', {}, Math.round(u.sent * 100) + ' %');
      shown = [u.bar, ' ', u.text, ' ', el('button', {type: 'button', class: 'small', onclick: () => u.request && u.request.abort()}, 'Cancel')];
    } else if (u.state === 'stored') shown = [el('progress', {'aria-label': states.stored}), ' ', states.stored];
    else if (u.state === 'failed') {
      shown = [sentence(u.error || 'failed'), ' ', u.final ? null : el('button', {type: 'button', class: 'small', onclick: () => { u.state = 'waiting'; u.sent = 0; next(); }}, 'Try again'), ' ',
        el('button', {type: 'button', class: 'small', onclick: () => { uploads.splice(uploads.indexOf(u), 1); if (u.job) removeJob(u.job); else drawJobs(); }}, 'Remove')];
    }
    return el('tr', {}, el('td', {dir: 'auto'}, u.document ? el('a', {href: address('notes', {id: u.document})}, u.name) : u.name,
      el('span', {class: 'soft'}, ' · ' + bytes(u.file.size) + ' to ' + u.collection)),
    el('td', {class: u.state === 'failed' ? 'error' : ''}, shown), el('td', {}, when(u.added)));
  }

  return {name: 'notes', title: 'Notes', available: s => Boolean(s) && (s.tools || []).includes('kb'), show, hide, unsaved, confirmation};
})();
