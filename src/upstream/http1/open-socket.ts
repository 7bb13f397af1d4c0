// Opens the socket of a connection to a provider: plain, or TLS with the provider's certificate checked.

import type { Buffer } from 'node:buffer';
import { isIP, type LookupFunction, type OnReadOpts, connect as openPlain, Socket } from 'node:net';
import { connect as openTls } from 'node:tls';
import type { EgressGuard } from '../../platform/egress/egress-guard.ts';
import type { TlsOptions } from '../tls-files.ts';

/** Where connections go to. */
export interface Peer {
  readonly isTls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly lookup: LookupFunction;
  readonly tls: TlsOptions;
  /** The egress rules for an address that a customer chose; null: the operator chose it. */
  readonly guard: EgressGuard | null;
  /** The last TLS session, with which the next connection saves a round trip. */
  session: Buffer | null;
}

export interface SocketOwner {
  readonly onread: OnReadOpts;
  readonly onConnected: () => void;
  /** A TLS session that a later connection may resume; it may come before the certificate is checked. */
  readonly onSession: (session: Buffer) => void;
}

export function openSocket(peer: Peer, owner: SocketOwner): Socket {
  const { guard, host, port, lookup } = peer;
  if (guard === null) return open(peer, owner);
  const refusal = guard.refusalOfHost(host, port);
  // The refusal is reported as any failure to connect is: after this function has returned.
  if (refusal !== null) return new Socket().destroy(refusal);
  const onConnected = (): void => {
    if (!socket.destroyed) owner.onConnected();
  };
  const socket = open({ ...peer, lookup: guard.lookup(lookup, port) }, { ...owner, onConnected });
  guard.watch(socket, port);
  return socket;
}

function open(
  { isTls, host, port, lookup, tls, session }: Peer,
  { onread, onConnected, onSession }: SocketOwner,
): Socket {
  if (!isTls) return openPlain({ host, port, lookup, onread }, onConnected);
  // SNI carries names only, never addresses (RFC 6066 3). The certificate is checked against the address all the same.
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
