// Recognizes credentials without storing them: by their HMAC-SHA-256 under a pepper derived from the master key.

import { createHmac, hkdfSync } from 'node:crypto';

/** Without the pepper nobody can test guessed credentials against a stolen table of hashes. */
export function derivePepper(masterKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate inference key pepper', 32));
}

/** Hashes the whole credential: two that share a prefix have unrelated hashes. */
export function hashCredential(pepper: Buffer, credential: string): Buffer {
  return createHmac('sha256', pepper).update(credential, 'utf8').digest();
}

/** The beginning of a credential, shown so that its owner recognizes it. */
export function keyPrefix(credential: string): string {
  return credential.slice(0, Math.min(10, Math.floor(credential.length / 3)));
}
