// Where a running installation serves, on disk beside its lock, for the commands that ask it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const ADDRESSES = z.object({ url: z.url(), adminUrl: z.url() });

export type Addresses = z.infer<typeof ADDRESSES>;

export function recordAddresses(dataDirectory: string, addresses: Addresses): void {
  writeFileSync(addressesFile(dataDirectory), `${JSON.stringify(addresses)}\n`);
}

/** Called before a start and after an end: nothing serves there. */
export function forgetAddresses(dataDirectory: string): void {
  rmSync(addressesFile(dataDirectory), { force: true });
}

/** null: it never served, or the file is damaged; both mean that there is nowhere to ask. */
export function readAddresses(dataDirectory: string): Addresses | null {
  try {
    return ADDRESSES.parse(JSON.parse(readFileSync(addressesFile(dataDirectory), 'utf8')));
  } catch {
    return null;
  }
}

function addressesFile(dataDirectory: string): string {
  return join(dataDirectory, 'addresses.json');
}
