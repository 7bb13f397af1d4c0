// Reads the library of the embedded ClickHouse into the system's cache without holding up this process. Loading it is
// one call that blocks until every page it touches was read: from a cold disk, seconds without any posting.

import { open } from 'node:fs/promises';
import { tryResolveLibchdb } from 'chdb/libchdb';

const CHUNK_BYTES = 1 << 22;

/** Resolves also where it cannot be read: whoever loads it says why. */
export async function readEngineLibrary(): Promise<void> {
  const path = tryResolveLibchdb()?.path;
  const file = path === undefined ? null : await open(path).catch(() => null);
  if (file === null) return;
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    while ((await file.read(chunk, 0, CHUNK_BYTES, null)).bytesRead > 0);
  } catch {
    return;
  } finally {
    await file.close();
  }
}
