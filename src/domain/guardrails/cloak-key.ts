// The key from which the placeholders of one organization are derived: the same on every machine of an installation.

import { hkdfSync } from 'node:crypto';

const KEY_BYTES = 32;

/** `pepper` is the installation's secret. */
export function deriveCloakKey(pepper: Buffer, organizationId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', pepper, organizationId, 'tollgate guardrail placeholders', KEY_BYTES));
}
