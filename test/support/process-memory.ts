// Reads the memory of another process of this machine, so that a test can look for a secret in it.

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const CHUNK_BYTES = 4 * 1_024 * 1_024;

/** Returns those of the ASCII texts that are in the memory. null: the system does not allow this process to read it. */
export function findInMemory(pid: number, texts: readonly string[]): ReadonlySet<string> | null {
  // V8 stores text with one byte per character if it can.
  const sought = texts.map((text) => ({ text, bytes: Buffer.from(text, 'latin1') }));
  const overlap = Math.max(...sought.map(({ bytes }) => bytes.length));
  let memory: number;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r');
  } catch {
    return null;
  }
  try {
    const found = new Set<string>();
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (const { from, until } of residentRegions(pid)) {
      for (let at = from; at < until; at += CHUNK_BYTES - overlap) {
        const chunk = buffer.subarray(0, read(memory, buffer, { at, length: Math.min(CHUNK_BYTES, until - at) }));
        for (const { text, bytes } of sought) if (!found.has(text) && chunk.includes(bytes)) found.add(text);
      }
    }
    return found;
  } finally {
    closeSync(memory);
  }
}

/** A region may have been given back since it was listed. */
function read(memory: number, buffer: Buffer, { at, length }: { at: number; length: number }): number {
  try {
    return readSync(memory, buffer, 0, length, at);
  } catch {
    return 0;
  }
}

interface Region {
  readonly from: number;
  readonly until: number;
}

/** The regions that can be written and are not only reserved. */
function residentRegions(pid: number): Region[] {
  const regions: Region[] = [];
  let region: Region | null = null;
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'latin1').split('\n')) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) (r.)/.exec(line);
    if (head !== null)
      region = head[3] === 'rw' ? { from: Number(`0x${head[1]}`), until: Number(`0x${head[2]}`) } : null;
    else if (region !== null && /^Rss: +[1-9]/.test(line)) regions.push(region);
  }
  return regions;
}
