// What administrators change and watch in the console, in a real Chromium: routing policies and guardrails are edited,
// tried and published, a file is compared with the catalog, members are limited, requests are followed, all gateways
// are watched.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findBarriers, openScreen, type WatchedPage } from '../support/console-browser.ts';
import { type ConsoleInstallation, skipWithoutConsole, startConsole } from '../support/console-installation.ts';
import { waitFor } from '../support/waiting.ts';

const HOSTILE = `<img src=x onerror="globalThis.ran=1">"'><script>globalThis.ran=1</script>`;
const POLICY = '/v1/admin/routing/policies/default';

describe('administrators in a browser', { skip: skipWithoutConsole }, () => {
  let installation: ConsoleInstallation;
  let provider: ConsoleInstallation['provider'];
  let tollgate: ConsoleInstallation['tollgate'];
  let api: ConsoleInstallation['api'];
  let secret: string;
  let watched: WatchedPage;

  before(async () => {
    installation = await startConsole();
    ({ provider, tollgate, api } = installation);
    secret = (await api<{ data: { secret: string } }>('POST', '/v1/admin/active-org/keys', { name: 'k' })).data.secret;
    for (const text of ['Write a poem', 'Prove that it halts', 'Fix the test']) await ask('service/auto', text);
    watched = await installation.signedIn(installation.owner);
  });

  after(async () => {
    await installation?.stop();
  });

  async function ask(model: string, content: string): Promise<void> {
    const response = await fetch(`${tollgate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 20, messages: [{ role: 'user', content }] }),
    });
    await response.text();
  }

  async function nothingWrong(): Promise<void> {
    assert.deepEqual(await findBarriers(watched), []);
    assert.deepEqual(await watched.complaints(), []);
    assert.equal(await watched.page.evaluate('globalThis.ran'), undefined);
  }

  async function publish(said: string): Promise<void> {
    const { page } = watched;
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').getByText(said).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  /** In the dialog that asks; what is typed stays. */
  async function publishInVain(because: RegExp): Promise<void> {
    const { page } = watched;
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').getByRole('alert').getByText(because).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  test('a routing policy is edited, replayed over what was routed, and published as a version', async () => {
    const { page } = watched;
    await waitFor(
      'the requests to be posted',
      () => api<{ data: { requests: number } }>('POST', '/v1/admin/routing/replay', { policy: 'default' }),
      ({ data }) => data.requests === 3,
      30_000,
    );
    await openScreen(watched, tollgate.url, 'policies?policy=default');
    const field = page.getByLabel('Definition');
    const written = await field.inputValue();
    await field.fill(written.replace('{', '{,'));
    await page.getByText(/JSON/).first().waitFor();
    assert.ok(await page.getByRole('button', { name: 'Publish' }).isDisabled());
    assert.ok(await page.getByRole('button', { name: 'Replay' }).isDisabled());
    const draft = JSON.parse(written) as { tiers: { name: string; description: string }[] };
    for (const tier of draft.tiers) tier.description = HOSTILE;
    await field.fill(JSON.stringify(draft));
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Replayed as it stands.').waitFor();
    assert.match(await page.locator('.stat', { hasText: 'Replayed' }).innerText(), /3\s+of 3 routed/);
    await page.getByLabel('A message').fill('Say something');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('It would be served by').waitFor();
    await nothingWrong();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').getByText('Version 2 takes effect for 1 organization within').waitFor();
    await page
      .getByRole('dialog')
      .getByText(/tiers\.0\.description: .*<img src=x/)
      .waitFor();
    await nothingWrong();
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('version 2,').waitFor();
    const { data } = await api<{ data: { version: number; versions: unknown[]; definition: typeof draft } }>(
      'GET',
      POLICY,
    );
    assert.deepEqual([data.version, data.versions.length, data.definition.tiers[0]?.description], [2, 2, HOSTILE]);
    // The earlier one is taken, and published again as a new one.
    await page.getByRole('button', { name: 'Take into the editor' }).last().click();
    assert.equal(await page.getByLabel('Definition').inputValue(), written);
    await nothingWrong();
  });

  test('somebody else’s newer version is not overwritten', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'policies?policy=default');
    const { data } = await api<{ data: { definition: { classifier: object } } }>('GET', POLICY);
    const changed = { ...data.definition, prefer_native_api: false };
    await api('PUT', POLICY, changed);
    await page.getByLabel('Definition').fill(JSON.stringify({ ...changed, sticky: { min_tokens: 5 } }));
    await page.getByRole('button', { name: 'Publish' }).click();
    await publishInVain(/version/);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    // The browser's own note of the status is all that it says.
    assert.deepEqual(
      (await watched.complaints()).filter((line) => !line.includes('409')),
      [],
    );
  });

  test('a guardrail policy is made, its draft tried, published, switched on, and off again', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'guardrails');
    await page.getByRole('button', { name: 'New policy' }).click();
    await page.getByLabel('Name', { exact: true }).fill('mails');
    await page.getByLabel('Text to scan').fill(`${HOSTILE} ada@example.com`);
    await page.getByRole('button', { name: 'Scan' }).click();
    await page.locator('mark.found').waitFor();
    assert.equal(await page.locator('mark.found').innerText(), 'ada@example.com');
    await nothingWrong();
    await publish('It screens nobody before it is switched on.');
    await page.getByRole('button', { name: 'Switch on' }).click();
    await page.getByRole('cell', { name: 'everybody' }).waitFor();
    const assigned = async () =>
      (
        await api<{ data: { organization: { policies: string[] } } }>(
          'GET',
          '/v1/admin/active-org/guardrails/assignments',
        )
      ).data.organization.policies;
    assert.deepEqual(await assigned(), ['mails']);
    await page.getByLabel('Definition').fill('{ "rules": [] }');
    await page.getByRole('button', { name: 'Publish' }).click();
    await publishInVain(/rules/);
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByRole('button', { name: 'Switch on' }).waitFor();
    assert.deepEqual(await assigned(), []);
    assert.deepEqual(
      (await watched.complaints()).filter((line) => !line.includes('400')),
      [],
    );
  });

  test('a guardrail policy of the platform is edited as an organization’s is, and shown there as its floor', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'platform-guardrails');
    await page.getByRole('button', { name: 'New policy' }).click();
    await page.getByLabel('Name', { exact: true }).fill('house');
    const rules = [{ id: 'cards', detect: ['card'], stage: 'input', action: 'mask' }];
    await page.getByLabel('Definition').fill(JSON.stringify({ floor: true, rules }));
    await page.getByLabel('Text to scan').fill('pay with 4111 1111 1111 1111');
    await page.getByRole('button', { name: 'Scan' }).click();
    await page.locator('mark.found').waitFor();
    await nothingWrong();
    await publish('It screens every organization within a second.');
    await page.getByRole('cell', { name: 'everybody' }).waitFor();
    const path = '/v1/admin/guardrails/policies/house';
    const stored = async () =>
      (await api<{ data: { version: number; definition: { floor?: boolean; mode?: string } } }>('GET', path)).data;
    assert.deepEqual([(await stored()).version, (await stored()).definition.floor], [1, true]);
    await page.getByLabel('Definition').fill(JSON.stringify({ floor: true, mode: 'observe', rules }));
    await page.getByRole('button', { name: 'Publish' }).click();
    await page
      .getByRole('dialog')
      .getByText(/mode: .*observe/)
      .waitFor();
    // Somebody else was faster: nothing of theirs is overwritten, and nothing that was typed is lost.
    await api('PUT', path, { floor: true, mode: 'enforce', on_failure: 'pass', rules });
    await publishInVain(/version/);
    assert.match(await page.getByLabel('Definition').inputValue(), /observe/);
    assert.equal((await stored()).definition.mode, 'enforce');
    await watched.complaints();
    await openScreen(watched, tollgate.url, 'guardrails');
    const row = page.getByRole('row', { name: /house/ });
    await row.getByText('everybody, the platform’s floor').waitFor();
    assert.equal(await row.getByRole('button').count(), 0, 'an organization changes nothing of it');
    await nothingWrong();
    await api('PUT', path, { rules });
    await api('DELETE', path);
  });

  test('a file is compared with the catalog; its mistakes are said, and no markup of it runs', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'catalog');
    const file = readFileSync(join(import.meta.dirname, '../../deploy/demo.yaml'), 'utf8').replaceAll(
      '${SIMULATED_PROVIDER_URL}',
      provider.url,
    );
    await page.getByLabel('Configuration file').fill(file);
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('table', { name: 'Differences' }).or(page.getByText('The catalog matches the file')).waitFor();
    await page
      .getByLabel('Configuration file')
      .fill(`models: [{ id: m, display_name: '${HOSTILE.replaceAll("'", '')}' }]`);
    await page.getByRole('button', { name: 'Compare' }).click();
    await page
      .getByText(/tollgate\.yaml:1/)
      .first()
      .waitFor();
    await nothingWrong();
  });

  test('a member is limited', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'limits');
    await page.getByLabel('Limits of').selectOption('Member owner@demo.test');
    await page.getByRole('button', { name: 'New limit' }).click();
    await page.getByLabel('Dollars').fill('12.50');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'Budget per month' }).waitFor();
    const { data: members } = await api<{ data: { user_id: string }[] }>('GET', '/v1/admin/active-org/members');
    const path = `/v1/admin/active-org/members/${members[0]?.user_id}/limits`;
    const { data } = await api<{ data: { limits: { limit: string }[] } }>('GET', path);
    assert.deepEqual(
      data.limits.map(({ limit }) => limit),
      ['12.5'],
    );
    await nothingWrong();
  });

  test('requests are followed: a new one appears by itself', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'requests');
    await page.getByRole('button', { name: 'Follow' }).click();
    assert.match(page.url(), /follow=1/);
    await ask('sim/large', 'Something new');
    await page.getByRole('cell', { name: 'sim/large' }).first().waitFor({ timeout: 30_000 });
    await nothingWrong();
  });

  test('live: all gateways together, to the last request, and every process', async () => {
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'live');
    await ask('sim/unknown', 'x');
    await page.getByRole('cell', { name: 'unknown model' }).waitFor({ timeout: 30_000 });
    const processes = page.getByRole('table', { name: 'Processes' });
    await processes.getByRole('cell', { name: /^jobs/ }).waitFor();
    assert.match(await processes.innerText(), /gateway \d+[\s\S]*running/);
    const { data } = await api<{ data: { processes: number } }>('GET', '/v1/admin/live');
    assert.equal(
      await page.locator('.stat', { hasText: 'Processes' }).locator('dd').first().innerText(),
      String(data.processes),
    );
    await page.getByRole('button', { name: 'Stop updates' }).click();
    await nothingWrong();
  });
});
