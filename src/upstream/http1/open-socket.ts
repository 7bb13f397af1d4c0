// Opens the socket of a connection to a provider: plain, or TLS with the provider's certificate checked.

import type { Buffer } from 'node:buffer';
import { isIP, type LookupFunction, type OnReadOpts, connect as openPlain, type Socket } from 'node:net';
import { connect as openTls } from 'node:tls';
import type { TlsOptions } from '../tls-files.ts';

/** Where connections go to. */
export interface Peer {
  readonly isTls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly lookup: LookupFunction;
  readonly tls: TlsOptions;
  /** The last TLS session, with which the next connection saves a round trip. */
  session: Buffer | null;
}

export interface SocketOwner {
  readonly onread: OnReadOpts;
  readonly onConnected: () => void;
  /** A TLS session that a later connection may resume; it may come before the certificate is checked. */
  readonly onSession: (session: Buffer) => void;
}

export function openSocket(
  { isTls, host, port, lookup, tls, session }: Peer,
  { onread, onConnected, onSession }: SocketOwner,
): Socket {
  if (!isTls) return openPlain({ host, port, lookup, onread }, onConnected);
  // An address is no name to ask for (RFC 6066 3); the certificate is checked against it all the same.
  const servername = isIP(host) === 0 ? host : '';
  const { ca, ...ownCertificate } = tls;
  const options = {
    ...ownCertificate,
    ...(ca === undefined ? {} : { ca: [...ca] }),
    host,
    port,
    lookup,
    onread,
    servername,
    ALPNProtocols: ['http/1.1'],
    ...(session === null ? {} : { session }),
  };
  return openTls(options, onConnected).on('session', onSession);
}
