// HTTP status lines with their reason phrase: for several SDKs the phrase is the only text of an error that their users
// see.

import { STATUS_CODES } from 'node:http';

/** Statuses that providers use although they are not registered. */
const UNREGISTERED: Readonly<Record<number, string>> = {
  499: 'Client Closed Request',
  520: 'Unknown Error',
  529: 'Overloaded',
};
const CLASS_PHRASES = ['', 'Informational', 'Success', 'Redirection', 'Client Error', 'Server Error', '', '', '', ''];

const STATUS_LINES: readonly string[] = Array.from({ length: 1000 }, (_, status) => {
  const phrase = STATUS_CODES[status] ?? UNREGISTERED[status] ?? CLASS_PHRASES[Math.floor(status / 100)] ?? '';
  return phrase === '' ? `${status} Unknown` : `${status} ${phrase}`;
});

/** '404 Not Found'. Any three-digit status has a line, since a provider's status is relayed whatever it is. */
export function statusLine(status: number): string {
  return STATUS_LINES[status] ?? `${status} Unknown`;
}
