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

test('who may only read gets no way to write', async ({ page, servers, expected }) => {
  expected.push(/status of 401/);
  const data = folder('data'), reader = access(data, 'add', 'reader', '--read', '*');
  const server = await servers.start(['--tools', 'search,kb', 'kb'], { data });
  await open(page, server.url + '/#/notes', reader);
  await expect(page.getByText('Nothing has been added yet that you may read.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'New note' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Upload files' })).toHaveCount(0);
});
