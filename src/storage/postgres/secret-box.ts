// Encrypts secrets that must be read again but never be stored in clear (provider keys, webhook secrets): AES-256-GCM
// under a key derived from MASTER_KEY.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

export interface SecretBox {
  /**
   * `bindTo` names the owner. The box opens only for the same name, so a sealed secret cannot be moved to another row.
   */
  seal(secret: string, bindTo: string): Buffer;
  /** Throws when it was sealed with another master key or for another owner, or was changed. */
  open(sealed: Buffer, bindTo: string): string;
}

//  format 1:  1 byte format | 8 bytes key id | 12 bytes nonce | 16 bytes tag | ciphertext
const FORMAT = 1;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES;

export function createSecretBox(masterKey: Buffer): SecretBox {
  const key = Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate provider key encryption', 32));
  const keyId = createHash('sha256').update('tollgate key id').update(key).digest().subarray(0, KEY_ID_BYTES);
  return {
    seal(secret, bindTo) {
      const head = Buffer.concat([Buffer.of(FORMAT), keyId]);
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.concat([head, Buffer.from(bindTo, 'utf8')]));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([head, nonce, cipher.getAuthTag(), ciphertext]);
    },
    open(sealed, bindTo) {
      const head = sealed.subarray(0, HEAD_BYTES);
      if (sealed.length < HEAD_BYTES + NONCE_BYTES + TAG_BYTES || head[0] !== FORMAT)
        throw new Error(`the sealed secret of ${bindTo} is damaged`);
      if (!head.subarray(1).equals(keyId))
        throw new Error(
          `the secret of ${bindTo} was encrypted with another MASTER_KEY; start with that one, or apply the ` +
            `configuration again`,
        );
      const nonce = sealed.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES);
      const tag = sealed.subarray(HEAD_BYTES + NONCE_BYTES, HEAD_BYTES + NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.concat([head, Buffer.from(bindTo, 'utf8')]));
      decipher.setAuthTag(tag);
      try {
        return Buffer.concat([
          decipher.update(sealed.subarray(HEAD_BYTES + NONCE_BYTES + TAG_BYTES)),
          decipher.final(),
        ]).toString('utf8');
      } catch (error) {
        throw new Error(`the sealed secret of ${bindTo} is damaged`, { cause: error });
      }
    },
  };
}
