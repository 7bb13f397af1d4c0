// Placeholders: derived from the value and the organization's key alone, told apart by their scope, and found again in
// what a model writes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CloakScopes,
  type FoundPlaceholder,
  Placeholders,
  RestorableValues,
} from '../../src/domain/guardrails/placeholders.ts';
import type { Cloak } from '../../src/domain/guardrails/policy.ts';

const SCOPES: CloakScopes = { key: Buffer.alloc(32, 1), apiKeyId: 'key-1', conversation: 'one' };
const TOKEN: Cloak = { form: 'token', scope: 'organization', restore: true };
const MAIL = 'ada@acme.test';

const placeholderOf = (scopes: Partial<CloakScopes>, cloak: Partial<Cloak> = {}): string =>
  new Placeholders({ ...SCOPES, ...scopes }).of('email', MAIL, { ...TOKEN, ...cloak });

describe('a placeholder', () => {
  test('has its kind and 12 digits, or is an address that nobody delivers to', () => {
    assert.match(placeholderOf({}), /^TGE\d{12}$/);
    assert.match(placeholderOf({}, { form: 'address' }), /^tge\d{12}@cloak\.invalid$/);
  });

  test('is the same in every request of its scope, and another one elsewhere', () => {
    assert.equal(placeholderOf({ apiKeyId: 'key-2', conversation: 'two' }), placeholderOf({}));
    assert.notEqual(placeholderOf({ key: Buffer.alloc(32, 2) }), placeholderOf({}));
    const [byKey, byConversation] = [{ scope: 'key' }, { scope: 'conversation' }] as const;
    assert.equal(placeholderOf({ conversation: 'two' }, byKey), placeholderOf({}, byKey));
    assert.notEqual(placeholderOf({ apiKeyId: 'key-2' }, byKey), placeholderOf({}, byKey));
    assert.equal(placeholderOf({ apiKeyId: 'key-2' }, byConversation), placeholderOf({}, byConversation));
    assert.notEqual(placeholderOf({ conversation: 'two' }, byConversation), placeholderOf({}, byConversation));
  });

  test('stands for one spelling: of two that mean the same the later one takes the next', () => {
    const made = new Placeholders(SCOPES);
    const [first, second] = [made.of('email', MAIL, TOKEN), made.of('email', 'ADA@acme.test', TOKEN)];
    assert.notEqual(first, second);
    assert.equal(made.of('email', MAIL, TOKEN), first);
    assert.deepEqual(new Map(made.entries()).get(second), 'ADA@acme.test');
  });

  test('is kept from replies where the rule says so', () => {
    const made = new Placeholders(SCOPES);
    made.of('email', MAIL, { ...TOKEN, restore: false });
    assert.deepEqual(made.entries(), []);
  });
});

describe('in a text', () => {
  const made = new Placeholders(SCOPES);
  const [token, address] = [made.of('email', MAIL, TOKEN), made.of('email', MAIL, { ...TOKEN, form: 'address' })];
  const values = new RestorableValues(made.entries());
  const found = (text: string): (string | null)[] => {
    const places: FoundPlaceholder[] = [];
    values.find(Buffer.from(text), 0, Buffer.byteLength(text), places);
    return places.map(({ value }) => value);
  };

  test('those of the request are found, shapes of others and parts are strangers, words are nothing', () => {
    assert.deepEqual(found(`to ${token}, ${address}.`), [MAIL, MAIL]);
    assert.deepEqual(found(`${token}${token}`), [MAIL, MAIL]);
    assert.deepEqual(found(`TGE000000000000 and ${token.slice(0, 12)}`), [null, null]);
    assert.deepEqual(found('TG TGE TGE12 tgv'), []);
  });

  test('every beginning of one is held at the end of what has come', () => {
    for (const whole of [token, address]) {
      const bytes = Buffer.from(`to ${whole}`);
      for (let end = 4; end < bytes.length; end++)
        assert.equal(values.holdFrom(bytes, 0, end), 3, bytes.toString('latin1', 0, end));
      assert.equal(values.holdFrom(bytes, 0, bytes.length), bytes.length);
    }
    assert.equal(values.holdFrom(Buffer.from('to them'), 0, 7), 7);
  });
});
