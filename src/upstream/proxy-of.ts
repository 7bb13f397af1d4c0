// Which proxy a provider is called through: its own setting, else what the environment says (HTTPS_PROXY, HTTP_PROXY,
// NO_PROXY), and never one for this machine and private networks.

import { isIP } from 'node:net';
import { isPublicAddress } from '../platform/egress/public-address.ts';

/** The proxy variables of the environment; null: not set. */
export interface ProxySettings {
  readonly https: string | null;
  readonly http: string | null;
  /** Names and addresses that are called directly, with commas between. */
  readonly none: string;
}

export const NO_PROXIES: ProxySettings = { https: null, http: null, none: '' };

/** The proxy's address, or null. `own`: what the provider's configuration says; undefined: nothing. */
export function proxyOf(origin: string, own: string | undefined, { https, http, none }: ProxySettings): string | null {
  if (own !== undefined) return own === 'none' ? null : own;
  const { protocol, hostname, port } = new URL(origin);
  const proxy = protocol === 'https:' ? https : http;
  if (proxy === null) return null;
  const host = hostname.replace(/^\[|\]$/g, '');
  const isLocal = isIP(host) === 0 ? host === 'localhost' || !host.includes('.') : !isPublicAddress(host);
  const portNumber = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
  return isLocal || none.split(/[\s,]+/).some((entry) => names(entry.toLowerCase(), host, portNumber)) ? null : proxy;
}

/** `example.com`, `.example.com` and `*.example.com` all name the host and what is below it; `*` names everything. */
function names(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const [, name = entry, ofPort] = /^(.*?):(\d{1,5})$/.exec(entry) ?? [];
  if (ofPort !== undefined && ofPort !== port) return false;
  const suffix = name.replace(/^\*?\./, '');
  return host === suffix || host.endsWith(`.${suffix}`);
}
