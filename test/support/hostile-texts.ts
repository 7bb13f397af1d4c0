// Texts that are slow to screen: each makes one detector read as much as it may, as often as it can, and find nothing
// that would end the scan.

import { Buffer } from 'node:buffer';

/** Each part is repeated. */
const PARTS: Readonly<Record<string, string>> = {
  'runs of a': 'a',
  'runs of digits': '7',
  'runs of @': '@',
  'a@ over and over': 'a@',
  'a@a. over and over': 'a@a.',
  'addresses that end like files': 'a@b.js ',
  'long local parts': `${'a'.repeat(64)}@`,
  'digits and spaces': '1 ',
  'groups of four': '4111 ',
  'cards with a wrong check digit': '4111 1111 1111 1112 ',
  'bare cards with a wrong check digit': '4111111111111112 ',
  'accounts with wrong check digits': 'GB83WEST12345698765432 ',
  'accounts in pieces': 'DE11 ',
  'plus and digits': '+1 2',
  'phones of single digits': '+1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 ',
  'phones of many groups': '+1 22 3 44 5 66 7 88 9 00 ',
  'phones that no plan has': '+1 (123) 456-7890, ',
  'phones within their country': '123-456-7890 ',
  'keys that end early': 'sk-proj-a ',
  'keys in keys': '/ABSK',
  'keys without entropy': `-EAAA${'a'.repeat(4)}`,
  'keys of Google': '-AIza',
  'eyJ over and over': 'eyJ',
  'tokens whose header is none': ' eyJx.aaaaaaaaaaaa',
  'tokens whose header nearly is one': ' eyJhbGciOng.aaaaaaaaaaaa',
  dashes: '-',
  'slashes and colons': 'a://',
  'passwords that are placeholders': 'a://b:mypassword1@c ',
  backslashes: '\\',
  quotes: '"',
  'words of Base58': 'K5Lx ',
  'dashes and Base58': 'K-',
  'wallet keys with a wrong checksum': 'KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWo ',
  'wallet addresses with a wrong checksum': '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb ',
  'bech32 with a wrong checksum': 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5 ',
  'headers of private keys': '-----BEGIN PRIVATE KEY-----\n',
  'private keys without an end': `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(40)}`,
  'seed words that are no phrase': `${'act '.repeat(14)}. `,
  'seed words in a list': 'act ',
  'private addresses': '10.0.0.1 ',
  'addresses of version 6': 'fe80::1 ',
  'codes of Finland': '010190-1239 ',
  'codes of Italy': 'RSSMRA85T10A562T ',
  'codes of Spain': '12345678A ',
  'codes of Britain': 'AA 12 34 56 E ',
  emails: 'a@b.co ',
};

export const HOSTILE_TEXTS = Object.keys(PARTS);

export function hostileText(name: string, bytes: number): Buffer {
  const part = Buffer.from(PARTS[name] ?? '');
  return Buffer.alloc(bytes, part);
}
