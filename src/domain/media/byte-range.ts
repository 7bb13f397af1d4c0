// Which bytes of a file a request asks for: the Range and If-Range headers of RFC 9110, 14.

import type { ByteRange } from './object-store.ts';

/** null: the whole file. `unsatisfiable`: the range contains no byte of the file, or cannot be read. */
export type AskedRange = ByteRange | null | 'unsatisfiable';

const BYTES_UNIT = /^bytes[ \t]*=/i;
/** The numbers may have any length: a last byte beyond the end of the file means the file's last byte. */
const RANGE = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * A header with several ranges is answered with the whole file, which RFC 9110 allows. So is a range in another unit,
 * and a range that If-Range limits to another version of the file.
 */
export function askedRange(range: string | null, ifRange: string | null, etag: string, bytes: number): AskedRange {
  if (range === null || !BYTES_UNIT.test(range)) return null;
  if (ifRange !== null && ifRange.trim() !== etag) return null;
  const list = range.slice(range.indexOf('=') + 1);
  if (list.includes(',')) return null;
  const [, from, to, lastBytes] = RANGE.exec(list.trim()) ?? [];
  if (lastBytes !== undefined) {
    const length = Math.min(Number(lastBytes), bytes);
    return length === 0 ? 'unsatisfiable' : { first: bytes - length, last: bytes - 1 };
  }
  if (from === undefined) return 'unsatisfiable';
  const first = Number(from);
  const last = to === undefined || to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1);
  return first >= bytes || last < first ? 'unsatisfiable' : { first, last };
}

/** Whether an If-None-Match header names this version. */
export function isUnchanged(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
