// Encrypts a secret as versions before the data keys did: directly with the master key.

import { createCipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

export function firstFormat(masterKey: Buffer, secret: string, bindTo: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate provider key encryption', 32));
  const keyId = createHash('sha256').update('tollgate key id').update(key).digest().subarray(0, 8);
  const head = Buffer.concat([Buffer.of(1), keyId]);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.concat([head, Buffer.from(bindTo)]));
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([head, nonce, cipher.getAuthTag(), ciphertext]);
}
