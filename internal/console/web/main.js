// Navigation: which view is shown, the search field, the token, the colours and the keys.
// A view is {name, title, show(root, parameters, signal), hide()}: show is called for
// each address of the view, with the same root while the view stays, and its signal is
// aborted at the next address. available(state) reports whether the caller may use
// anything of it; without it, everyone may.

const views = [SEARCH, READ, SOURCES, NOTES, CONNECT];
const available = view => !view.available || Boolean(view.available(state));

let shownView = null; // that is in #view
let showing = null;   // cancels the requests of the address before
let away = false;     // whether the server did not answer when the address was shown
let touched = false;  // whether somebody has typed a query before the state was there

// queryOf returns the query in an address; other views have filters of their own in q.
const queryOf = at => ['', SEARCH.name, READ.name].includes(at.view) ? at.parameters.q || '' : '';

// show shows what the address names.
async function show(anew) {
  if (showing) showing.abort();
  showing = new AbortController();
  const signal = showing.signal, at = place(), again = away;
  away = false;
  say('');
  $('sign-out').hidden = !sessionStorage.getItem('token');
  try {
    if (!state) {
      if (!touched) $('query').value = queryOf(at);
      const answer = await api.get('/console/status', {signal});
      if (!SIGN_ON.belongs(answer.user.name)) return; // the page is loaded anew
      state = answer;
    }
    if (touched) {
      touched = false;
      $('ask-token').hidden = true;
      if ($('query').value.trim() !== queryOf(at)) return searchFor($('query').value);
    }
    $('ask-token').hidden = true;
    $('view').hidden = false;
    const known = !at.view || views.some(v => v.name === at.view), before = shownView;
    const view = known ? views.find(v => v.name === at.view && available(v)) || views.find(available) : MISSING;
    if (view !== shownView || again) {
      if (shownView && shownView.hide && !again) shownView.hide();
      $('view').replaceChildren();
      scrollTo(0, 0);
      document.body.dataset.view = view.name;
      shownView = view;
    }
    navigation(view);
    document.title = view === SEARCH ? 'knowhow' : view.title + ' – knowhow';
    if (view !== SEARCH || !at.parameters.q) $('query').value = queryOf(at);
    await view.show($('view'), at.parameters, signal);
    if ((again || before && before !== view) && !signal.aborted) focusTitle();
  } catch (e) {
    if (e.status === 0 && !signal.aborted) return showAway(e.message, again, signal);
    if (state && anew !== true && isOutdated(e) && !signal.aborted) {
      state = null;
      return show(true);
    }
    if (!state && e.noRight) say('You are signed in, but you have no rights here yet. Ask the administrator for some, and then reload the page.', true);
    else fail(e, signal);
  }
}

// MISSING is shown for an address that names no view.
const MISSING = {
  name: 'missing',
  title: 'Not found',
  show(root) {
    root.replaceChildren(problemPage('There is no such page', 'The address of this page is wrong.', el('p', null, el('a', {href: address('search')}, 'Start page'))));
  },
};

// showAway says in place of the view that the server does not answer, and shows the
// address again when it does.
async function showAway(message, again, signal) {
  away = true;
  if (shownView && shownView.hide) shownView.hide();
  const button = el('button', {type: 'button', onclick: () => show()}, 'Try again');
  $('ask-token').hidden = true;
  $('view').hidden = false;
  $('view').replaceChildren(problemPage('No connection', message + ' This page tries again by itself.', button));
  if (again && document.activeElement === document.body) button.focus();
  retry(signal);
}

// retry shows the address again when the server answers, unless the signal ends it. It
// asks at first after one second, later each 10.
async function retry(signal) {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 10000)) {
    await pause(wait, signal);
    if (signal.aborted) return;
    const response = await fetch('/healthz', {signal, cache: 'no-store'}).catch(() => null);
    if (response && response.ok && !signal.aborted) return show();
  }
}

// focusTitle makes a screen reader read the title of a view if the element that had the
// focus is gone.
function focusTitle() {
  const title = $('view').querySelector('h1');
  if (!title || document.activeElement !== document.body) return;
  title.tabIndex = -1;
  title.focus({preventScroll: true});
}

function navigation(current) {
  $('nav').replaceChildren(...views.filter(v => v !== READ && available(v)).map(v =>
    el('li', {}, el('a', {href: address(v.name), 'data-title': v.title, 'aria-current': v === current || v === SEARCH && current === READ ? 'page' : null}, v.title))));
}

// askToken asks for the token of the server or to sign in, with a message about the token
// before. What the tab keeps for the user stays, unless another one signs in.
function askToken(message) {
  SIGN_ON.drop();
  if (shownView && shownView.hide) shownView.hide();
  shownView = state = null;
  $('view').replaceChildren();
  $('view').hidden = true;
  $('nav').replaceChildren();
  document.title = 'knowhow';
  say('');
  announce('');
  sayProblem(message);
  $('ask-token').hidden = false;
  $('sign-out').hidden = true;
  $('token').focus();
  SIGN_ON.offer($('sign-on')).then(button => {
    const offered = Boolean($('sign-on').firstChild);
    $('ask-title').textContent = offered ? 'Sign in' : 'A token is required';
    $('ask-own').hidden = !offered;
    $('ask-text').hidden = offered;
    $('use-token').classList.toggle('primary', !offered);
    if (button && document.activeElement === $('token') && !$('token').value) button.focus();
  });
}

// sayProblem says why a token is asked for.
function sayProblem(message) {
  $('ask-problem').textContent = message;
  $('ask-problem').hidden = !message;
}

$('ask-token').addEventListener('submit', e => {
  e.preventDefault();
  sessionStorage.setItem('token', $('token').value.trim());
  $('token').value = '';
  show();
});

$('sign-out').addEventListener('click', async () => {
  if (NOTES.unsaved(true) && !await NOTES.confirmation('Sign out?', 'A note that is not saved, or a file that is not sent, is lost.', 'Sign out')) return;
  if (showing) showing.abort();
  if (shownView && shownView.hide) shownView.hide();
  $('view').replaceChildren(); // a browser can keep the page for its button Back
  SIGN_ON.out();
});

// The search field: the results follow what is typed after a pause.

const typed = debounce(() => searchFor($('query').value, true), 200);

function searchFor(text, replace) {
  typed.cancel();
  const at = place(), inSearch = shownView === SEARCH;
  const kept = inSearch ? at.parameters : {};
  if (!state || inSearch && (kept.q || '') === text.trim()) { // without the state, show searches it
    if (away) show();
    else if (state && !replace) SEARCH.focusFirst();
    return;
  }
  go('search', Object.assign({}, kept, {q: text.trim(), start: ''}), replace && inSearch && Boolean(kept.q));
}

$('query').addEventListener('input', e => {
  touched = !state;
  if (!e.isComposing) typed();
});
$('query').addEventListener('compositionend', () => typed());
$('search').addEventListener('submit', e => { e.preventDefault(); searchFor($('query').value); });

// Colours: those of the system, or those that were chosen for this tab.

const themes = {auto: 'Colours of the system', light: 'Light colours', dark: 'Dark colours'};

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  sessionStorage.setItem('theme', theme);
  $('theme').setAttribute('aria-label', themes[theme] + ', change');
  $('theme').title = themes[theme];
}
setTheme(themes[sessionStorage.getItem('theme')] ? sessionStorage.getItem('theme') : 'auto');
$('theme').addEventListener('click', () => {
  const names = Object.keys(themes), next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  setTheme(next);
  announce(themes[next]);
});

// Keys

$('skip').addEventListener('click', e => { e.preventDefault(); $('view').focus(); });
$('help-button').addEventListener('click', () => $('help').showModal());
$('help-close').addEventListener('click', () => $('help').close());

addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || document.querySelector('dialog[open]')) return;
  const typing = e.target.matches('input:not([type=checkbox], [type=radio], [type=file]), select, textarea') || e.target.isContentEditable;
  if (!typing && e.key === '/' && $('ask-token').hidden) {
    e.preventDefault();
    $('query').focus();
    $('query').select();
  } else if (!typing && e.key === '?') {
    e.preventDefault();
    $('help').showModal();
  } else if (shownView && shownView.key && (!typing || e.target === $('query'))) {
    shownView.key(e, typing);
  }
});

addEventListener('hashchange', show);
addEventListener('pageshow', e => { if (e.persisted) location.reload(); }); // the user can be another one
SIGN_ON.finish().then(async problem => {
  await show();
  if (problem && !$('ask-token').hidden) sayProblem(problem);
  else if (!location.hash && $('ask-token').hidden) $('query').focus();
});
