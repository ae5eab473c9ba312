import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, hit, open, search, test } from './console.mjs';
import { dataset, folder, indexed } from './server.mjs';

test('the sources are shown live, with what is left out', async ({ page, servers }) => {
  const work = folder('sources'), garden = path.join(work, 'garden');
  mkdirSync(garden);
  writeFileSync(path.join(garden, 'roses.md'), '# Roses\n');
  writeFileSync(path.join(garden, 'photo.jpg'), Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]));
  for (let i = 0; i < 120; i++) writeFileSync(path.join(garden, `.secret-${i}`), 'x');
  const server = await servers.start([garden]);
  await indexed(server);
  await open(page, server.url + '/#/sources');
  const source = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'garden' }) });
  const documents = source.locator('dt', { hasText: 'Documents' }).locator('xpath=following-sibling::dd');
  await expect(documents).toHaveText('1');
  writeFileSync(path.join(garden, 'tulips.md'), '# Tulips\n'); // the page sees it by itself
  await expect(documents).toHaveText('2');
  rmSync(path.join(garden, 'roses.md'));
  await expect(documents).toHaveText('1');

  await source.getByRole('button', { name: /left out/ }).click();
  const paths = source.getByRole('table').getByRole('row');
  await expect(source.getByText('1 to 50 of 121')).toBeVisible();
  await source.getByRole('link', { name: 'Next' }).click();
  await expect(source.getByText('51 to 100 of 121')).toBeVisible();
  await expect(paths.last()).toContainText('begins with a dot');
  await page.goBack();
  await expect(source.getByText('1 to 50 of 121')).toBeVisible();
  await source.getByRole('searchbox').fill('photo');
  await expect(paths).toHaveCount(2); // with the head
  await expect(paths.last()).toContainText('photo.jpg');
  await page.reload(); // the address has the search
  await expect(paths.last()).toContainText('photo.jpg');
  await expect(paths).toHaveCount(2);
});

test('the datasets of a source are listed and searched one by one', async ({ page, servers }) => {
  const work = folder('datasets'), sets = path.join(work, 'sets'), notes = path.join(work, 'notes');
  mkdirSync(notes);
  mkdirSync(path.join(sets, 'broken'), { recursive: true });
  writeFileSync(path.join(notes, 'valves.md'), '# Valves\n\nA valve of a pump.\n');
  dataset(sets, 'All about pumps', 'pumps', notes);
  writeFileSync(path.join(notes, 'valves.md'), '# Valves of pipes\n\nA valve of a pipe.\n');
  dataset(sets, 'All about pipes', 'pipes', notes);
  writeFileSync(path.join(sets, 'broken', 'manifest.json'), '{"id": "broken", "name": "<b>bold</b>",');
  const server = await servers.start([`datasets:${sets}`, notes]);
  await open(page, server.url + '/#/sources');
  const source = page.getByRole('main').locator('.card').filter({ has: page.getByRole('heading', { name: 'datasets' }) });
  await expect(source).toContainText('3 datasets, 1 cannot be searched');
  const of = name => source.locator('.datasets > li').filter({ hasText: name });
  await expect(of('broken')).toContainText('not valid JSON at line 1');
  await expect(of('All about pumps')).toContainText('Texts1');
  rmSync(path.join(sets, 'broken'), { recursive: true }); // the page sees it by itself
  await expect(source).toContainText('2 datasets.');

  await of('All about pumps').getByRole('link', { name: 'Search in the dataset All about pumps' }).click();
  await expect(page.locator('.hit')).toHaveCount(1);
  await search(page, 'valve');
  await expect(page.locator('.hit')).toHaveCount(1);
  await expect(hit(page, 'Valves')).toBeVisible();
  const filter = page.getByRole('group', { name: 'Dataset' });
  await filter.getByRole('checkbox', { name: 'All about pipes' }).check();
  await expect(page.locator('.hit')).toHaveCount(2);
  await filter.getByRole('checkbox', { name: 'All about pumps' }).uncheck();
  await expect(page.locator('.hit')).toHaveCount(1);
  await expect(hit(page, 'Valves of pipes')).toBeVisible();
});

test('the connection is tested, and each client has its command', async ({ page, origin }) => {
  await open(page, origin + '/#/connect');
  await page.getByLabel('Search for').fill('holidays');
  await page.getByRole('button', { name: 'Test the connection' }).click();
  await expect(page.getByText('The connection works.')).toBeVisible();
  await page.getByLabel('Filter the clients').fill('claude code');
  await expect(page.getByRole('main')).toContainText(new RegExp(`(claude|knowhow) .*${origin}/mcp`));
  for (const [client, address] of Object.entries({
    Cursor: /^cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?name=knowhow&config=/, 'VS Code': /^vscode:mcp\/install\?%7B/,
    'LM Studio': /^lmstudio:\/\/add_mcp\?name=knowhow&config=/, Goose: /^goose:\/\/extension\?url=/, Kiro: /^https:\/\/kiro\.dev\/launch\/mcp\/add\?name=knowhow&config=/,
  })) {
    await page.getByLabel('Filter the clients').fill(client);
    await expect(page.getByRole('link', { name: `Add to ${client}` })).toHaveAttribute('href', address);
    await expect(page.getByRole('link', { name: `Documentation of ${client}` })).toHaveAttribute('href', /^https:/);
  }
  await page.getByLabel('Filter the clients').fill('nobody has this client');
  await expect(page).toHaveURL(/q=nobody/);
  await expect(page.getByRole('searchbox', { name: 'Search' })).toHaveValue(''); // this is not a search
  await expect(page.getByText(/^0 clients of/)).toBeVisible();
});

test('clients that start servers or read no variables have what works with them', async ({ page, servers, expected }) => {
  expected.push(/status of 401/);
  const garden = path.join(folder('clients'), 'garden');
  mkdirSync(garden);
  writeFileSync(path.join(garden, 'roses.md'), '# Roses\n');
  const server = await servers.start(['--token', 's3cret-of-the-server', garden]);
  await open(page, server.url + '/#/connect?q=claude desktop', 's3cret-of-the-server');
  const main = page.getByRole('main');
  await expect(main).toContainText(`knowhow connect claude-desktop ${garden}`);
  for (const [client, header] of [['vs code', 'Bearer ${input:knowhow}'], ['zed', 'Bearer TOKEN']]) {
    await page.goto(`${server.url}/#/connect?q=${client}`);
    await expect(main.locator('.snippet code').last()).toContainText(`"Authorization": "${header}"`);
    await expect(main).not.toContainText(/s3cret|without --token-env/);
  }
});

test('the rate and the rest are shown while a source is indexed', async ({ page, origin }) => {
  await page.route('**/console/events', async route => {
    const status = await (await route.fetch({ url: origin + '/console/status' })).json();
    const event = done => `event: status\ndata: ${JSON.stringify({ ...status, sources: [{ ...status.sources[0], indexing: { done, total: 10000 } }] })}\n\n`;
    await route.fulfill({ contentType: 'text/event-stream', body: event(1000 + 100 * requests++) });
  });
  let requests = 0;
  await open(page, origin + '/#/sources');
  await expect(page.getByText(/ of 10,000 documents, [\d.]+ per second, about [\d.]+ (s|min) left/)).toBeVisible({ timeout: 15_000 });
});

test('a link that opens a client is one of those that are known', async ({ page, origin }) => {
  const links = ['javascript:attacked=1', 'cursor://other/mcp/install?name=x', 'vscode:extension/x', 'goose://recipe?x', 'file:///etc/passwd',
    'https://kiro.dev.evil.invalid/launch/mcp/add?name=x', ' vscode:mcp/install?x', null];
  await page.route('**/console/connect', route => route.fulfill({ json: links.map((link, i) => ({ client: `c${i}`, title: `Client ${i}`, link, docs: 'javascript:attacked=1' })) }));
  await open(page, origin + '/#/connect');
  await expect(page.getByText(`${links.length} clients`)).toBeVisible();
  await expect(page.getByRole('link', { name: /^Add to/ })).toHaveCount(0);
  expect(await page.locator('main a[href]').count()).toBe(0);
});
