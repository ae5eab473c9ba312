// Signing in at the identity provider of the server, with an authorization code and PKCE
// (RFC 7636), and what the tab keeps of its user. The page sends the browser to the
// provider and sends it nothing itself: the server exchanges codes for tokens.
const SIGN_ON = (() => {
  const path = '/console/sign-on';
  let provided = false; // whether the server has accepted tokens of a provider, as far as it is known
  let accepted = sessionStorage.getItem('owner') === null ? null : sessionStorage.getItem('token'); // the token that the server accepted last
  let last = {};        // the token that was refused last, with the error
  let renewing = null;  // the promise of a renewal that is running

  // The storage of the tab has the token (token), for a token of the provider what renews
  // it (sign-on), what a sign-on that has begun needs (signing-on), and whose it is (owner).
  const read = key => { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } };
  const write = (key, value) => sessionStorage.setItem(key, JSON.stringify(value));

  // post sends a code or a refresh token to the server, and keeps the tokens that it
  // answers. It throws a Failure; its status 400 means that trying again never helps.
  async function post(body, current) {
    let response;
    try {
      response = await fetch(path, {method: 'POST', cache: 'no-store', redirect: 'error',
        headers: {Accept: 'application/json', 'Content-Type': 'application/json'}, body: JSON.stringify(body)});
    } catch {
      throw new Failure('knowhow does not answer at ' + location.host + '. Is it still running?', 0);
    }
    if (!response.ok) throw await failureOf(response);
    const answer = await response.json();
    if (!current()) return false; // signed out meanwhile
    sessionStorage.setItem('token', answer.access_token);
    const life = Math.max(answer.expires_in, 30) * 1000;
    write('sign-on', {refresh: answer.refresh_token || body.refresh_token || '', renew: Date.now() + life * .9, ends: Date.now() + life});
    return true;
  }

  // token returns the token for a request; "" if there is none. It renews one that expires
  // soon, and waits for that only if it has expired.
  async function token() {
    const on = read('sign-on');
    if (on && on.refresh && Date.now() >= on.renew) {
      const renewed = renew(sessionStorage.getItem('token')).catch(() => { // the token can still be valid
        const now = read('sign-on');
        if (now && now.refresh === on.refresh) write('sign-on', Object.assign(now, {renew: Date.now() + 30000}));
      });
      if (Date.now() >= on.ends) await renewed;
    }
    return sessionStorage.getItem('token') || '';
  }

  // renew renews a token of the provider. It reports whether there is another one now. It
  // throws a Failure if that cannot be known.
  async function renew(old) {
    if (renewing) await renewing; // that of another request
    const on = read('sign-on');
    if (!on || sessionStorage.getItem('token') !== old) return Boolean(on);
    if (!on.refresh) return false;
    const current = () => sessionStorage.getItem('token') === old;
    renewing = post({refresh_token: on.refresh}, current).catch(e => {
      if (e.status !== 400) throw e;
      if (current()) write('sign-on', {refresh: '', renew: Infinity});
      return false;
    }).finally(() => { renewing = null; });
    return renewing;
  }

  // refused returns the error for a response with the status 401 to a request with a
  // token. challenge is its header WWW-Authenticate.
  function refused(challenge, token) {
    provided = /resource_metadata=/.test(challenge || '');
    if (!token) return new Unauthorized('');
    if (token === last.token) return last.error; // of another request, before the token was dropped
    const kept = NOTES.unsaved(true) ? ' What you have not saved is kept in this tab.' : '';
    const error = new Unauthorized((read('sign-on') ? 'Your sign-on has ended. Sign in again.'
      : token === accepted ? 'This token is no longer accepted. Enter it again, or ask for a new one.'
        : 'This token is wrong. Enter all of it, or ask whoever runs this server for yours.') + kept);
    last = {token, error};
    return error;
  }

  // offer shows in a place how people sign in, if they can. It returns the button, or null.
  async function offer(where) {
    where.replaceChildren();
    if (!provided) return null;
    let response;
    try {
      response = await fetch(path, {cache: 'no-store', redirect: 'error', headers: {Accept: 'application/json'}});
    } catch {
      return null; // the server does not answer, which the next request says
    }
    if (response.status === 401 || response.status === 404) return null;
    if (!response.ok) {
      const again = el('button', {type: 'button', onclick: () => offer(where)}, 'Try again');
      where.replaceChildren(el('p', {class: 'error'}, sentence((await failureOf(response)).message)), el('p', {}, again));
      return again;
    }
    const {url, page} = await response.json();
    if (new URL(page).origin !== location.origin) {
      where.replaceChildren(el('p', {}, 'To sign in with your account, use the address ', el('a', {href: page + location.hash}, page), '.'));
    } else if (!crypto.subtle) {
      where.replaceChildren(el('p', {class: 'error'}, 'Browsers allow signing in over https only. The server needs an address that begins so.'));
    } else {
      const button = el('button', {type: 'button', class: 'primary', onclick: () => begin(url).catch(e => say(e.message, true))}, 'Sign in');
      where.replaceChildren(el('p', {class: 'row'}, button, el('span', {class: 'soft'}, 'with your account at ' + new URL(url).host)));
      return button;
    }
    return null;
  }

  const base64url = bytes => btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

  // begin sends the browser to the provider.
  async function begin(url) {
    if (NOTES.unsaved() && !await NOTES.confirmation('Leave the page?', 'A note for which the tab has no room, or a file that is not sent, is lost.', 'Sign in')) return;
    const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
    const to = new URL(url), mark = random(), verifier = random();
    to.searchParams.set('state', mark);
    to.searchParams.set('code_challenge', base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))));
    if (sessionStorage.getItem('signed-out')) to.searchParams.set('prompt', 'login'); // another person may use the tab
    write('signing-on', {state: mark, verifier, hash: location.hash});
    location.assign(to);
  }

  // finish ends a sign-on, if the provider has sent the browser to this address, and
  // returns to the address from which it began. It returns what went wrong, or "".
  async function finish() {
    const answer = new URLSearchParams(location.search);
    if (!answer.has('state') || !answer.has('code') && !answer.has('error')) return '';
    provided = true;
    const begun = read('signing-on'), mine = begun && begun.state === answer.get('state');
    sessionStorage.removeItem('signing-on');
    history.replaceState(null, '', '/' + (mine ? begun.hash : location.hash)); // the code is not for others
    if (!mine) return 'This sign-on was not begun in this tab, or has ended before. Sign in again.';
    if (answer.has('error')) {
      const text = ['error', 'error_description'].map(name => (answer.get(name) || '').slice(0, 300).replace(/[\p{C}\p{Z}]+/gu, ' ').trim());
      return 'The identity provider did not sign you in: ' + text.filter(Boolean).join(': ');
    }
    say('Signing in…');
    try {
      const code = {code: answer.get('code'), verifier: begun.verifier};
      if (answer.has('iss')) code.iss = answer.get('iss');
      for (let tries = 1; ; tries++) {
        try {
          await post(code, () => true);
          break;
        } catch (e) { // the server limits how many people sign in at once
          if (e.status !== 429 || tries === 15) throw e;
          await pause(500 + 500 * Math.random());
        }
      }
      sessionStorage.removeItem('signed-out');
      return '';
    } catch (e) {
      return sentence(e.message);
    }
  }

  // drop removes the token.
  function drop() {
    for (const key of ['token', 'sign-on']) sessionStorage.removeItem(key);
  }

  // forget removes all that the tab keeps of its user, except what is named.
  function forget(...kept) {
    remember.cancel();
    for (const key of Object.keys(sessionStorage)) {
      if (key !== 'theme' && !kept.includes(key)) sessionStorage.removeItem(key);
    }
  }

  // belongs reports whether the tab has nothing of another user than the one with a name.
  // Otherwise it removes that and loads the page anew. A user of the server and one of the
  // provider can have one name.
  function belongs(name) {
    const owner = name && (/\..*\./.test(sessionStorage.getItem('token') || '') ? 'provider ' : 'server ') + name;
    const before = sessionStorage.getItem('owner');
    accepted = sessionStorage.getItem('token');
    sessionStorage.setItem('owner', owner);
    if (!before || before === owner) return true;
    forget('token', 'sign-on', 'owner');
    location.replace('/');
    return false;
  }

  // out signs out of this page. The provider may keep its own session.
  function out() {
    forget();
    sessionStorage.setItem('signed-out', '1');
    location.replace('/');
  }

  return {token, renew, refused, offer, finish, drop, belongs, out, isOn: () => Boolean(read('sign-on'))};
})();
