// Reads the library of the embedded ClickHouse into the system's file cache in the background. Loading the library is
// one call that blocks the process until all pages that it touches are read. From a cold disk, that would be seconds
// without any posting.

import { open } from 'node:fs/promises';
import { tryResolveLibchdb } from 'chdb/libchdb';

const CHUNK_BYTES = 1 << 22;

/** Also resolves if the library cannot be read. Loading it then reports why. */
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
