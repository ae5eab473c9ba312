// Signing in at a real identity provider, Dex. Its users are anna, who is in the group
// staff, and otto, who is in the group guests.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beside, expect, hit, open, query, search, test as base, violations } from './console.mjs';
import { access, dex, folder, freePorts } from './server.mjs';

const refused = /status of (400|401|403|404|503)/;
const signIn = page => page.getByRole('button', { name: 'Sign in', exact: true });
const signOut = page => page.getByRole('button', { name: 'Sign out', exact: true });
const kept = page => page.evaluate(() => Object.keys(sessionStorage).filter(k => k !== 'theme').sort());
const keptValue = (page, key) => page.evaluate(key => sessionStorage.getItem(key), key);

const test = base.extend({
  // start starts Dex, and a server with the folders kitchen and salaries. The group staff
  // may read kitchen.
  start: async ({ servers }, use) => {
    const started = [];
    await use(async ({ client = 'console', scopes = [], env, publicURL, flags = [] } = {}) => {
      const [port] = await freePorts(1);
      const provider = await dex(`http://127.0.0.1:${port}/`);
      started.push(provider);
      const work = folder('sources'), data = folder('data');
      for (const [label, text] of [['kitchen', '# Soup of the day\n\nThe soup has turnips.\n'], ['salaries', '# Secret salaries\n\nThe cook earns turnips.\n']]) {
        mkdirSync(path.join(work, label));
        writeFileSync(path.join(work, label, 'a.md'), text);
      }
      const token = access(data, 'add', 'own', '--read', '*', '--write', '*');
      access(data, 'add', '--group', 'staff', '--read', 'kitchen', '--read', 'documents', '--write', 'documents');
      const scope = ['openid', 'groups', 'offline_access', 'audience:server:client_id:knowhow', ...scopes];
      const server = await servers.start(['--oauth-issuer', provider.issuer, '--oauth-audience', 'knowhow', ...scope.flatMap(s => ['--oauth-scope', s]),
        '--oauth-client-id', client, ...publicURL ? ['--public-url', publicURL] : [], ...flags, path.join(work, 'kitchen'), path.join(work, 'salaries')],
      { data, port, env });
      return { ...server, provider, token };
    });
    await Promise.all(started.map(p => p.stop()));
  },

  expected: async ({ expected }, use) => {
    expected.push(refused);
    await use(expected);
  },
});

// login signs in as a user on the pages of Dex.
async function login(page, name) {
  await signIn(page).click();
  await page.getByText('Log in with a password').click();
  await page.getByPlaceholder('name').fill(name);
  await page.getByPlaceholder('password').fill(name);
  await page.getByRole('button', { name: 'Login' }).click();
}

test('people sign in and see what their groups may read, until they sign out', async ({ page, start }) => {
  const audit = path.join(folder('audit'), 'audit.jsonl');
  const server = await start({ flags: ['--tools', 'search,kb', '--audit', audit] });
  const requests = []; // of the page itself, and the bodies of those for tokens
  page.on('request', r => { if (!r.isNavigationRequest() && r.frame().url().startsWith(server.url)) requests.push(r); });
  const address = server.url + '/#/search?q=turnips';
  await page.goto(address);
  await expect(signIn(page)).toBeFocused();
  await expect(page.getByLabel('Token', { exact: true })).toBeVisible(); // own tokens may be used, too
  await expect(signOut(page)).toBeHidden();
  await login(page, 'anna');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('Secret salaries');
  expect(page.url()).toBe(address);
  expect(requests.filter(r => new URL(r.url()).origin !== server.url && !r.url().startsWith('data:')).map(r => r.url())).toEqual([]);
  const { code } = requests.find(r => r.method() === 'POST' && r.url().endsWith('/console/sign-on')).postDataJSON();
  const token = await keptValue(page, 'token');
  for (const log of [server.log(), readFileSync(audit, 'utf8')]) {
    expect(log).toContain('/console/status');
    for (const secret of [code, token.split('.')[2]]) expect(log).not.toContain(secret);
  }

  await page.reload();
  await expect(hit(page, 'Soup of the day')).toBeVisible();

  // A draft is in the way of signing out.
  await page.goto(server.url + '/#/notes?edit=new');
  await page.getByLabel('Text in Markdown').fill('the secret of anna');
  await signOut(page).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByLabel('Text in Markdown')).toHaveValue('the secret of anna');
  await signOut(page).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await expect(signIn(page)).toBeFocused();
  expect(page.url()).toBe(server.url + '/');
  await expect(query(page)).toHaveValue('');
  expect(await kept(page)).toEqual(['signed-out']);

  // The provider is asked to sign in anew. Otto is in no group that has rights.
  const [request] = await Promise.all([page.waitForRequest(r => r.url().includes('/dex/auth?')), login(page, 'otto')]);
  expect(new URL(request.url()).searchParams.get('prompt')).toBe('login');
  await expect(page.getByText('You are signed in, but you have no rights here yet.')).toBeVisible();
  await expect(page.locator('body')).not.toContainText(/turnips|kitchen|secret of anna/);
  access(server.data, 'add', '--group', 'guests', '--read', 'salaries');
  await page.reload();
  await search(page, 'turnips');
  await expect(hit(page, 'Secret salaries')).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('Soup of the day');
});

test('another user who goes on in the tab sees nothing of the first, who finds drafts again', async ({ page, start }) => {
  const server = await start({ client: 'secret', env: { KNOWHOW_OAUTH_CLIENT_SECRET: 's3cret of the console' }, flags: ['--tools', 'search,kb'] });
  await page.goto(server.url + '/');
  await login(page, 'anna');
  await search(page, 'turnips');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  await expect.poll(() => keptValue(page, 'recent')).toContain('turnips');
  await page.goto(server.url + '/#/notes?edit=new');
  await page.getByLabel('Text in Markdown').fill('the secret of anna');
  await expect.poll(() => keptValue(page, 'draft new')).toContain('secret of anna');

  const end = async () => { // the provider and the server accept the tokens no longer
    await page.evaluate(() => {
      sessionStorage.setItem('token', sessionStorage.getItem('token').replace(/.{20}$/, 'A'.repeat(20)));
      const { refresh, renew } = JSON.parse(sessionStorage.getItem('sign-on'));
      sessionStorage.setItem('sign-on', JSON.stringify({ refresh: refresh.slice(1), renew }));
    });
    await page.reload();
    await expect(page.getByText('Your sign-on has ended. Sign in again.')).toBeVisible();
    await expect(page.getByRole('main')).not.toContainText('secret of anna');
  };
  await end();
  await login(page, 'anna');
  await expect(page.getByLabel('Text in Markdown')).toHaveValue('the secret of anna');

  await end();
  await page.getByLabel('Token', { exact: true }).fill(server.token);
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page.getByText('Recent in this tab')).toBeHidden();
  await expect(page.getByRole('heading', { name: /^Search/ })).toBeVisible();
  expect(page.url()).toBe(server.url + '/');
  expect(await kept(page)).toEqual(['owner', 'token']);
  await page.goto(server.url + '/#/notes?edit=new');
  await expect(page.getByLabel('Text in Markdown')).toHaveValue('');
});

test('tokens are renewed before they expire, and once when they are refused', async ({ page, start }) => {
  const server = await start();
  await page.clock.install();
  await page.goto(server.url + '/#/search?q=turnips');
  await login(page, 'anna');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  const renewals = [];
  page.on('request', r => { if (r.url().endsWith('/console/sign-on')) renewals.push(r); });
  const found = (page, words) => Promise.all([ // searches and waits for the answer
    page.waitForResponse(r => r.ok() && r.url() === server.url + '/mcp' && r.request().postData().includes(`"${words}"`)), search(page, words)]);
  const first = await keptValue(page, 'token');
  await page.clock.fastForward('00:50:00');
  await found(page, 'soup');
  expect(renewals).toHaveLength(0);
  await page.clock.fastForward('00:05:00'); // Dex's tokens are valid for an hour
  await found(page, 'day');
  await expect.poll(() => keptValue(page, 'token')).not.toBe(first);
  expect(renewals).toHaveLength(1);

  await page.evaluate(() => sessionStorage.setItem('token', sessionStorage.getItem('token').replace(/.{20}$/, 'A'.repeat(20))));
  await found(page, 'turnips');
  expect(renewals).toHaveLength(2);

  // While the provider is away, nobody is signed out.
  await server.provider.stop();
  await page.clock.fastForward('00:55:00');
  await found(page, 'soup');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  expect(renewals).toHaveLength(3);
});

test('a sign-on that was not begun in the tab is not accepted', async ({ page, start }) => {
  const server = await start();
  const sent = [];
  page.on('request', r => { if (r.method() === 'POST') sent.push(r.url()); });
  for (const answer of ['code=abc&state=x', 'error=access_denied&error_description=Call+this+number&state=x']) {
    await page.goto(`${server.url}/?${answer}#/sources`);
    await expect(page.getByText('This sign-on was not begun in this tab, or has ended before. Sign in again.')).toBeVisible();
    await expect(page.locator('body')).not.toContainText('Call');
    expect(page.url()).toBe(server.url + '/#/sources');
  }
  // With another state, or with the code of another browser.
  await page.route(/\/dex\/auth\?/, route => {
    const url = new URL(route.request().url());
    url.searchParams.set('state', 'x');
    return route.fulfill({ status: 302, headers: { Location: `${server.url}/?code=abc&state=x` } });
  });
  await signIn(page).click();
  await expect(page.getByText('This sign-on was not begun in this tab')).toBeVisible();
  expect(sent).toEqual([]);
  await page.unrouteAll();
  await page.route(/\/dex\/auth\?/, route => {
    const state = new URL(route.request().url()).searchParams.get('state');
    return route.fulfill({ status: 302, headers: { Location: `${server.url}/?code=abc&state=${state}` } });
  });
  await signIn(page).click();
  await expect(page.getByText('The identity provider refuses the sign-on: invalid_grant')).toBeVisible();
  expect(sent).toEqual([server.url + '/console/sign-on']);
  expect(await kept(page)).toEqual([]);

  // A link does not sign out who is signed in.
  await page.unrouteAll();
  await login(page, 'anna');
  await expect(signOut(page)).toBeVisible();
  await page.goto(`${server.url}/?error=x&state=x#/search?q=turnips`);
  await expect(hit(page, 'Soup of the day')).toBeVisible();
});

test('errors of the provider are shown as text', async ({ page, start }) => {
  const server = await start({ scopes: ['audience:server:client_id:nobody'] });
  await page.goto(server.url + '/#/sources');
  await signIn(page).click();
  await page.getByText('Log in with a password').click(); // Dex refuses the scope
  await expect(page.getByText('The identity provider did not sign you in: invalid_scope')).toBeVisible();
  expect(page.url()).toBe(server.url + '/#/sources');
  await page.route(/\/dex\/auth\?/, route => {
    const state = new URL(route.request().url()).searchParams.get('state');
    const text = encodeURIComponent('<img src=x onerror=attacked=1>\u202e\u0000' + 'long '.repeat(1000));
    return route.fulfill({ status: 302, headers: { Location: `${server.url}/?error=access_denied&error_description=${text}&state=${state}` } });
  });
  await signIn(page).click();
  const message = page.getByText('The identity provider did not sign you in: access_denied: <img src=x onerror=attacked=1> long');
  await expect(message).toBeVisible();
  expect((await message.textContent()).length).toBeLessThan(400);
  await expect(signIn(page)).toBeFocused();
});

test('while the provider is away, the page says so', async ({ page, start }) => {
  const server = await start();
  await server.provider.stop();
  await page.goto(server.url + '/');
  await expect(page.getByText('The identity provider cannot be reached now')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Try again' })).toBeFocused();
  await open(page, server.url + '/', server.token);
  await search(page, 'turnips');
  await expect(hit(page, 'Secret salaries')).toBeVisible();
});

test('signing in and out has its place for everybody', async ({ page, start }) => {
  const server = await start();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(server.url + '/');
  await expect(signIn(page)).toBeFocused();
  expect(await violations(page)).toEqual([]);
  expect(await beside(page)).toEqual([]);
  await login(page, 'anna');
  await expect(signOut(page)).toBeVisible();
  await expect(page.getByRole('heading', { name: /^Search/ })).toBeVisible();
  expect(await beside(page)).toEqual([]);
  expect(await violations(page)).toEqual([]);
});

test('people sign in at the public URL of the server only', async ({ page, start }) => {
  const server = await start({ publicURL: 'https://knowhow.example.com' });
  await page.goto(server.url + '/#/sources');
  await expect(page.getByRole('link', { name: 'https://knowhow.example.com/' })).toHaveAttribute('href', 'https://knowhow.example.com/#/sources');
  await expect(signIn(page)).toBeHidden();
});
