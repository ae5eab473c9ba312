import path from 'node:path';
import { expect, hit, open, search, test } from './console.mjs';

// The pictures of the README and of docs/console.md. .ci/console -pictures writes them to
// assets.
test.use({ viewport: { width: 1160, height: 720 } });

for (const colorScheme of ['light', 'dark']) {
  test(`pictures in ${colorScheme} colours`, async ({ page, origin }, info) => {
    const folder = process.env.CONSOLE_PICTURES || info.outputDir;
    const picture = async name => {
      await page.mouse.move(0, 0);
      // The folders and the port are those of every reader, not of this run.
      await page.evaluate(([work, origin]) => {
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let n; (n = texts.nextNode());) n.data = n.data.replaceAll(work, '/srv').replaceAll(origin, 'http://127.0.0.1:7411');
      }, [process.env.CONSOLE_WORK, origin]);
      await page.screenshot({ path: path.join(folder, `${name}${colorScheme === 'dark' ? '-dark' : ''}.png`), animations: 'disabled', caret: 'hide' });
    };
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await open(page, origin);
    await search(page, 'restore a backup of the shop');
    await expect(hit(page, 'Backups')).toBeVisible();
    await picture('console');
    await hit(page, 'Backups').click();
    await expect(page.getByRole('heading', { level: 1, name: 'Backups' })).toBeVisible();
    await picture('console-read');
    await page.goto(origin + '/#/sources');
    await expect(page.getByRole('heading', { name: 'handbook' })).toBeVisible();
    await picture('console-sources');
    await page.goto(origin + '/#/connect');
    await expect(page.getByRole('heading', { name: 'Clients' })).toBeVisible();
    await picture('console-connect');
  });
}
