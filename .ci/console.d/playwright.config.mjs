import { defineConfig } from '@playwright/test';

const work = process.env.CONSOLE_WORK;

// A test waits for conditions. The limits are for a slow and busy machine.
export default defineConfig({
  testDir: '.',
  outputDir: `${work}/results`,
  globalSetup: './setup.mjs',
  fullyParallel: true,
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 20_000 },
  reporter: [['list']],
  forbidOnly: true,
  use: {
    browserName: 'chromium',
    screenshot: 'only-on-failure',
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    launchOptions: {
      executablePath: process.env.CONSOLE_CHROMIUM,
      // Debian's Chromium cannot use its sandbox as root. No name can be resolved, so
      // that a request that must not be made does not leave this machine either.
      args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
    },
  },
});
