import { beside, expect, hit, open, query, test, violations } from './console.mjs';

// views are the views of the console, each with what shows that it is complete.
const views = {
  start: { address: '/', shown: page => query(page) },
  search: { address: '/#/search?q=how+many+holidays', shown: page => hit(page, 'Holidays and leave') },
  nothing: { address: '/#/search?q=zzzqqqxxx', shown: page => page.getByRole('main').getByText(/nothing|no /i).first() },
  refused: { address: '/#/search?q=%22', shown: page => page.getByText('Write at least one word.') },
  missing: { address: '/#/no-such', shown: page => page.getByRole('heading', { name: 'There is no such page' }) },
  comment: { address: '/#/read?path=service/retry.go&q=requests+attempts', shown: page => page.locator('.comment mark').first() },
  pages: { address: '/#/read?path=expenses.pdf&page=2', shown: page => page.getByRole('heading', { name: 'Page 2' }) },
  sources: { address: '/#/sources', shown: page => page.getByRole('heading', { name: 'handbook' }) },
  notes: { address: '/#/notes', shown: page => page.getByRole('main').getByRole('heading').first() },
  connect: { address: '/#/connect', shown: page => page.getByRole('main').getByRole('heading').first() },
};

// show opens a view; read is the document of the first hit.
async function show(page, origin, name) {
  const view = views[name === 'read' ? 'search' : name];
  await open(page, origin + view.address);
  await expect(view.shown(page)).toBeVisible();
  if (name !== 'read') return;
  await view.shown(page).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Holidays and leave' })).toBeVisible();
}

for (const colorScheme of ['light', 'dark']) {
  test.describe(() => {
    test.use({ colorScheme });
    for (const name of [...Object.keys(views), 'read']) {
      test(`axe finds nothing: ${name}, ${colorScheme}`, async ({ page, origin }) => {
        await show(page, origin, name);
        expect(await violations(page)).toEqual([]);
      });
    }
  });
}

const screens = {
  'a phone': { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  'a window with 200 % zoom': { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 },
  'a wide screen': { viewport: { width: 2560, height: 1300 } },
};

for (const [screen, use] of Object.entries(screens)) {
  test.describe(() => {
    test.use(use);
    test(`nothing is beside ${screen}, and axe finds nothing`, async ({ page, origin }) => {
      for (const name of [...Object.keys(views), 'read']) {
        await show(page, origin, name);
        expect(await beside(page), name).toEqual([]);
        expect(await violations(page), name).toEqual([]);
      }
    });
  });
}

test('the colours are those of the system', async ({ page, origin }) => {
  const brightness = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0));
  await page.emulateMedia({ colorScheme: 'light' });
  await open(page, origin);
  expect(await brightness()).toBeGreaterThan(600);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(brightness).toBeLessThan(200);
});

test('the page is one small response', async ({ page, browser, origin }) => {
  const paths = [];
  page.on('request', r => paths.push(new URL(r.url()).pathname));
  const response = await page.goto(origin);
  await expect(query(page)).toBeVisible();
  const { responseBodySize } = await response.request().sizes();
  expect(responseBodySize).toBeLessThanOrEqual(150_000);
  expect(paths.filter(p => p !== '/' && !/^\/(console|mcp|kb)\b/.test(p))).toEqual([]);
  // The times are printed and not compared: a busy machine is slower.
  const times = { 'first paint': [], DOMContentLoaded: [], 'ready to search': [] };
  for (let i = 0; i < 10; i++) {
    const context = await browser.newContext(); // with an empty cache
    const fresh = await context.newPage();
    await fresh.addInitScript(() => { // the title of the start page stands below the search field
      new MutationObserver((_, o) => { if (document.querySelector('#view h1')) { window.ready = performance.now(); o.disconnect(); } }).observe(document, { childList: true, subtree: true });
    });
    await fresh.goto(origin);
    await fresh.waitForFunction(() => window.ready && performance.getEntriesByName('first-contentful-paint').length);
    const now = await fresh.evaluate(() => [performance.getEntriesByName('first-contentful-paint')[0].startTime,
      performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd, window.ready]);
    Object.values(times).forEach((list, k) => list.push(now[k]));
    await context.close();
  }
  const median = list => Math.round(list.sort((a, b) => a - b)[list.length >> 1]);
  console.log(`the page has ${responseBodySize} bytes; medians of 10 loads: ${Object.entries(times).map(([k, list]) => `${k} ${median(list)} ms`).join(', ')}`);
});
