import { expect, open, query, search, test } from './console.mjs';
import { writeLarge } from './documents.mjs';
import { folder, indexed } from './server.mjs';

// made returns what a page must not have made from the text of a document: elements that
// load or run something, attributes with scripts, and links with other schemes.
const made = page => page.evaluate(() => {
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = e.tagName === 'SCRIPT' && e.parentNode === document.body;
    if (/^(script|style|iframe|object|embed|img|link|base|meta|video|audio|source)$/i.test(e.tagName) && !own) found.push(e.outerHTML.slice(0, 200));
    for (const a of e.attributes) {
      if (/^(on|style$|srcdoc|srcset|formaction|background)/i.test(a.name)) found.push(`${e.tagName} ${a.name}=${a.value}`);
      if (/^(href|src|action|xlink:href)$/i.test(a.name) && !['http:', 'https:', 'mailto:'].includes(new URL(a.value, location.href).protocol)) {
        found.push(`${e.tagName} ${a.name}=${a.value}`);
      }
    }
  }
  return found;
});

// titles are the links of the results.
const titles = page => page.getByRole('main').getByRole('heading', { level: 2 }).getByRole('link');

test('documents run no script and send no request, in results and as a document', async ({ page, origin }) => {
  await open(page, origin);
  await search(page, 'pelican');
  await expect(titles(page)).toHaveCount(8);
  expect(await made(page)).toEqual([]);
  const addresses = await titles(page).evaluateAll(links => links.map(l => l.href));
  for (const address of addresses) {
    await page.goto(address);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expect(page.getByRole('main')).toContainText('pelican');
    expect(await made(page), address).toEqual([]);
    for (const summary of await page.locator('summary').all()) await summary.click();
  }
});

test('the page stays responsive with large documents and those that take a parser long', async ({ page, servers }) => {
  const documents = folder('large');
  writeLarge(documents);
  const server = await servers.start([documents]);
  await indexed(server, undefined, 8);
  for (const words of ['flamingo', 'cormorant']) {
    await open(page, server.url + '/');
    await search(page, words);
    await expect(titles(page).first()).toBeVisible();
    for (const address of await titles(page).evaluateAll(links => links.map(l => l.href))) {
      await page.goto(address);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await expect(page.getByRole('main')).toContainText(words);
      const { elements, characters } = await page.evaluate(() =>
        ({ elements: document.querySelectorAll('*').length, characters: document.body.innerText.length }));
      expect(elements).toBeLessThan(20_000);
      expect(characters).toBeLessThan(500_000);
      await page.keyboard.press('/');
      await expect(query(page)).toBeFocused();
    }
  }
});

test('notes of long lines and of many marks do not stop the page', async ({ page, servers }) => {
  test.setTimeout(120_000);
  const server = await servers.start(['--tools', 'search,kb', 'kb']);
  const add = async body => {
    const { job_id: id } = await (await fetch(server.url + '/kb/api/v1/jobs', body)).json();
    for (;;) {
      const job = await (await fetch(server.url + '/kb/api/v1/jobs/' + id)).json();
      if (job.status === 'done') return job.document_id;
      expect(job.error).toBe('');
      await new Promise(done => setTimeout(done, 50));
    }
  };
  const note = text => add({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ type: 'note', text }) });
  const form = new FormData();
  form.append('file', new File(['# Marks of a heron\n\nz' + '\u0301'.repeat(500_000) + ' heron\n'], 'marks.md', { type: 'text/markdown' }));
  const file = await add({ method: 'POST', body: form });
  const marks = await note('A heron\n\nz' + '\u0301'.repeat(500_000) + ' heron'), line = await note('# Line of a heron\n\n' + 'heron '.repeat(600_000));
  const quotes = await note('# Quotes of a heron\n\n' + '> '.repeat(1_900_000));
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver(list => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({ type: 'longtask' });
  });
  const tame = async address => expect(await page.evaluate(() => new Promise(done => setTimeout(() => done(window.longest), 300))), address).toBeLessThan(5000);
  for (const id of [file, marks, line, quotes]) {
    for (const address of [`id=${id}`, `edit=${id}`].slice(0, id === file ? 1 : 2)) {
      await page.goto('about:blank');
      await page.goto(`${server.url}/#/notes?${address}`);
      await expect(page.getByRole('main').getByRole('heading', { level: 1 })).toBeVisible();
      await tame(address);
    }
  }
  await page.goto(`${server.url}/#/notes?id=${line}`);
  await expect(page.getByText('of 3,600,')).toBeVisible();
  await page.getByRole('button', { name: 'Show more of the text' }).click();
  await tame('more');
  expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(500_000);

  await page.getByRole('link', { name: 'Edit' }).click(); // what cannot be edited here is edited elsewhere
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download the text' }).click();
  expect((await download).suggestedFilename()).toMatch(/\.md$/);
  await page.getByLabel('Text in Markdown').setInputFiles({ name: 'line.md', mimeType: 'text/markdown', buffer: Buffer.from('# Line of a heron\n\nIt is short now.\n') });
  await expect(page.getByText('line.md replaces the text when you save.')).toBeVisible();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('link', { name: 'Edit' })).toBeVisible(); // it is saved
  await expect(page.getByText('It is short now.')).toBeVisible();
});

test('the policy of the page permits no other script', async ({ page, origin, expected }) => {
  expected.push(/This document requires 'Trusted/);
  const response = await page.goto(origin);
  const policy = response.headers()['content-security-policy'];
  expect(policy).not.toContain('unsafe');
  expect(policy).toContain("default-src 'none'");
  for (const act of [
    () => { document.body.innerHTML = '<b>x</b>'; },
    () => { document.body.setAttribute('onclick', 'attacked = 1'); },
    () => { document.createElement('script').text = 'attacked = 1'; },
  ]) await expect(page.evaluate(act)).rejects.toThrow(/This document requires 'Trusted/);
});
