// The settings about where reports are served and requested (REPORTS_LISTEN, REPORTS_URL): an address as text and back.

import { z } from 'zod';

/** An address where reports are served and requested. */
export type ReportsAddress = { readonly socketPath: string } | { readonly host: string; readonly port: number };

/** `unix:/path`, or a host and port behind `prefix`. */
export function reportsAddress(prefix: '' | 'http://', mustBe: string) {
  return z
    .string()
    .transform((value) => parseReportsAddress(value, prefix))
    .refine((address) => address !== null, mustBe)
    .optional();
}

function parseReportsAddress(value: string, prefix: '' | 'http://'): ReportsAddress | null {
  if (value.startsWith('unix:/')) return { socketPath: value.slice('unix:'.length) };
  const [, bracketed, plain, port] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,253})):([1-9][0-9]{0,4})\/?$/.exec(
      value.startsWith(prefix) ? value.slice(prefix.length) : '',
    ) ?? [];
  const host = bracketed ?? plain;
  return host === undefined || Number(port) > 65_535 ? null : { host, port: Number(port) };
}

/** The text from which `readConfig` would read this address. */
export function reportsAddressText(address: ReportsAddress, prefix: '' | 'http://'): string {
  if ('socketPath' in address) return `unix:${address.socketPath}`;
  return `${prefix}${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}
