import { expect, hit, open, search, test } from './console.mjs';
import { access, folder } from './server.mjs';

// drop drops files on an element as a person does.
async function drop(target, files) {
  const data = await target.page().evaluateHandle(files => {
    const d = new DataTransfer();
    for (const [name, type, text] of files) d.items.add(new File([text], name, { type }));
    return d;
  }, files);
  await target.dispatchEvent('dragover', { dataTransfer: data });
  await target.dispatchEvent('drop', { dataTransfer: data });
}

const row = (page, name) => page.getByRole('table', { name: 'Notes and files' }).getByRole('row').filter({ hasText: name });

test('a note is written, found, changed and deleted', async ({ page, servers }) => {
  const server = await servers.start(['--tools', 'search,kb', 'kb']);
  await open(page, server.url + '/#/notes');
  await expect(page.getByText('Nothing has been added yet')).toBeVisible();
  await page.getByRole('link', { name: 'New note' }).click();
  await page.getByLabel('Title').fill('Coffee machine');
  await page.getByLabel('Text in Markdown').fill('## Cleaning\n\nRinse the *grinder* on Fridays.\n\n<img src=x onerror="attacked=1">\n');
  await page.getByLabel('Tags').fill('kitchen');
  await expect(page.getByRole('region', { name: 'Preview' }).getByRole('heading', { name: 'Cleaning' })).toBeVisible();
  await page.reload(); // what is not saved is kept
  await expect(page.getByLabel('Title')).toHaveValue('Coffee machine');
  await page.getByRole('button', { name: 'Save' }).click();
  await row(page, 'Coffee machine').getByRole('link', { name: 'Coffee machine' }).click();
  await expect(page.getByRole('heading', { name: 'Cleaning' })).toBeVisible();

  await search(page, 'grinder');
  await expect(hit(page, 'Coffee machine')).toBeVisible();
  await page.goBack();

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Text in Markdown').fill('Rinse the hopper on Mondays.');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Rinse the hopper on Mondays.')).toBeVisible();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText(/Nothing/).first()).toBeVisible();
  await expect(row(page, 'Coffee machine')).toHaveCount(0);
});

test('files are uploaded by drag and drop and with the button', async ({ page, servers }) => {
  const server = await servers.start(['--tools', 'search,kb', 'kb']);
  await open(page, server.url + '/#/notes');
  await expect(page.getByText('Nothing has been added yet')).toBeVisible();
  await drop(page.getByRole('main'), [['menu.md', 'text/markdown', '# Menu\n\nToday: quinces.\n'], ['empty.bin', '', '\u0000\u0001']]);
  await expect(row(page, 'Menu')).toBeVisible();
  await expect(page.getByRole('table', { name: 'Jobs' }).getByRole('row').filter({ hasText: 'empty.bin' })).toContainText(/not|unknown|format/i);
  await drop(page.getByRole('main'), [['page.pdf', 'application/pdf', '<p>Not found'], ['void.txt', 'text/plain', '']]);
  const job = name => page.getByRole('table', { name: 'Jobs' }).getByRole('row').filter({ hasText: name });
  await expect(job('page.pdf')).toContainText('File that is not a PDF document, whatever its name is: save or download it again.');
  await expect(job('void.txt')).toContainText('the file is empty');
  await expect(row(page, 'Menu')).toContainText('Text and Markdown');
  await page.reload(); // those that failed can be removed for good, and do not stand above the title
  await expect(page.locator('h1 ~ .jobs, .head ~ .jobs')).toBeVisible();
  await page.getByText(/^Jobs: 2 failed/).click();
  await job('empty.bin').getByRole('button', { name: 'Remove' }).click();
  await job('page.pdf').getByRole('button', { name: 'Remove' }).click();
  await expect(page.locator('summary').getByText(/^Jobs$/)).toBeVisible();
  await page.reload();
  await expect(page.locator('summary').getByText(/^Jobs$/)).toBeVisible();
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Upload files' }).click();
  await (await chooser).setFiles([{ name: 'prices.csv', mimeType: 'text/csv', buffer: Buffer.from('dish,price\nmedlar,4\n') }]);
  await expect(row(page, 'prices.csv')).toBeVisible();
  await search(page, 'medlar');
  await expect(hit(page, /prices/)).toBeVisible();
});

test('a text is kept while the server is away', async ({ page, servers, expected }) => {
  expected.push(/ERR_|Failed to load resource/);
  const server = await servers.start(['--tools', 'search,kb', 'kb']);
  await open(page, server.url + '/#/notes?edit=new');
  await page.getByLabel('Text in Markdown').fill('# Lunch\n\nAt noon.');
  await server.kill();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(/does not answer/).first()).toBeVisible();
  await servers.start(['--tools', 'search,kb', 'kb'], { data: server.data, port: server.port });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(row(page, 'Lunch')).toBeVisible();
});

test('the text of a note that was deleted meanwhile becomes a new note', async ({ page, servers, expected }) => {
  expected.push(/status of 404/);
  const server = await servers.start(['--tools', 'search,kb', 'kb']);
  await open(page, server.url + '/#/notes?edit=new');
  await page.getByLabel('Text in Markdown').fill('# Lunch\n\nAt noon.\n\n| a | b |\n|---|---|\n| 1 | 2 |');
  await page.getByRole('button', { name: 'Save' }).click();
  await row(page, 'Lunch').getByRole('link', { name: 'Lunch' }).click();
  await expect(page.getByRole('cell', { name: '1' })).toHaveCSS('padding-left', '9.6px');
  await expect(page.getByRole('columnheader', { name: 'a' })).toHaveCSS('font-size', '16px');
  await page.getByRole('link', { name: 'Edit' }).click();
  const text = page.getByLabel('Text in Markdown'), collection = page.getByLabel('Collection'), tags = page.getByLabel('Tags');
  await text.fill('At one, with quinces.');
  expect((await collection.boundingBox()).y).toBeCloseTo((await tags.boundingBox()).y, 0);
  const id = new URL(page.url()).hash.match(/edit=(\d+)/)[1];
  expect((await fetch(`${server.url}/kb/api/v1/documents/${id}`, { method: 'DELETE' })).ok).toBe(true);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('The document was deleted after you opened it.')).toBeVisible();
  await expect(text).toHaveValue('At one, with quinces.');
  await page.reload();
  await expect(page.getByText('At one, with quinces.')).toBeVisible();
  await page.getByRole('button', { name: 'Save as a new note' }).click();
  await row(page, 'Lunch').getByRole('link', { name: 'Lunch' }).click();
  await expect(page.getByText('At one, with quinces.')).toBeVisible();
  expect(await page.evaluate(() => Object.keys(sessionStorage).filter(k => k.startsWith('draft ')))).toEqual([]);
});

test('a token that ends while one writes is asked for again, and the text is kept', async ({ page, servers, expected }) => {
  expected.push(/status of 401/);
  const data = folder('data'), writer = access(data, 'add', 'writer', '--read', '*', '--write', '*');
  const server = await servers.start(['--tools', 'search,kb', 'kb'], { data });
  await open(page, server.url + '/#/notes?edit=new', writer);
  await page.getByLabel('Text in Markdown').fill('# Lunch\n\nAt noon.');
  const again = access(data, 'rotate', 'writer');
  await expect.poll(async () => (await fetch(server.url + '/console/status', { headers: { Authorization: `Bearer ${writer}` } })).status).toBe(401);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.locator('#ask-token')).toContainText('This token is no longer accepted. Enter it again, or ask for a new one. What you have not saved is kept in this tab.');
  await page.getByLabel('Token', { exact: true }).fill(again);
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page.getByLabel('Text in Markdown')).toHaveValue('# Lunch\n\nAt noon.');
});

test('who may only read gets no way to write', async ({ page, servers, expected }) => {
  expected.push(/status of 401/);
  const data = folder('data'), reader = access(data, 'add', 'reader', '--read', '*');
  const server = await servers.start(['--tools', 'search,kb', 'kb'], { data });
  await open(page, server.url + '/#/notes', reader);
  await expect(page.getByText('Nothing has been added yet that you may read.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'New note' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Upload files' })).toHaveCount(0);
});
