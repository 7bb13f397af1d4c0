// Makes and checks the public addresses of uploaded files. Whoever has an address can read the file; none can be
// guessed.

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/** 128 bits. */
const SIGNATURE_BYTES = 16;

export class SignedAddresses {
  private readonly key: Buffer;
  private readonly publicUrl: string;

  /** `secret`: a secret of the installation, from which a key for these addresses alone is derived. */
  constructor(secret: Buffer, publicUrl: string) {
    this.key = Buffer.from(hkdfSync('sha256', secret, '', 'tollgate media address', 32));
    this.publicUrl = publicUrl;
  }

  of(id: string): string {
    return `${this.publicUrl}/v1/media/${id}/public/${this.sign(id).toString('base64url')}`;
  }

  isSigned(id: string, signature: string): boolean {
    const expected = this.sign(id);
    const given = Buffer.from(signature, 'base64url');
    return (
      given.length === expected.length && given.toString('base64url') === signature && timingSafeEqual(given, expected)
    );
  }

  private sign(id: string): Buffer {
    return createHmac('sha256', this.key).update(id).digest().subarray(0, SIGNATURE_BYTES);
  }
}
