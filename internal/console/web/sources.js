// The sources: what is indexed, what is missing, and what is left out.

const SOURCES = {
  name: 'sources',
  title: 'Sources',

  show(root, parameters, signal) {
    const open = {}; // by label: the paths that are shown
    const draw = () => {
      const sources = state.sources.map(s => {
        const counts = of => Object.entries(of || {}).sort((a, b) => b[1] - a[1]).map(([reason, n]) => number(n) + ' ' + reason).join(', ');
        const reasons = [counts(s.leftOut) && 'Left out: ' + counts(s.leftOut), counts(s.inPart) && 'Indexed, but ' + counts(s.inPart)].filter(Boolean).join('. ');
        const facts = s.kind ? ['asked at each search'] : [plural(s.documents, 'document'), bytes(s.textBytes) + ' of text', s.indexing || s.incomplete ? '' : s.watched ? 'up to date' : 'not watched for changes'];
        const li = el('li', null, el('h2', null, s.label), el('div', {class: 'soft', dir: 'auto'}, s.path), s.description && el('div', {dir: 'auto'}, s.description),
          el('div', null, facts.filter(Boolean).join(' · ')));
        if (s.indexing) {
          const text = number(s.indexing.done) + ' of ' + plural(s.indexing.total, 'document') + ' indexed';
          li.append(el('div', null, el('progress', {max: s.indexing.total || 1, value: s.indexing.done, 'aria-label': text}), ' ' + text));
        }
        if (s.incomplete) li.append(el('div', {class: 'error'}, s.incomplete[0].toUpperCase() + s.incomplete.slice(1)));
        if (reasons) {
          li.append(el('div', null, reasons + ' ', el('button', {type: 'button', id: 'left-out-' + s.label, 'aria-expanded': String(Boolean(open[s.label])),
            onclick: () => list(s.label)}, open[s.label] ? 'Hide' : 'Show', el('span', {class: 'unseen'}, ' the files left out of ' + s.label))));
        }
        if (open[s.label]) {
          li.append(el('ul', null, open[s.label].map(p =>
            el('li', {dir: 'auto'}, p.path, el('span', {class: 'soft'}, ' – ' + p.reason + (p.message ? ': ' + p.message : ''))))));
        }
        return li;
      });
      const v = state.vectors, left = v && v.secondsLeft ? ', about ' + (v.secondsLeft < 90 ? v.secondsLeft + ' s' : Math.round(v.secondsLeft / 60) + ' min') + ' left' : '';
      const focused = document.activeElement && document.activeElement.id;
      root.replaceChildren();
      append(root, el('h1', null, 'Sources'), el('ol', {class: 'list'}, sources),
        v && v.done < v.total && el('p', {class: 'soft'}, 'Searching by meaning: ' + number(v.done) + ' of ' + plural(v.total, 'passage') + ' are ready' + left),
        sources.length === 0 && el('p', null, 'No source is served.'),
        state.endpoints.length
          ? el('p', {class: 'soft'}, 'Agents connect to ', el('code', null, location.origin + state.endpoints[0].path), '.')
          : el('p', {class: 'error'}, 'This server was started without the tools for searching. Start it with --tools search to search here.'),
        el('p', {class: 'soft'}, 'knowhow ' + state.version));
      if (/^left-out-/.test(focused) && $(focused)) $(focused).focus();
    };
    const list = label => {
      if (open[label]) { delete open[label]; return draw(); }
      api.get('/console/status?' + new URLSearchParams({'left-out': label}), {signal}).then(s => {
        const source = s.sources.find(s => s.label === label);
        open[label] = source && source.leftOutPaths || [];
        draw();
      }).catch(e => fail(e, signal));
    };
    draw();
    let drawn = JSON.stringify(state);
    const again = async () => {
      if (signal.aborted) return;
      try {
        if (!document.hidden) {
          state = await api.get('/console/status', {signal});
          if (JSON.stringify(state) !== drawn) { drawn = JSON.stringify(state); draw(); }
          if ($('message').classList.contains('error')) say('');
        }
      } catch (e) {
        fail(e, signal);
        if (e instanceof Unauthorized) return;
      }
      setTimeout(again, 5000);
    };
    setTimeout(again, 5000);
  },
};
