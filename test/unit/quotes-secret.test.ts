// Whether a text quotes a secret: in every way in which a proxy or an endpoint may write what it was sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quotesSecret } from '../../src/platform/quotes-secret.ts';

const SECRET = 'PLANT8Q~ED/secret+xyz==%41é"<&';
const percent = encodeURIComponent(SECRET);
const lowerHex = percent.replace(/%../g, (escape) => escape.toLowerCase());

const codes = (write: (code: number) => string) => SECRET.replace(/./g, (one) => write(one.charCodeAt(0)));

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
  'in HTML with many zeros': codes((code) => `&#0000${code};`),
  'in HTML with other numbers and zeros': codes((code) => `&#x0000${code.toString(16)};`),
  'in HTML without semicolons': codes((code) => `&#${code} `),
  'in HTML by name': SECRET.replaceAll('/', '&sol;').replaceAll('+', '&plus;').replaceAll('=', '&equals;'),
  'in an address of long ago': codes((code) => `%u${code.toString(16).padStart(4, '0')}`),
  'in escapes with braces': codes((code) => `\\u{${code.toString(16)}}`),
  'in octal escapes': codes((code) => `\\${code.toString(8)}`),
  'in large letters': SECRET.toUpperCase(),
  'in small letters': SECRET.toLowerCase(),
  'in base64': Buffer.from(SECRET).toString('base64'),
  'in base64 behind one character': Buffer.from(`:${SECRET}`).toString('base64'),
  'in base64 behind a name': Buffer.from(`client:${SECRET}`).toString('base64'),
  'in base64 behind a longer name': Buffer.from(`client1:${SECRET}:x`).toString('base64'),
  'in base64 for addresses': Buffer.from(SECRET).toString('base64url'),
  'in base64 in an address': encodeURIComponent(Buffer.from(SECRET).toString('base64')),
  'in hex': Buffer.from(SECRET).toString('hex'),
  'in large hex with colons': Buffer.from(SECRET)
    .toString('hex')
    .toUpperCase()
    .replace(/..(?=.)/g, '$&:'),
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
  assert.ok(quotesSecret('got Pass', 'pass'));
  assert.ok(!quotesSecret('got pas', 'pass'));
  const special = 'p+ä€ß ß/ü&=#"<>\'1a';
  for (const text of [
    special,
    new URLSearchParams({ special }).toString(),
    encodeURIComponent(special),
    JSON.stringify(special),
    special.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
    special.replace(/[^a-z0-9]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
    Buffer.from(`id:${special}`).toString('base64'),
    Buffer.from(special).toString('hex'),
  ])
    assert.ok(quotesSecret(`got ${text}.`, special), text);
  assert.ok(!quotesSecret('got p1a', special));
  assert.ok(quotesSecret('got +++', '+++'));
  assert.ok(!quotesSecret('got nothing', '+++'));
});

test('what is about a secret does not quote it', () => {
  for (const text of [
    '',
    'AADSTS7000215: Invalid client secret provided.',
    '100% of &nothing; \\u12 &#x11ffff; &#99999999; \\u{110000} %zz',
  ])
    assert.ok(!quotesSecret(text, SECRET), text);
});
