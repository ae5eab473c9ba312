import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, hit, open, query, search, test, violations } from './console.mjs';
import { access, folder, indexed } from './server.mjs';

const refused = /status of 401|status of 403/;
const unknownTool = /status of 400 \(Bad Request\) \(.*\/mcp\)/;
const dropped = /ERR_FAILED|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|Failed to load resource/;
const token = page => page.getByLabel('Token', { exact: true });

// sources writes two folders and returns their paths.
function sources() {
  const work = folder('sources');
  const write = (label, name, text) => {
    mkdirSync(path.join(work, label), { recursive: true });
    writeFileSync(path.join(work, label, name), text);
  };
  write('kitchen', 'soup.md', '# Soup of the day\n\nThe soup has turnips.\n');
  write('salaries', 'staff.md', '# Secret salaries\n\nThe cook earns turnips.\n');
  write('salaries', '.hidden', 'secret');
  return ['kitchen', 'salaries'].map(label => path.join(work, label));
}

test('a server without a token asks for none, also at an address like that of a sign-on', async ({ page, origin }) => {
  await page.goto(origin + '/?code=x&state=y#/search?q=holidays');
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
  await expect(token(page)).toBeHidden();
});

test('a token is asked for, kept for the tab, and asked for again if it is wrong', async ({ page, context, servers, expected }) => {
  expected.push(refused);
  const server = await servers.start(['--token', 's3cret-of-the-server', ...sources()]);
  await indexed(server, 's3cret-of-the-server');
  await open(page, server.url + '/', 'wrong');
  await expect(page.locator('#ask-token').getByText('This token is wrong.')).toBeVisible();
  await expect(token(page)).toHaveAccessibleDescription(/^This token is wrong. Enter all of it, or ask/);
  await expect(token(page)).toBeFocused();
  await expect(page.getByRole('main')).not.toContainText('kitchen');
  await token(page).fill('s3cret-of-the-server');
  await token(page).press('Enter');
  await expect(token(page)).toBeHidden();
  await search(page, 'turnips');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  await page.reload();
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  expect(page.url()).not.toContain('s3cret');
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(token(other)).toBeVisible();
  await expect(hit(other, 'Soup of the day')).toBeHidden();
});

test('users see what they may read and nothing else, also when their rights change', async ({ browser, page, servers, expected }) => {
  expected.push(refused, unknownTool);
  const data = folder('data');
  const ann = access(data, 'add', 'ann', '--read', 'kitchen'), bob = access(data, 'add', 'bob', '--read', 'salaries');
  const server = await servers.start(['--tools', 'search,fess,kb', ...sources(), 'kb'], { data });
  await indexed(server, ann);
  const answers = []; // all that ann's browser gets
  page.on('response', r => r.text().then(text => answers.push(text), () => {}));
  await open(page, server.url + '/', ann);
  await search(page, 'turnips');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('Secret salaries');
  for (const view of ['sources', 'notes', 'connect']) {
    await page.goto(`${server.url}/#/${view}`);
    await expect(page.getByRole('main').getByRole('heading').first()).toBeVisible();
    await expect(page.locator('body')).not.toContainText('salaries');
  }
  expect(answers.filter(a => /salaries/.test(a))).toEqual([]);

  const others = await browser.newContext();
  const page2 = await others.newPage();
  await open(page2, server.url + '/', bob);
  await search(page2, 'turnips');
  const secret = hit(page2, 'Secret salaries');
  await expect(secret).toBeVisible();
  await expect(page2.getByRole('main')).not.toContainText('Soup of the day');
  const address = await secret.getAttribute('href');
  await others.close();

  await page.goto(new URL(address, server.url).href); // a document of bob
  await expect(page.getByRole('main')).not.toContainText('The cook earns');

  access(data, 'set', 'ann', '--read', 'salaries');
  await search(page, 'turnips'); // without loading the page anew
  await expect(hit(page, 'Secret salaries')).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('Soup of the day');
  access(data, 'rm', 'ann');
  await search(page, 'cook');
  await expect(token(page)).toBeVisible();
  await expect(page.locator('body')).not.toContainText('Secret salaries');
});

test('a user who may write to a collection and not read it adds notes to it', async ({ page, servers, expected }) => {
  expected.push(refused);
  const data = folder('data'), wim = access(data, 'add', 'wim', '--write', 'inbox');
  const server = await servers.start(['--tools', 'search,kb', 'kb'], { data });
  await open(page, server.url + '/#/notes', wim);
  await page.getByRole('link', { name: 'New note' }).click();
  await expect(page.getByText('You may write to a collection that you may not read.')).toBeVisible();
});

test('while the server is away, the page says so; it goes on when the server is back', async ({ page, servers, expected }) => {
  expected.push(dropped);
  const folders = sources();
  const server = await servers.start(folders);
  await indexed(server);
  await open(page, `${server.url}/#/sources`);
  await expect(page.getByRole('heading', { name: 'kitchen' })).toBeVisible();
  await server.kill();
  const away = page.getByText(/does not answer|connection .*lost/i).filter({ visible: true }).first();
  await expect(away).toBeVisible();
  await expect(page.getByRole('heading', { name: 'kitchen' })).toBeVisible(); // what was shown stays
  writeFileSync(path.join(folders[0], 'bread.md'), '# Bread\n');
  const again = await servers.start(folders, { data: server.data, port: server.port });
  await indexed(again);
  await expect(away).toBeHidden({ timeout: 40_000 });
  await expect(page.getByRole('main')).toContainText('2 documents');
});

test('a search while the server is away fails with a message, and works afterwards', async ({ page, servers, expected }) => {
  expected.push(dropped);
  const folders = sources();
  const server = await servers.start(folders);
  await indexed(server);
  await open(page, server.url + '/');
  await expect(query(page)).toBeVisible();
  await server.kill();
  await search(page, 'turnips');
  await expect(page.getByText(/does not answer/)).toBeVisible();
  const again = await servers.start(folders, { data: server.data, port: server.port });
  await indexed(again);
  await search(page, 'soup');
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  await expect(page.getByText(/does not answer/)).toBeHidden();
});

test('a search and a document that could not be shown are shown when the server is back', async ({ page, servers, expected }) => {
  expected.push(dropped);
  const folders = sources();
  let server = await servers.start(folders);
  await indexed(server);
  const away = page.getByRole('heading', { level: 1, name: 'No connection' });
  const restart = async () => { server = await servers.start(folders, { data: server.data, port: server.port }); };
  await open(page, `${server.url}/#/search?q=turnips`);
  await expect(hit(page, 'Soup of the day')).toBeVisible();
  const address = await hit(page, 'Soup of the day').getAttribute('href');

  await server.kill();
  await search(page, 'cook');
  await expect(away).toBeVisible();
  await expect(page.getByText('Searching…')).toHaveCount(0);
  await expect(page.locator('.hit')).toHaveCount(0); // they were those of another query
  expect(await violations(page)).toEqual([]);
  await restart();
  await expect(hit(page, 'Secret salaries')).toBeVisible(); // by itself
  await expect(away).toBeHidden();

  await server.kill();
  await page.evaluate(to => { location.hash = to; }, address);
  await expect(away).toBeVisible();
  await restart();
  await expect(page.getByRole('heading', { level: 1, name: 'Soup of the day' })).toBeVisible();

  await page.route('**/healthz', route => route.abort()); // it does not go on by itself
  for (const again of [() => query(page).press('Enter'), () => page.getByRole('button', { name: 'Try again' }).click()]) {
    await page.goto(`${server.url}/#/search?q=turnips`);
    await expect(hit(page, 'Soup of the day')).toBeVisible();
    await server.kill();
    await page.evaluate(() => { location.hash = '#/search?q=cook'; });
    await expect(away).toBeVisible();
    await restart();
    await again();
    await expect(hit(page, 'Secret salaries')).toBeVisible();
  }
});

test('a message about the original file disappears at the next action', async ({ page, origin, expected }) => {
  expected.push(dropped);
  await open(page, origin + '/#/read?path=on-call.md');
  const original = page.getByRole('button', { name: 'Original' });
  await expect(original).toBeVisible();
  await page.route('**/console/file?*', route => route.abort());
  await original.click();
  await expect(page.getByText(/does not answer/)).toBeVisible();
  await page.unroute('**/console/file?*');
  await original.click();
  await expect(page.getByText(/does not answer/)).toBeHidden();
});
