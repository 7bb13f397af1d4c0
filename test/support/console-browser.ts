// A Chromium that is signed in to the console of a whole installation, with everything it complains about.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { waitFor } from './waiting.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];

export function findChromium(): string | null {
  for (const name of NAMES) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      // The next one.
    }
  }
  return null;
}

export async function openChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...FLAGS, '--disable-component-update', '--disable-sync'] });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, of the console and of the policy, since the last look. */
  complaints(): Promise<string[]>;
}

/** An answer that refuses is shown by the page, and Chromium notes it too: that is no complaint. */
const REFUSED = /Failed to load resource: the server responded with a status of (401|402|403|404|429|503)/;

/** Notes what the page's policy kept from it. */
const NOTE_BREACHES = `globalThis.breaches = [];
addEventListener('securitypolicyviolation', ({ violatedDirective }) => globalThis.breaches.push(violatedDirective));`;

export async function openPage(browser: Browser, options: { width: number; dark?: boolean }): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: options.width, height: 900 },
    colorScheme: options.dark === true ? 'dark' : 'light',
  });
  const page = await context.newPage();
  let said: string[] = [];
  page.on('pageerror', ({ message }) => said.push(`error: ${message}`));
  page.on('console', (line) => {
    if (['error', 'warning'].includes(line.type()) && !REFUSED.test(line.text())) said.push(`console: ${line.text()}`);
  });
  await page.addInitScript({ content: NOTE_BREACHES });
  return {
    page,
    complaints: async () => {
      const breaches = (await page.evaluate('globalThis.breaches.splice(0)')) as string[];
      const all = [...said, ...breaches.map((directive) => `policy: ${directive}`)];
      said = [];
      return all;
    },
  };
}

/** By keyboard alone. */
export async function signIn({ page }: WatchedPage, url: string, token: string): Promise<void> {
  await page.goto(`${url}/console`);
  await page.getByLabel('Access token').focus();
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.locator('#main').waitFor();
}

/** Opens a screen by its address, once nothing is loading. */
export async function openScreen({ page }: WatchedPage, url: string, screen: string): Promise<void> {
  await page.goto(`${url}/console/${screen}`);
  await page.locator('#main h1').waitFor();
  await waitFor(
    `${screen} to be there`,
    () => page.locator('.waiting, [aria-busy=true]').count(),
    (loading) => loading === 0,
  );
}

/** The texts of a table's cells, row by row, once all rows are in the page. */
export async function cellsOf({ page }: WatchedPage, name: string): Promise<string[][]> {
  const table = page.getByRole('table', { name, exact: true }).first();
  await table.waitFor();
  await waitFor(
    `all rows of ${name}`,
    () => table.locator('.not-drawn').count(),
    (missing) => missing === 0,
  );
  return table
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => [...row.children].map((cell) => (cell as { innerText: string }).innerText)),
    );
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Run by the debugger, which no policy of the page keeps out. */
export async function findBarriers({ page }: WatchedPage): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const expression = `${AXE};axe.run({resultTypes:['violations']}).then(({violations}) =>
    violations.map(({id, nodes}) => id + ': ' + nodes.map(({html}) => html.slice(0, 160)).join(' | ')))`;
  const { result } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  await session.detach();
  return result.value as string[];
}
