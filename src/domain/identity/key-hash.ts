// How a credential is known without being kept: its HMAC-SHA-256 under a pepper that only the holder of the master key
// can derive.

import { createHmac, hkdfSync } from 'node:crypto';

/** Without it a stolen table of hashes cannot be searched for guessed credentials. */
export function derivePepper(masterKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate inference key pepper', 32));
}

/** The whole credential counts: two that share a prefix share nothing here. */
export function hashCredential(pepper: Buffer, credential: string): Buffer {
  return createHmac('sha256', pepper).update(credential, 'utf8').digest();
}

/** What may be shown of a key so that its owner recognizes it. */
export function keyPrefix(credential: string): string {
  return credential.slice(0, Math.min(10, Math.floor(credential.length / 3)));
}
