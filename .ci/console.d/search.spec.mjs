import { expect, open, query, test } from './console.mjs';

test('a search finds a passage and opens it', async ({ page, origin }) => {
  await open(page, origin);
  await query(page).fill('how many days of holidays');
  await query(page).press('Enter');
  const hit = page.getByRole('link', { name: 'Holidays and leave' }).first();
  await expect(hit).toBeVisible();
  await hit.click();
  await expect(page.getByRole('heading', { level: 1, name: 'Holidays and leave' })).toBeVisible();
  await expect(page.getByText('30 days of paid').first()).toBeInViewport();
});
