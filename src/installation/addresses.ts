// The addresses of a running installation, in a file beside its lock, for commands that call it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const ADDRESSES = z.object({ url: z.url(), adminUrl: z.url() });

export type Addresses = z.infer<typeof ADDRESSES>;

export function recordAddresses(dataDirectory: string, addresses: Addresses): void {
  writeFileSync(addressesFile(dataDirectory), `${JSON.stringify(addresses)}\n`);
}

/** Removes the file before a start and after an end, when nothing serves. */
export function forgetAddresses(dataDirectory: string): void {
  rmSync(addressesFile(dataDirectory), { force: true });
}

/** null: the installation never served, or the file is damaged. */
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
