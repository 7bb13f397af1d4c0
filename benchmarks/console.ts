// `node benchmarks/console.ts [--pictures DIRECTORY]`: how fast the console is in a real Chromium, on the demo with an
// hour of made-up traffic behind it: first paint, data, frames while 10,000 rows are scrolled, and the drawing of 92
// days of four tiers by the hour. With a directory, pictures of every screen, light and dark.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { findChromium, openChromium } from '../test/support/console-browser.ts';
import { findFreePort } from '../test/support/free-port.ts';
import { waitFor } from '../test/support/waiting.ts';
import { endWithThis } from './harness/child-server.ts';
import { cpuNsOf, descendantsOf } from './harness/cpu-time.ts';
import { median } from './harness/median.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ROUNDS = 5;
const ROWS = 10_000;
const DAYS = 92;
const HOUR_MS = 3_600_000;
const SCREENS =
  'overview requests usage routing connect playground keys people limits provider-keys guardrails media webhook ' +
  'audit live organizations catalog policies platform-guardrails operation policies?policy=default ' +
  'guardrails?policy=%2B platform-guardrails?policy=%2B';
/** A listing that has rows to show. */
const PANEL = 'requests?routed=true';
const { values } = parseArgs({ options: { pictures: { type: 'string' } } });

/** The link opens one session, whose cookie other contexts take over. */
let cookies: Awaited<ReturnType<BrowserContext['cookies']>> | null = null;

const executable = findChromium();
if (executable === null) throw new Error('no Chromium is installed here');
const directory = mkdtempSync(join(tmpdir(), 'tollgate-console-'));
const demo = await startDemo();
const browser = await openChromium(executable);
try {
  const { context, page } = await signedIn(browser);
  console.log(`first contentful paint, ms  ${summary(await repeat(() => firstPaintMs(page)))}   (500)`);
  console.log(`overview with its data, ms  ${summary(await repeat(() => dataMs(page, 'overview')))}   (1,000)`);
  console.log(`routing with its data, ms   ${summary(await repeat(() => dataMs(page, 'routing')))}   (1,000)`);
  const { rows, still, productMs } = await framesOfRows(page);
  console.log(`${ROWS} rows, frames a second ${summary(rows, 'least')}   (55)`);
  console.log(`  the same page, not scrolled ${summary(still, 'least')}`);
  console.log(`  CPU of the product, ms/s    ${summary(productMs)}`);
  console.log(`${DAYS} days x 4 tiers, ms     ${summary(await drawingMs(page))}   (100)`);
  await context.close();
  if (values.pictures !== undefined) await takePictures(values.pictures);
} finally {
  await browser.close();
  demo.process.kill('SIGTERM');
  await new Promise((resolve) => demo.process.once('exit', resolve));
  rmSync(directory, { recursive: true, force: true });
}

interface Demo {
  readonly process: ChildProcess;
  readonly url: string;
  readonly link: string;
}

async function startDemo(): Promise<Demo> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const environment = { DATA_DIR: directory, PORT: String(port), ADMIN_PORT: String(adminPort), LOG_LEVEL: 'error' };
  const child = spawn(process.execPath, [join(ROOT, 'bin/tollgate.js'), 'start', '--demo-traffic'], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThis(child);
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const [, link = ''] = await waitFor(
    'the demo to print its link',
    async () => /console (http\S+#link=\S+)/.exec(printed) ?? [],
    (found) => found.length > 0,
    180_000,
  );
  return { process: child, url: `http://127.0.0.1:${port}`, link };
}

async function signedIn(
  of: Browser,
  colorScheme: 'light' | 'dark' = 'light',
): Promise<{ readonly context: BrowserContext; readonly page: Page }> {
  const context = await of.newContext({ viewport: { width: 1440, height: 900 }, colorScheme });
  const page = await context.newPage();
  if (cookies === null) {
    await page.goto(demo.link);
    await page.locator('#main h1').waitFor();
    cookies = await context.cookies();
    // Jobs has to ship the hour first.
    await waitFor(
      'the hour to be in the reports',
      async () => {
        await open(page, 'overview');
        return page.locator('.stat', { hasText: 'Requests' }).first().innerText();
      },
      (text) => /[1-9]\d\d/.test(text),
      120_000,
    );
  } else await context.addCookies(cookies);
  return { context, page };
}

async function open(page: Page, screen: string): Promise<void> {
  await page.goto(new URL(`/console/${screen}`, demo.link).href);
  await page.locator('#main h1').waitFor();
  await untilLoadedMs(page);
}

/**
 * Milliseconds from the navigation to the load event, on the page's own clock. The page's policy lets only the debugger
 * evaluate code.
 */
function untilLoadedMs(page: Page): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const look = () => {
      const isThere = document.querySelector('#main h1') && !document.querySelector('.waiting, [aria-busy=true]');
      if (isThere) resolve(performance.now());
      else requestAnimationFrame(look);
    };
    look();
  })`);
}

async function repeat(measure: () => Promise<number>): Promise<number[]> {
  const found: number[] = [];
  for (let round = 0; round < ROUNDS; round++) found.push(await measure());
  return found;
}

function summary(found: readonly number[], worst: 'least' | 'most' = 'most'): string {
  const outlier = worst === 'most' ? Math.max(...found) : Math.min(...found);
  return `${median(found).toFixed(0)} (${worst} ${outlier.toFixed(0)})`;
}

async function firstPaintMs(page: Page): Promise<number> {
  await open(page, 'overview');
  return page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime");
}

/** Milliseconds from the navigation until nothing is loading. */
async function dataMs(page: Page, screen: string): Promise<number> {
  await page.goto(new URL(`/console/${screen}`, demo.link).href, { waitUntil: 'commit' });
  return untilLoadedMs(page);
}

/**
 * Opens a screen with an answer that is larger than the demo's. The answer is changed on its way, since only the page
 * itself can use its session.
 */
async function openWith<T>(page: Page, screen: string, path: RegExp, change: (answer: T) => unknown): Promise<void> {
  const answered = page.waitForResponse((response) => path.test(response.url()));
  await open(page, screen);
  const answer = (await (await answered).json()) as T;
  await page.route(path, (route) => route.fulfill({ json: change(answer) }));
  await open(page, screen);
  await page.unroute(path);
}

interface Frames {
  readonly rows: number[];
  /** Frames a second of this machine's Chromium without work. */
  readonly still: number[];
  /** CPU that the gateways, jobs and the embedded databases took beside the browser. */
  readonly productMs: number[];
}

/** Shows a listing of 10,000 rows in one page, as if the server's pages were that long. */
async function framesOfRows(page: Page): Promise<Frames> {
  await openWith<{ data: object[] }>(page, 'requests', /usage\/requests\?.*limit=50/, ({ data }) => ({
    data: Array.from({ length: ROWS }, (_, index) => ({ ...data[index % data.length], id: `row-${index}` })),
    next_cursor: null,
  }));
  const productMs: number[] = [];
  const rows = await repeat(async () => {
    const pids = [demo.process.pid as number, ...descendantsOf(demo.process.pid as number)];
    const beforeNs = cpuNsOf(pids);
    const frames = await framesOfSecond(page, 700);
    productMs.push((cpuNsOf(pids) - beforeNs) / 1e6);
    return frames;
  });
  return { rows, still: await repeat(() => framesOfSecond(page, 0)), productMs };
}

/** Scrolls by this many pixels in each frame for a second; returns frames a second. */
function framesOfSecond(page: Page, scrolledPx: number): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const startMs = performance.now();
    let frames = 0;
    const step = () => {
      scrollBy(0, ${scrolledPx});
      frames += 1;
      const passedMs = performance.now() - startMs;
      if (passedMs < 1000) requestAnimationFrame(step);
      else resolve(frames / passedMs * 1000);
    };
    requestAnimationFrame(step);
  })`);
}

/** Milliseconds from the click that draws the chart to the frame that shows it. */
async function drawingMs(page: Page): Promise<number[]> {
  const startMs = Date.UTC(2026, 7, 1);
  const hours = Array.from({ length: DAYS * 24 }, (_, hour) => new Date(startMs + hour * HOUR_MS).toISOString());
  const series = hours.flatMap((bucket, hour) =>
    ['light', 'middle', 'strong', 'best'].map((tier, index) => ({
      bucket,
      tier,
      requests: 50 + ((hour * (index + 3)) % 97),
      spend_usd: '1.5',
      baseline_cost_usd: '2.5',
      baseline_spend_usd: '1.5',
    })),
  );
  // The screen also asks for the previous window, which is empty here.
  const today = new Date().toISOString().slice(0, 10);
  const ofWindow = new RegExp(`analytics/routing\\?.*end_date=${today}`);
  await openWith<object>(page, 'routing', ofWindow, (report) => ({
    ...report,
    granularity: 'hour',
    series,
  }));
  const figure = "[...document.querySelectorAll('figure')].find((one) => one.textContent.includes('Requests by tier'))";
  return repeat(() =>
    page.evaluate(`new Promise((resolve) => {
      const figure = ${figure};
      const press = () => figure.querySelector('button[aria-pressed]').click();
      press();
      setTimeout(() => {
        const startMs = performance.now();
        new MutationObserver((_, observer) => {
          if (figure.querySelectorAll('svg path.fill').length < 4) return;
          observer.disconnect();
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startMs)));
        }).observe(figure, { childList: true, subtree: true });
        press();
      }, 1000);
    })`),
  );
}

async function takePictures(into: string): Promise<void> {
  mkdirSync(into, { recursive: true });
  for (const theme of ['light', 'dark'] as const) {
    const { context, page } = await signedIn(browser, theme);
    for (const screen of SCREENS.split(' ')) {
      await open(page, screen);
      const name = screen.replaceAll(/\W+/g, '-');
      await takePicture(page, join(into, `${name}-${theme}.png`));
    }
    await open(page, PANEL);
    await page.locator('tbody button.link').first().click();
    await page.getByText('Why this model').waitFor();
    await page.screenshot({ path: join(into, `request-${theme}.png`) });
    await context.close();
  }
}

/**
 * Takes a picture in a window as high as the page, so that elements fixed to the window's edges are at the page's
 * edges.
 */
async function takePicture(page: Page, path: string): Promise<void> {
  const { width = 0, height: usualHeight = 0 } = page.viewportSize() ?? {};
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  await page.setViewportSize({ width, height });
  await page.screenshot({ path });
  await page.setViewportSize({ width, height: usualHeight });
}
