// Connect: how each client is connected to this server, and a test of the connection.
const CONNECT = (() => {
  let ui = null, clients = null;

  async function show(root, parameters, signal) {
    if (!ui) {
      ui = {list: el('ol', {class: 'clients'}), count: el('p', {class: 'soft', role: 'status'})};
      ui.filter = el('input', {type: 'search', autocomplete: 'off', maxlength: 100, placeholder: 'Filter', 'aria-label': 'Filter the clients',
        oninput: debounce(() => { if (ui) go('connect', {q: ui.filter.value.trim()}, true); }, 120)});
      root.replaceChildren(el('div', {class: 'page'}, el('h1', {}, 'Connect an agent'),
        el('p', {}, 'Agents reach this server at ', el('code', {}, location.origin + '/mcp'), ' ', copyButton(location.origin + '/mcp'),
          ' Choose your client for the command or the entry of its configuration.'),
        newTest(), el('div', {class: 'head'}, el('h2', {}, 'Clients'), ui.filter), ui.count, ui.list));
    }
    if (document.activeElement !== ui.filter) ui.filter.value = parameters.q || '';
    if (!clients) {
      ui.count.textContent = 'Loading…';
      clients = await api.get('/console/connect', {signal});
    }
    draw(parameters);
  }

  function hide() { ui = clients = null; }

  function draw(parameters) {
    const words = (parameters.q || '').toLowerCase().split(/\s+/).filter(Boolean);
    const found = clients.filter(c => words.every(w => (c.title + ' ' + c.client).toLowerCase().includes(w)));
    ui.count.textContent = words.length ? plural(found.length, 'client') + ' of ' + number(clients.length) : plural(clients.length, 'client');
    ui.list.replaceChildren(...found.map(c => newClient(c, found.length === 1)));
  }

  function newClient(c, open) {
    return el('li', {}, el('details', {class: 'card', open}, el('summary', {}, el('h3', {}, c.title || c.client),
      c.installed ? el('span', {class: 'pill good'}, 'installed here') : null),
    el('div', {class: 'row'}, installButton(c), c.docs ? el('a', {href: c.docs, rel: 'noreferrer noopener', target: '_blank'},
      'Documentation of ' + (c.title || c.client)) : null),
    c.instead ? el('p', {}, c.instead) : null,
    c.command ? block('Command', c.command, c) : null,
    c.snippet ? block(c.file ? [c.command ? 'Or add to ' : 'Add to ', el('code', {class: 'path'}, c.file)] : 'Entry of the configuration', c.snippet, c) : null,
    c.next ? el('p', {}, c.next) : null));
  }

  // installs are the beginnings of the addresses that open a client. They come from the
  // table of the server; el accepts no such scheme.
  const installs = /^(cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?|vscode:mcp\/install\?|lmstudio:\/\/add_mcp\?|goose:\/\/extension\?|https:\/\/kiro\.dev\/launch\/mcp\/add\?)/;

  // installButton returns a link that makes a client ask whether to add this server.
  function installButton(c) {
    if (!installs.test(c.link || '')) return null;
    const through = c.link.startsWith('https:') ? ', through ' + new URL(c.link).host : '';
    const a = el('a', {class: 'button', rel: 'noreferrer noopener', target: through ? '_blank' : null}, 'Add to ' + c.title + through);
    a.setAttribute('href', c.link);
    return a;
  }

  const block = (title, text, c) => el('div', {class: 'snippet'}, el('div', {class: 'head'}, el('h4', {}, title),
    copyButton(text, 'Copy')), el('pre', {tabindex: 0, 'aria-label': (c.title || c.client)}, el('code', {}, text)));

  // The test connects to the server as a client does: with a session.

  function newTest() {
    const endpoints = state.endpoints.length ? state.endpoints : [{path: '/mcp', domain: ''}];
    const endpoint = el('select', {'aria-label': 'Endpoint'}, endpoints.map(e => el('option', {value: e.path}, e.path)));
    const words = el('input', {type: 'text', maxlength: 500, value: 'getting started', 'aria-label': 'Search for'});
    const button = el('button', {class: 'primary'}, 'Test the connection'), result = el('div', {'aria-live': 'polite'});
    return el('section', {class: 'card', 'aria-labelledby': 'test-title'}, el('h2', {id: 'test-title'}, 'Test'),
      el('form', {class: 'row', onsubmit: async e => {
        e.preventDefault();
        button.disabled = true;
        await test(endpoint.value, words.value.trim(), result);
        button.disabled = false;
      }}, endpoint, words, button), result);
  }

  async function test(path, words, result) {
    const rows = el('tbody'), after = el('div');
    result.replaceChildren(scroller('Steps of the test', el('table', {}, el('caption', {class: 'unseen'}, 'Steps of the test'),
      el('thead', {}, el('tr', {}, ['Step', 'Result', 'Time'].map(h => el('th', {scope: 'col'}, h)))), rows)), after);
    let session = '', version = '', id = 0;
    // send sends a message and returns the result, or null for a notification.
    const send = async (method, params) => {
      const notification = method.startsWith('notifications/'), token = await SIGN_ON.token();
      const headers = {'Content-Type': 'application/json', Accept: 'application/json, text/event-stream'};
      if (token) headers.Authorization = 'Bearer ' + token;
      if (session) headers['Mcp-Session-Id'] = session;
      if (version) headers['MCP-Protocol-Version'] = version;
      let r;
      try {
        r = await fetch(path, {method: 'POST', headers, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(30000),
          body: JSON.stringify(Object.assign({jsonrpc: '2.0', method, params}, notification ? {} : {id: ++id}))});
      } catch (e) {
        throw new Failure(e.name === 'TimeoutError' ? 'no answer in 30 seconds' : 'the server does not answer', 0);
      }
      session = r.headers.get('Mcp-Session-Id') || session;
      const text = await r.text();
      if (notification && r.ok) return null;
      const answer = messageIn(text, r.headers.get('Content-Type') || '', id);
      if (answer && answer.result) return answer.result;
      throw new Failure(answer && answer.error && (answer.error.message || answer.error) || 'status ' + r.status, r.status);
    };
    const step = async (name, f) => {
      const what = el('td', {}, '…'), time = el('td', {class: 'number'});
      rows.append(el('tr', {}, el('th', {scope: 'row'}, name), what, time));
      const began = performance.now();
      try {
        what.replaceChildren(await f());
      } catch (e) {
        what.replaceChildren(el('span', {class: 'error'}, sentence(e.message)));
        throw e;
      } finally {
        time.textContent = Math.round(performance.now() - began) + ' ms';
      }
    };
    let tools = [], search = null, found = null, working = 'initialize';
    try {
      await step('initialize', async () => {
        const r = await send('initialize', {protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {name: 'knowhow console', version: state.version}});
        version = r.protocolVersion;
        await send('notifications/initialized', {});
        return (r.serverInfo ? r.serverInfo.title || r.serverInfo.name : 'a server') + ', revision ' + version;
      });
      working = 'tools/list';
      await step('tools/list', async () => {
        tools = (await send('tools/list', {})).tools || [];
        search = tools.find(t => /_search$/.test(t.name) && t.name !== 'kb_search') || tools.find(t => t.name === 'kb_search');
        return plural(tools.length, 'tool') + ': ' + tools.map(t => t.name).join(', ');
      });
      working = 'tools/call';
      if (search && words) {
        await step(search.name, async () => {
          const r = await send('tools/call', {name: search.name, arguments: {query: words}});
          const text = (r.content || []).map(c => c.text || '').join('\n');
          if (r.isError) throw new Failure(text || 'the tool failed', 200);
          try { found = JSON.parse(text); } catch { found = null; }
          return found && typeof found.total === 'number' ? plural(found.total, 'document') + ' for “' + words + '”'
            : plural((found && found.results || []).length, 'result');
        });
      }
      const hits = found && found.results || [];
      append(after, el('p', {class: 'good'}, 'The connection works.'), hits.length ? el('ol', {}, hits.slice(0, 5).map(h =>
        el('li', {dir: 'auto'}, h.title || h.path || h.doc_id || 'untitled', h.source ? el('span', {class: 'soft'}, ' · ' + h.source) : null)))
        : search && words ? el('p', {class: 'soft'}, 'No document matches these words. Try words that your documents have.')
          : !search ? el('p', {class: 'soft'}, 'The endpoint has no tool for searching.') : null);
    } catch (e) {
      append(after, el('p', {class: 'error'}, 'The connection does not work.'), el('p', {}, advice(e, working)));
    }
    if (session) { // a client ends its session
      const token = sessionStorage.getItem('token');
      fetch(path, {method: 'DELETE', headers: Object.assign({'Mcp-Session-Id': session, 'MCP-Protocol-Version': version},
        token ? {Authorization: 'Bearer ' + token} : {})}).catch(() => {});
    }
  }

  // messageIn returns the message with an ID in a body, which is JSON or a stream of
  // events; null if there is none.
  function messageIn(text, type, id) {
    const all = type.startsWith('text/event-stream') ? text.split(/\r?\n/).filter(l => l.startsWith('data:')).map(l => l.slice(5)) : [text];
    const messages = all.map(t => { try { return JSON.parse(t); } catch { return null; } }).filter(m => m && typeof m === 'object');
    return messages.find(m => m.id === id) || messages.find(m => m.error) || null;
  }

  // advice returns what to do after an error.
  function advice(e, working) {
    switch (e.status) {
      case 0: return 'Check that knowhow still runs, and that a proxy in between passes on POST requests and does not end them early.';
      case 401: return 'The token is missing, wrong or has expired. Reload the page and enter the token again; give your client the same one.';
      case 403: return 'The server refuses this address or this user. Add the host of the address with --allow-host and its origin with ' +
        '--allow-origin, or ask an administrator for the right to read.';
      case 404: return working === 'initialize' ? 'Nothing is served at this path. Choose another endpoint; a proxy must not change the path.'
        : 'The session has ended. Test again; if that repeats, a proxy may send requests to different servers.';
      case 429: return 'Too many calls at once. Wait a little and test again; --rate and --max-calls set the limits.';
      case 200: return 'The server works, but the call failed. The message says why; the log of knowhow may say more.';
    }
    return e.status >= 502 ? 'A proxy does not reach knowhow, or knowhow is starting. Wait a little and test again.'
      : 'See the log of knowhow, and whether a proxy in between changes requests.';
  }

  return {name: 'connect', title: 'Connect', show, hide};
})();
