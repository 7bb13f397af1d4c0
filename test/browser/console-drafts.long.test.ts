// What is typed in the console, in a real Chromium: it stays when a session ends, when a reload is refused, and when
// somebody else has changed the same thing meanwhile.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { findBarriers, openScreen, type WatchedPage } from '../support/console-browser.ts';
import { type ConsoleInstallation, skipWithoutConsole, startConsole } from '../support/console-installation.ts';

const RULE = { id: 'mail', detect: ['email'], stage: 'input', action: 'mask' };

/** The screens with an editor of policies, the address of a policy, and a button that sends its draft. */
const EDITORS = [
  ['policies', '/v1/admin/routing/policies', 'default', 'Replay'],
  ['guardrails', '/v1/admin/active-org/guardrails/policies', 'own', 'Scan'],
  ['platform-guardrails', '/v1/admin/guardrails/policies', 'house', 'Scan'],
] as const;

describe('what is typed in the console', { skip: skipWithoutConsole }, () => {
  let installation: ConsoleInstallation;
  let watched: WatchedPage;
  let page: Page;

  before(async () => {
    installation = await startConsole();
    const { api } = installation;
    for (const [, path, name] of EDITORS.slice(1)) await api('PUT', `${path}/${name}`, { rules: [RULE] });
    watched = await installation.signedIn(installation.owner);
    ({ page } = watched);
    page.setDefaultTimeout(10_000);
  });
  after(async () => {
    await installation?.stop();
  });

  const open = (screen: string) => openScreen(watched, installation.tollgate.url, screen);

  /** The session ends, which this page learns by the attempt; then the person signs in again. */
  async function signInAgain(attempt: () => Promise<unknown>): Promise<void> {
    await page.context().clearCookies();
    await attempt();
    const again = page.getByRole('dialog', { name: 'Your session has ended' });
    await again.getByLabel('Access token').fill(installation.owner);
    await again.getByRole('button', { name: 'Sign in' }).click();
    await again.waitFor({ state: 'detached' });
  }

  interface Stored {
    readonly data: { readonly version: number; readonly definition: Readonly<Record<string, unknown>> };
  }

  for (const [screen, path, name, verb] of EDITORS) {
    const policy = `${path}/${name}`;
    const theirs = screen === 'policies' ? { prefer_native_api: false } : { on_failure: 'pass' };
    const stored = async () => (await installation.api<Stored>('GET', policy)).data;
    const field = () => page.getByLabel('Definition');

    /** A draft of the policy, and in guardrails a text to scan, without which the draft cannot be sent. */
    async function typeDraft(change: object): Promise<string> {
      await open(`${screen}?policy=${name}`);
      const draft = JSON.stringify({ ...(await stored()).definition, ...change }, null, 1);
      await field().fill(draft);
      if (verb === 'Scan') await page.getByLabel('Text to scan').fill('ada@example.com');
      return draft;
    }
    const send = () => page.getByRole('button', { name: verb, exact: true }).click();

    async function publish(): Promise<void> {
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }

    test(`${screen}: a draft stays where a newer version was published before the person signs in again`, async () => {
      const mine = screen === 'policies' ? { sticky: { min_tokens: 5 } } : { mode: 'observe' };
      const draft = await typeDraft(mine);
      const { version, definition } = await stored();
      await installation.api('PUT', policy, { ...definition, ...theirs });
      await signInAgain(send);
      const notice = page.getByRole('alert').filter({ hasText: `Version ${version + 1} has been published` });
      await notice.waitFor();
      assert.equal(await field().inputValue(), draft);
      assert.match(await notice.innerText(), new RegExp(Object.keys(theirs)[0] ?? ''));
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
      assert.deepEqual(await findBarriers(watched), []);
      // The draft is published over it, once somebody has said so.
      await notice.getByRole('button', { name: 'Keep the draft' }).press('Enter');
      await notice.waitFor({ state: 'detached' });
      assert.equal(await page.evaluate('document.activeElement.tagName'), 'TEXTAREA');
      assert.equal(await field().inputValue(), draft);
      await publish();
      await page.getByText(`version ${version + 2},`).waitFor();
      assert.partialDeepStrictEqual((await stored()).definition, mine);
      assert.equal(await notice.count(), 0, 'one’s own version is not somebody else’s');
    });

    test(`${screen}: a conflict while one is signed in offers the newer version, too`, async () => {
      const draft = await typeDraft(screen === 'policies' ? { sticky: { min_tokens: 6 } } : { mode: 'enforce' });
      const { version, definition } = await stored();
      const changed = { ...definition, ...theirs };
      await installation.api('PUT', policy, changed);
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByRole('alert').getByText('version').waitFor();
      await page.keyboard.press('Escape');
      const take = page.getByRole('button', { name: `take version ${version + 1}` });
      await take.waitFor();
      assert.equal(await field().inputValue(), draft);
      // The list says so, too.
      await page
        .getByRole('table')
        .getByText(`version ${version + 1},`)
        .first()
        .waitFor();
      await take.click();
      await take.waitFor({ state: 'detached' });
      assert.deepEqual(JSON.parse(await field().inputValue()), changed);
      assert.ok(await page.getByRole('button', { name: 'Publish' }).isDisabled());
    });

    test(`${screen}: a draft stays where the policy and the list are refused for a while`, async () => {
      const draft = await typeDraft({ note: 'typed with care' });
      const away = new RegExp(`${path}(/${name})?$`);
      await page.route(away, (route) => route.fulfill({ status: 503, json: { error: 'the store is busy' } }));
      await signInAgain(send);
      const busy = page.getByRole('alert').filter({ hasText: 'the store is busy' });
      await busy.nth(1).waitFor();
      assert.equal(await field().inputValue(), draft);
      if (verb === 'Scan') assert.equal(await page.getByLabel('Text to scan').inputValue(), 'ada@example.com');
      await page.unrouteAll();
      await busy.first().getByRole('button', { name: 'Try again' }).click();
      await busy.nth(1).waitFor({ state: 'detached' });
      await busy.first().getByRole('button', { name: 'Try again' }).click();
      await busy.first().waitFor({ state: 'detached' });
      assert.equal(await field().inputValue(), draft);
    });
  }

  /** The page asks before it does this; the answer is no. Where nothing is awaited, a question is answered so, too. */
  async function asks(attempt: () => Promise<unknown>): Promise<void> {
    const asked = page.waitForEvent('dialog');
    const done = attempt();
    await (await asked).dismiss();
    await done;
  }

  for (const [screen, path, name] of EDITORS)
    test(`${screen}: a new policy with the name of another does not replace it`, async () => {
      const { data: before } = await installation.api<Stored>('GET', `${path}/${name}`);
      await open(`${screen}?policy=%2B`);
      await page.getByLabel('Name', { exact: true }).fill(name);
      await page
        .getByLabel('Definition')
        .fill(JSON.stringify({ ...before.definition, note: undefined, sticky: undefined }));
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByRole('alert').getByText('version').waitFor();
      const { data: after } = await installation.api<Stored>('GET', `${path}/${name}`);
      assert.deepEqual(after, before);
    });

  for (const [screen, label, text, verb] of [
    ['guardrails', 'Text to scan', 'ada@example.com', 'Scan'],
    ['policies?policy=default', 'A message', 'Say something', 'Preview'],
    ['catalog', 'Configuration file', 'models: []', 'Compare'],
    ['playground', 'Message', 'Say something', 'Send'],
    ['playground', 'Instructions', 'Be brief', 'Send'],
  ] as const)
    test(`${screen}, ${label}: a text is not left unasked before it was sent`, async () => {
      await open(screen);
      const media = () => page.getByRole('link', { name: 'Media' }).click();
      await page.getByLabel(label, { exact: true }).fill(text);
      await asks(media);
      assert.equal(await page.getByLabel(label, { exact: true }).inputValue(), text);
      if (label === 'Instructions') await page.getByLabel('Message').fill('Say something');
      const answered = page.waitForResponse((response) => response.request().method() === 'POST' && response.ok());
      await page.getByRole('button', { name: verb, exact: true }).click();
      await (await answered).finished();
      await page.locator('[aria-live=polite]:not([aria-busy=true])').first().waitFor();
      await media();
      await page.getByRole('heading', { name: 'Media' }).waitFor();
    });

  test('Escape does not close a form unasked once something is typed', async () => {
    await open('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const name = page.getByLabel('Name');
    await name.fill('typed with care');
    const escape = () => page.keyboard.press('Escape');
    for (const _ of ['once', 'again']) {
      await asks(escape);
      assert.equal(await name.inputValue(), 'typed with care');
    }
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await name.waitFor();
    await escape();
    await name.waitFor({ state: 'detached' });
  });

  test('a limit stays where a listing was refused before the session ended', async () => {
    const away = /active-org\/teams/;
    await page.route(away, (route) => route.fulfill({ status: 503, json: { error: 'the store is busy' } }));
    await open('limits');
    await page.getByRole('button', { name: 'New limit' }).click();
    await page.getByLabel('Dollars').fill('12.50');
    await signInAgain(() => page.getByRole('dialog').getByRole('button', { name: 'Save' }).click());
    assert.equal(await page.getByLabel('Dollars').inputValue(), '12.50');
    await page.unrouteAll();
  });

  test('whoever signs in again in another organization goes on in the one that the page shows', async () => {
    const { api } = installation;
    const body = { slug: 'second', display_name: 'Second', billing: 'none' };
    const { data: made } = await api<{ data: { id: string } }>('POST', '/v1/admin/organizations', body);
    const second = `/v1/admin/organizations/${made.id}`;
    await api('POST', `${second}/members`, { email: 'owner@demo.test', role: 'owner' });
    await api('POST', `${second}/teams`, { slug: 'of-second' });
    await open('people');
    await page.reload();
    await page.getByRole('combobox', { name: 'Organization' }).selectOption(made.id);
    await page.getByRole('cell', { name: 'of-second' }).first().waitFor();
    await page.getByRole('button', { name: 'New team' }).click();
    await page.getByLabel('Slug').fill('typed-with-care');
    const create = () => page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await signInAgain(create);
    const notice = page.getByRole('dialog', { name: 'Another organization is chosen' });
    await notice.getByText('Demo').first().waitFor();
    await notice.getByRole('button', { name: 'Go on here' }).click();
    await notice.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Slug').inputValue(), 'typed-with-care');
    await create();
    await page.getByRole('cell', { name: 'typed-with-care' }).first().waitFor();
    const { data: teams } = await api<{ data: { slug: string }[] }>('GET', `${second}/teams`);
    assert.deepEqual(new Set(teams.map(({ slug }) => slug)), new Set(['of-second', 'typed-with-care']));
  });
});
