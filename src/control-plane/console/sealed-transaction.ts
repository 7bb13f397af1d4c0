// A sign-in under way at an OpenID provider, sealed into a cookie: whichever gateway the browser comes back to can open
// it, and nobody else can read or make one.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';

const IV_BYTES = 12;
const TAG_BYTES = 16;
export const TRANSACTION_SECONDS = 600;

const transaction = z.object({
  provider: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  endsAtMs: z.number(),
});
export type SignInTransaction = z.output<typeof transaction>;

export class SealedTransactions {
  private readonly key: Buffer;

  /** `secret`: the installation's, the same on every gateway. */
  constructor(secret: Buffer) {
    this.key = Buffer.from(hkdfSync('sha256', secret, '', 'tollgate sign-in transaction', 32));
  }

  seal(value: SignInTransaction): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.key, iv);
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** null: it is not ours, or its time is over. */
  open(text: string, nowMs: number): SignInTransaction | null {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length <= IV_BYTES + TAG_BYTES) return null;
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.key, bytes.subarray(0, IV_BYTES));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const opened = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
      const value = transaction.parse(JSON.parse(opened.toString('utf8')));
      return value.endsAtMs > nowMs ? value : null;
    } catch {
      return null;
    }
  }
}
