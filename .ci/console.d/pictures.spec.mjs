import path from 'node:path';
import { expect, hit, open, search, test } from './console.mjs';
import { indexed, serve } from './server.mjs';

// The pictures of the README and of docs/console.md. .ci/console -pictures writes them to
// assets. Each shows one view.
test.describe.configure({ mode: 'default' }); // with one server
test.use({ viewport: { width: 1000, height: 640 } });

const views = {
  async console(page) {
    await search(page, 'restore a backup of the shop');
    await expect(hit(page, 'Backups')).toBeVisible();
    await expect(page.getByRole('complementary', { name: 'Filters' }).getByRole('checkbox').first()).toBeVisible();
  },
  async 'console-read'(page, origin) {
    await page.goto(origin + '/#/search?q=test+of+a+restore+once+in+a+quarter');
    await hit(page, 'Backups').click();
    await expect(page.locator('.passage').first()).toBeInViewport();
    await expect(page.getByRole('button', { name: 'Original' })).toBeAttached();
  },
  async 'console-sources'(page, origin) {
    await page.goto(origin + '/#/sources');
    await expect(page.getByRole('heading', { name: 'handbook' })).toBeVisible();
  },
  async 'console-notes'(page, origin) {
    await page.goto(origin + '/#/notes');
    await expect(page.getByRole('row').filter({ hasText: 'Coffee machine' })).toBeVisible();
  },
  async 'console-connect'(page, origin) {
    await page.goto(origin + '/#/connect?q=cursor');
    await expect(page.getByRole('link', { name: 'Add to Cursor' })).toBeVisible();
  },
};

// The server has the handbook and a few notes.
const work = process.env.CONSOLE_WORK;
let server;

test.beforeAll(async () => {
  server = await serve(['--tools', 'search,kb', '--description', 'Rules and guides of the company', path.join(work, 'handbook'), 'kb'], { embedder: 'builtin' });
  await indexed(server, undefined, 9);
  for (const [title, text, tags] of [
    ['Coffee machine', 'Rinse the grinder on Fridays.', ['kitchen']],
    ['Rates of the print shop', 'A poster costs 14 euros, a banner 60.', ['marketing', 'prices']],
    ['What we learned from the move', '## Packing\n\nLabel both sides of each box.', ['office']],
  ]) {
    const r = await fetch(server.url + '/kb/api/v1/jobs', { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ type: 'note', title, text, tags: ['collection:company', ...tags] }) });
    if (!r.ok) throw new Error(`${r.status} ${await r.text()}`);
  }
});

test.afterAll(() => server.stop());

const pictures = [...Object.keys(views).map(name => [name, 'light']), ['console', 'dark']];

for (const [name, colorScheme] of pictures) {
  test(`picture of ${name}, ${colorScheme}`, async ({ page }, info) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await open(page, server.url);
    await views[name](page, server.url);
    await page.mouse.move(0, 0);
    // The folders and the port are those of every reader, not of this run.
    await page.evaluate(([work, url]) => {
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let n; (n = texts.nextNode());) n.data = n.data.replaceAll(work, '/srv').replaceAll(url, 'http://127.0.0.1:7411');
    }, [work, server.url]);
    const file = name + (colorScheme === 'dark' ? '-dark' : '') + '.png';
    await page.screenshot({ path: path.join(process.env.CONSOLE_PICTURES || info.outputDir, file), animations: 'disabled', caret: 'hide' });
  });
}
