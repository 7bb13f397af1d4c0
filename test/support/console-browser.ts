// A Chromium that is signed in to the console of a whole installation, and collects everything that the browser
// complains about.

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
      // Try the next program.
    }
  }
  return null;
}

export async function openChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...FLAGS, '--disable-component-update', '--disable-sync'] });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, of the console and of the content security policy, since the last call. */
  complaints(): Promise<string[]>;
}

/** Chromium also logs refused requests. The page shows them itself, so they are not complaints. */
const REFUSED = /Failed to load resource: the server responded with a status of (401|402|403|404|429|503)/;

/** Records what the content security policy of the page blocked. */
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

/** Signs in with the keyboard only. */
export async function signIn({ page }: WatchedPage, url: string, token: string): Promise<void> {
  await page.goto(`${url}/console`);
  await page.getByLabel('Access token').focus();
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.locator('#main').waitFor();
}

/** Opens a screen by its address, and waits until nothing is loading. */
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

/** Runs the check through the debugger, which the content security policy does not block. */
export async function findBarriers({ page }: WatchedPage): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const expression = `${AXE};axe.run({resultTypes:['violations']}).then(({violations}) =>
    violations.map(({id, nodes}) => id + ': ' + nodes.map(({html}) => html.slice(0, 160)).join(' | ')))`;
  const { result } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  await session.detach();
  return result.value as string[];
}
