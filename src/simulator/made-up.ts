// Makes ids and sealed blobs like a provider's: opaque to others, the same for the same input, and verifiable by their
// maker.

import { createHash } from 'node:crypto';

const SEAL_MARK = Buffer.from('sim');
const SEAL_BYTES = 96;
const SEAL_CHECK_BYTES = 32;

/** An id derived from what it belongs to. */
export function derivedId(prefix: string, ...belongsTo: readonly string[]): string {
  return prefix + createHash('sha256').update(belongsTo.join('\0')).digest('hex').slice(0, 24);
}

/** A signature or encrypted reasoning: base64 that only its maker can verify. */
export function makeSeal(...belongsTo: readonly string[]): string {
  const secret = createHash('shake256', { outputLength: SEAL_BYTES }).update(belongsTo.join('\0')).digest();
  return Buffer.concat([SEAL_MARK, secret, checkOf(secret)]).toString('base64');
}

/** Whether `seal` was changed. A seal that another provider made counts as unchanged. */
export function isBrokenSeal(seal: string): boolean {
  const bytes = Buffer.from(seal, 'base64');
  if (!bytes.subarray(0, SEAL_MARK.length).equals(SEAL_MARK)) return false;
  const secret = bytes.subarray(SEAL_MARK.length, SEAL_MARK.length + SEAL_BYTES);
  return !bytes.subarray(SEAL_MARK.length + SEAL_BYTES).equals(checkOf(secret));
}

function checkOf(secret: Buffer): Buffer {
  return createHash('sha256').update('sim seal').update(secret).digest().subarray(0, SEAL_CHECK_BYTES);
}
