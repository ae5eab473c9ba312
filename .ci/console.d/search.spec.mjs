import { expect, hit, open, query, search, test } from './console.mjs';

test('a search finds a passage and opens it', async ({ page, origin }) => {
  await open(page, origin);
  await search(page, 'how many days of holidays');
  await hit(page, 'Holidays and leave').click();
  await expect(page.getByRole('heading', { level: 1, name: 'Holidays and leave' })).toBeVisible();
  await expect(page.getByText('30 days of paid').first()).toBeInViewport();
});

test('what is typed before the server answers is searched', async ({ page, origin }) => {
  let release;
  const held = new Promise(done => { release = done; });
  await page.route('**/console/status', async route => { await held; await route.continue(); });
  await open(page, origin);
  await search(page, 'parental leave');
  release();
  await expect(query(page)).toHaveValue('parental leave');
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
});
