// A whole installation with the demo's configuration and a browser beside it, for the tests of the console's screens.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { findChromium, openChromium, openPage, signIn, type WatchedPage } from './console-browser.ts';
import { startTollgate, type Tollgate } from './gateway.ts';
import { type SimulatedProvider, startSimulatedProvider } from './simulated-provider.ts';

const ROOT = join(import.meta.dirname, '../..');

const chromium = findChromium();
const isBuilt = existsSync(join(ROOT, 'src/console/built/index.html'));

/** The addresses of all screens, and of what opens in them, by who sees them. */
export const MEMBER_SCREENS = ['overview', 'requests', 'usage', 'routing', 'connect', 'playground', 'keys'];
export const OWNER_SCREENS = ['people', 'limits', 'provider-keys', 'guardrails', 'media', 'webhook', 'audit'];
export const PLATFORM_SCREENS = ['live', 'organizations', 'catalog', 'policies', 'platform-guardrails', 'operation'];
export const ALL_SCREENS = [...MEMBER_SCREENS, ...OWNER_SCREENS, ...PLATFORM_SCREENS];

/** The reason why the tests of the console's screens are skipped; false: they run. */
export const skipWithoutConsole: string | false =
  chromium === null ? 'no Chromium is installed here' : !isBuilt && 'the console is not built: npm run prepare';

export interface ConsoleInstallation {
  readonly provider: SimulatedProvider;
  readonly tollgate: Tollgate;
  readonly browser: Browser;
  /** An access token of the demo organization's owner, who also administers the platform. */
  readonly owner: string;
  readonly tokenOf: (user: string, organization?: string) => Promise<string>;
  /** Calls the API with the owner's token, unless another is given. A refusal fails the test. */
  readonly api: <T>(method: string, path: string, body?: unknown, token?: string) => Promise<T>;
  readonly signedIn: (token: string, shape?: { width: number; dark?: boolean }) => Promise<WatchedPage>;
  readonly stop: () => Promise<void>;
}

export async function startConsole(env: Readonly<Record<string, string>> = {}): Promise<ConsoleInstallation> {
  const provider = await startSimulatedProvider();
  const configurationYaml = readFileSync(join(ROOT, 'deploy/demo.yaml'), 'utf8')
    .replaceAll('${SIMULATED_PROVIDER_URL}', provider.url)
    .replace(/^ {4}keys: .*$/m, '');
  const tollgate = await startTollgate({ configurationYaml, env });
  const browser = await openChromium(chromium ?? '');
  const tokenOf = async (user: string, organization = 'demo') => {
    const args = ['token', 'create', '--user', user, '--name', 'browser', '--organization', organization];
    const { output } = await tollgate.run(args);
    return /tgt-[\w-]+/.exec(output)?.[0] ?? assert.fail(output);
  };
  const owner = await tokenOf('owner@demo.test');
  assert.equal((await tollgate.run(['administrator', 'add', '--user', 'owner@demo.test'])).exitCode, 0);
  return {
    provider,
    tollgate,
    browser,
    owner,
    tokenOf,
    api: async <T>(method: string, path: string, body?: unknown, token = owner) => {
      const response = await fetch(tollgate.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
      return JSON.parse(text) as T;
    },
    signedIn: async (token, shape = { width: 1440 }) => {
      const watched = await openPage(browser, shape);
      await signIn(watched, tollgate.url, token);
      await watched.complaints();
      return watched;
    },
    stop: async () => {
      await browser.close();
      await tollgate.stop();
      await provider.stop();
    },
  };
}
