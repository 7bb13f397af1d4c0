// Whether a text quotes a secret: in every way in which a proxy or an endpoint may write what it was sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quotesSecret } from '../../src/platform/quotes-secret.ts';

const SECRET = 'PLANT8Q~ED/secret+xyz==%41é"<&';
const percent = encodeURIComponent(SECRET);
const lowerHex = percent.replace(/%../g, (escape) => escape.toLowerCase());

const WAYS: Readonly<Record<string, string>> = {
  'as it is': SECRET,
  'in a form': new URLSearchParams({ client_secret: SECRET }).toString(),
  'in a form in small letters': new URLSearchParams({ s: SECRET })
    .toString()
    .replace(/%../g, (escape) => escape.toLowerCase()),
  'in an address': percent,
  'in an address in small letters': lowerHex,
  'in every character of an address': Buffer.from(SECRET).reduce((text, byte) => `${text}%${byte.toString(16)}`, ''),
  'twice in an address': encodeURIComponent(percent),
  'in JSON': JSON.stringify(SECRET),
  'in JSON of a form': JSON.stringify({ got: `client_secret=${percent}` }),
  'in JSON with escapes': SECRET.replace(/[^a-z]/gi, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'in a log of nginx': SECRET.replace(/[^a-z0-9]/gi, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`),
  'in HTML': SECRET.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
  'in HTML with numbers': SECRET.replace(/[^a-z0-9]/gi, (one) => `&#${one.charCodeAt(0)};`),
  'in HTML with other numbers': SECRET.replace(/[^a-z0-9]/gi, (one) => `&#x${one.charCodeAt(0).toString(16)};`),
  'broken over lines': `${SECRET.slice(0, 6)}\r\n ${SECRET.slice(6)}`,
  'its beginning': percent.slice(0, 12),
  'its end': percent.slice(-40),
};

for (const [way, text] of Object.entries(WAYS)) {
  test(`a secret is found: ${way}`, () => {
    assert.ok(quotesSecret(text, SECRET), text);
    assert.ok(quotesSecret(`answered 400, got grant_type=x&client_secret=${text}&scope=a%20b`, SECRET), text);
  });
}

test('a secret without letters, and a short one', () => {
  assert.ok(quotesSecret('got %7E~%7E', '~~~'));
  assert.ok(quotesSecret('got pass', 'pass'));
  assert.ok(!quotesSecret('got pas', 'pass'));
});

test('what is about a secret does not quote it', () => {
  for (const text of ['', 'AADSTS7000215: Invalid client secret provided.', '100% of &nothing; \\u12 &#x11ffff; %zz'])
    assert.ok(!quotesSecret(text, SECRET), text);
});
