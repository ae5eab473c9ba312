// What all tests of the console share. After each test it is checked that the page sent
// nothing to another host, ran no script of a document and reported no error.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test as base, expect } from '@playwright/test';
import { serve } from './server.mjs';

export { expect };

export const test = base.extend({
  // origin is the address of the server that the page uses: by default that of setup.js.
  origin: [process.env.CONSOLE_URL, { option: true }],

  // expected has patterns of messages in the browser's console that a test causes. The
  // page asks for each document whether there is an original file.
  expected: async ({}, use) => { await use([/status of 404 .*\/console\/file\?/]); },

  // servers starts servers that end with the test.
  servers: async ({}, use) => {
    const started = [];
    await use({ start: async (...args) => { const s = await serve(...args); started.push(s); return s; } });
    await Promise.all(started.map(s => s.stop()));
  },

  context: async ({ context, expected }, use, info) => {
    const log = [], problems = [];
    const note = (text, isProblem) => {
      log.push(text);
      if (isProblem) problems.push(text);
    };
    context.on('request', r => {
      const { protocol, hostname } = new URL(r.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && hostname !== '127.0.0.1') note(`request to another host: ${r.url()}`, true);
    });
    context.on('console', m => note(`${m.type()}: ${m.text()} (${m.location().url})`, m.type() === 'error' || m.type() === 'warning'));
    context.on('weberror', e => note(`exception: ${e.error().stack}`, true));
    context.on('dialog', d => { note(`dialog: ${d.message()}`, true); d.dismiss(); });
    await use(context);
    for (const page of context.pages()) {
      if (await page.evaluate(() => Object.hasOwn(window, 'attacked')).catch(() => false)) note('a script of a document ran', true);
    }
    if (info.status !== info.expectedStatus) await info.attach('console', { body: log.join('\n') || 'nothing' });
    expect(problems.filter(p => !expected.some(e => e.test(p))), 'the console of the browser').toEqual([]);
  },
});

// open opens an address of the console and gives the token, if the page asks for it.
export async function open(page, url, token) {
  await page.goto(url);
  if (token === undefined) return;
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.getByRole('button', { name: 'Continue' }).click();
}

// query returns the search field.
export const query = page => page.getByRole('searchbox', { name: 'Search' });

// search types words into the search field and presses Enter.
export async function search(page, words) {
  await query(page).fill(words);
  await query(page).press('Enter');
}

// hit returns the link with the title of a document in the results.
export const hit = (page, title) => page.getByRole('main').getByRole('link', { name: title }).first();

const axe = readFileSync(path.join(process.env.CONSOLE_WORK, '../node_modules/axe-core/axe.min.js'), 'utf8');

// violations returns what axe finds.
export async function violations(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => (await window.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  })).violations.map(v => `${v.id}: ${v.nodes.map(n => n.target + ' ' + n.any.map(a => a.message)).join('; ')}`));
}

// beside returns the elements that are beside the screen.
export const beside = page => page.evaluate(() => {
  const width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 150));
});
