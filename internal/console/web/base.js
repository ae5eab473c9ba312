// The base of all views: elements, addresses, requests and messages. All scripts of
// the page have one scope. Text of documents is foreign: el makes elements, and strings
// become text. Nothing reads text as HTML.

const $ = id => document.getElementById(id);

// state is the answer of /console/status; null before the first one.
let state = null;

// el returns an element. A property is a class, a function for an event such as
// onclick, or an attribute: true sets it without a value; false, null and undefined do
// not set it. Children are nodes, strings, numbers and lists of them; null, undefined
// and false are left out.
function el(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') e.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === 'class') e.className = value;
    else if (name === 'value' || name === 'checked' || name === 'selected' || name === 'indeterminate') e[name] = value;
    else if (/^(href|src|action|formaction|data|cite|poster)$/i.test(name)) {
      const url = safeURL(value);
      if (url !== null) e.setAttribute(name, url);
    } else if (/^(on.*|style|srcdoc|srcset|xlink:.*)$/i.test(name)) throw new Error('el does not set ' + name);
    else e.setAttribute(name, value === true ? '' : value);
  }
  append(e, children);
  return e;
}

// append appends children as el does.
function append(parent, ...children) {
  for (const c of children.flat(Infinity)) {
    if (c !== null && c !== undefined && c !== false) parent.append(c instanceof Node ? c : String(c));
  }
  return parent;
}

// safeURL returns an address if it is relative or that of a web page, a mail or a
// download that the page made itself; null otherwise.
function safeURL(text) {
  const url = String(text).replace(/[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028-\u202f\ufeff]/g, c => c === ' ' ? '%20' : '');
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url);
  return !scheme || /^(https?|mailto)$/i.test(scheme[1]) || url.startsWith('blob:' + location.origin + '/') ? url : null;
}

// isWide reports whether there is room beside the text, as in style.css.
const isWide = () => matchMedia('(min-width: 60rem)').matches;

// icon returns a drawing for a button; the button has the name.
function icon(path) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [k, v] of Object.entries({viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon'})) svg.setAttribute(k, v);
  const p = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  p.setAttribute('d', path);
  svg.append(p);
  return svg;
}

// Numbers and times

const number = n => Number(n).toLocaleString();
const plural = (n, word, several) => number(n) + ' ' + (n === 1 ? word : several || word + 's');

// bytes returns a size such as 1.5 MB.
function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return (i ? n.toFixed(n < 10 ? 1 : 0) : n) + ' ' + units[i];
}

// age returns how long ago a time is, such as "3 days ago"; "" if it is not known.
function age(time) {
  const t = new Date(time || NaN).getTime();
  if (Number.isNaN(t)) return '';
  let n = (t - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat('en', {numeric: 'auto'});
  for (const [unit, size] of [['second', 60], ['minute', 60], ['hour', 24], ['day', 30], ['month', 12], ['year', Infinity]]) {
    if (Math.abs(n) < size) return format.format(Math.trunc(n), unit);
    n /= size;
  }
  return '';
}

// Addresses: the part after # has the name of a view and its parameters, such as
// #/search?q=words.

// address returns the address of a view. Parameters that are "", null, undefined or
// false are left out. A list becomes its values with commas between.
function address(view, parameters) {
  const values = Object.entries(parameters || {}).map(([k, v]) => [k, Array.isArray(v) ? v.join(',') : v === true ? '1' : v])
    .filter(([, v]) => v !== '' && v !== null && v !== undefined && v !== false);
  const text = new URLSearchParams(values).toString();
  return '#/' + view + (text ? '?' + text : '');
}

// place returns the name of the view and the parameters in the address.
function place() {
  const [, view, text] = /^#\/([^?]*)(?:\?(.*))?$/s.exec(location.hash) || ['', '', ''];
  return {view, parameters: Object.fromEntries(new URLSearchParams(text || ''))};
}

// go shows a view. With replace, the state before is not one to go back to.
function go(view, parameters, replace) {
  const to = address(view, parameters);
  if (location.hash === to) return show();
  if (!replace) location.hash = to;
  else {
    history.replaceState(null, '', to);
    show();
  }
}

// split returns the values in a parameter with commas between.
const split = text => (text || '').split(',').filter(Boolean);

// Messages

// announce says a text to people with a screen reader.
function announce(text) { $('announcer').textContent = text; }

// say shows a message above the view, or removes it if it is "".
function say(text, isError) {
  $('message').textContent = text;
  $('message').hidden = !text;
  $('message').classList.toggle('error', Boolean(isError));
}

// fail shows an error, except that of a request that the page itself ended.
function fail(e, signal) {
  if (e.name === 'AbortError' || signal && signal.aborted) return;
  if (e instanceof Unauthorized) return askToken(e.message);
  say(e.message, true);
}

// problemPage returns what stands in place of a view that cannot be shown: a title, a
// message and what else is given.
function problemPage(title, message, ...more) {
  return el('div', {class: 'problem'}, el('h1', {tabindex: '-1'}, title), el('p', {role: 'alert', dir: 'auto'}, message), more);
}

// copyButton returns a button that copies a text, which may be a function.
function copyButton(text, name) {
  const button = el('button', {type: 'button', class: 'small', onclick: async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
      button.textContent = 'Copied';
      announce('Copied');
    } catch {
      button.textContent = 'Cannot copy';
    }
    setTimeout(() => { button.textContent = name || 'Copy'; }, 1500);
  }}, name || 'Copy');
  return button;
}

// Requests

// Unauthorized means that the server requires another token.
class Unauthorized extends Error {}

// A Failure is an answer that is an error; status is that of HTTP.
class Failure extends Error {
  constructor(message, status) { super(message); this.status = status; }
}

// visible returns a name without the signs that change the direction of what follows them.
const visible = name => String(name).replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd');

// isOutdated reports whether an error means that the tools of the user are not those of
// the state any more: the rights have changed.
const isOutdated = e => /^unknown tool /.test(e.message);

// request sends a request with the token and returns the response. It throws
// Unauthorized, a Failure, or an AbortError if the signal ended it.
async function request(method, path, options) {
  const {headers, body, signal} = options || {};
  for (let renewed = false; ; renewed = true) {
    const token = await SIGN_ON.token();
    let response;
    try {
      response = await fetch(path, {method, body, signal, cache: 'no-store', redirect: 'error',
        headers: Object.assign({Accept: 'application/json'}, headers, token ? {Authorization: 'Bearer ' + token} : {})});
    } catch (e) {
      if (e.name === 'AbortError') throw e;
      throw new Failure('knowhow does not answer at ' + location.host + '. Is it still running?', 0);
    }
    if (response.ok) return response;
    if (response.status !== 401) throw await failureOf(response);
    if (renewed || !await SIGN_ON.renew(token)) throw SIGN_ON.refused(response.headers.get('WWW-Authenticate'), token);
  }
}

// failureOf returns the Failure for a response.
async function failureOf(response) {
  const answer = await response.json().catch(() => null);
  const message = answer && (answer.error && answer.error.message || answer.message || typeof answer.error === 'string' && answer.error);
  const failure = new Failure(message || 'The server answered with status ' + response.status + '.', response.status);
  failure.retryAfter = Number(response.headers.get('Retry-After')) || 0; // seconds
  failure.noRight = /insufficient_scope/.test(response.headers.get('WWW-Authenticate') || '');
  return failure;
}

const revision = '2026-07-28'; // of MCP, without sessions

const api = {
  // get returns the JSON at a path. Options: signal.
  get: async (path, options) => (await request('GET', path, options)).json(),

  // send sends JSON, a FormData or a Blob, and returns the JSON of the answer, or null
  // if it has none. Options: signal, headers.
  send: async (method, path, body, options) => {
    const raw = body === undefined || body instanceof FormData || body instanceof Blob;
    const headers = Object.assign(raw ? {} : {'Content-Type': 'application/json'}, options && options.headers);
    const response = await request(method, path, {signal: options && options.signal, headers, body: raw ? body : JSON.stringify(body)});
    const text = await response.text();
    return text ? JSON.parse(text) : null;
  },

  // call calls a tool of the MCP endpoint at a path without a session and returns the
  // parameters of the request, the result as it came, and its text.
  call: async (path, name, args, options) => {
    const params = {name, arguments: args};
    const response = await request('POST', path, {
      signal: options && options.signal,
      headers: {'Content-Type': 'application/json', 'MCP-Protocol-Version': revision, 'Mcp-Method': 'tools/call', 'Mcp-Name': name},
      body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'tools/call', params: Object.assign({_meta: {
        'io.modelcontextprotocol/protocolVersion': revision,
        'io.modelcontextprotocol/clientInfo': {name: 'knowhow console', version: state ? state.version : ''},
        'io.modelcontextprotocol/clientCapabilities': {},
      }}, params)}),
    });
    const answer = await response.json();
    if (answer.error) throw new Failure(answer.error.message, response.status);
    const text = (answer.result.content || []).map(c => c.text || '').join('\n');
    return {params, result: answer.result, text};
  },

  // tool calls a tool, whose whole name is given, and returns its result: the value of
  // its JSON, or its text.
  tool: async (path, name, args, options) => {
    const {result, text} = await api.call(path, name, args, options);
    if (result.isError) throw new Failure(text || 'The tool failed.', 200);
    if (result.structuredContent) return result.structuredContent;
    try { return JSON.parse(text); } catch { return text; }
  },

  // events calls onEvent with the name and the value of each event of a stream until
  // the signal ends it. After a lost connection it calls onLost with the error and
  // connects again, at first after one second, later after up to 30. It throws a
  // Failure with status 404 if there is no stream, and Unauthorized.
  events: async (path, onEvent, options) => {
    const {signal, onLost} = options || {};
    for (let wait = 1000; !(signal && signal.aborted); wait = Math.min(wait * 2, 30000)) {
      let lost = null;
      try {
        const response = await request('GET', path, {signal, headers: {Accept: 'text/event-stream'}});
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ''; ;) {
          const {value, done} = await reader.read();
          if (done) break;
          wait = 1000;
          const parts = (rest + value).split(/\r?\n\r?\n/);
          rest = parts.pop();
          for (const part of parts) {
            let name = 'message', data = [];
            for (const line of part.split(/\r?\n/)) {
              const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line);
              if (field === 'event') name = text;
              if (field === 'data') data.push(text);
            }
            if (data.length) onEvent(name, JSON.parse(data.join('\n')));
          }
        }
      } catch (e) {
        if (signal && signal.aborted) return;
        if (e instanceof Unauthorized || e.status === 404 || e.status === 403) throw e;
        lost = e;
      }
      if (signal && signal.aborted) return;
      if (onLost) onLost(lost || new Failure('The connection to the server was lost.', 0));
      await pause(wait, signal);
    }
  },
};

// pause waits for so many milliseconds, or until the signal ends it.
function pause(time, signal) {
  return new Promise(done => {
    const timer = setTimeout(done, time);
    if (signal) signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, {once: true});
  });
}

// once returns a function that calls f when it is first called, and keeps the result.
function once(f) {
  let value, called = false;
  return () => {
    if (!called) value = f();
    called = true;
    return value;
  };
}

// debounce returns a function that calls f once, after calls have paused for so many
// milliseconds.
function debounce(f, pause) {
  let timer = 0;
  const later = (...args) => { clearTimeout(timer); timer = setTimeout(() => f(...args), pause); };
  later.cancel = () => clearTimeout(timer);
  return later;
}
