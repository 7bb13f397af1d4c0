// The cursors of listings as clients see them. They are signed, so that a changed cursor, or one of another scope, is
// refused.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DelegatedScope } from '../../src/domain/reports/report-delegation.ts';
import { type RequestCursor, readRequestCursor } from '../../src/storage/clickhouse/reports/list-requests.ts';

/** 96 bits suffice: a forged cursor would only lead to a page that its reader may see anyway. */
const SIGNATURE_BYTES = 12;
const SIGNATURE_CHARACTERS = 16;

export function signCursor(key: Buffer, scope: DelegatedScope, cursor: string): string {
  return cursor + signatureOf(key, scope, cursor).toString('base64url');
}

/** null: the cursor does not belong to an earlier page of this scope. */
export function openCursor(key: Buffer, scope: DelegatedScope, signed: string): RequestCursor | null {
  const cursor = signed.slice(0, -SIGNATURE_CHARACTERS);
  const presented = Buffer.from(signed.slice(-SIGNATURE_CHARACTERS), 'base64url');
  if (presented.length !== SIGNATURE_BYTES || !timingSafeEqual(presented, signatureOf(key, scope, cursor))) return null;
  return readRequestCursor(cursor);
}

function signatureOf(
  key: Buffer,
  { organizationId, teamId, userId, apiKeyId }: DelegatedScope,
  cursor: string,
): Buffer {
  const owner = [organizationId, teamId, userId, apiKeyId].map((id) => id ?? '-').join(' ');
  return createHmac('sha256', key).update(`tollgate cursor\n${owner}\n${cursor}`).digest().subarray(0, SIGNATURE_BYTES);
}
