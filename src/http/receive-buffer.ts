// Bounds what the system holds of a connection that the client has sent and nobody has read yet.
//
// uWebSockets.js reads a socket on until a read does not fill its half megabyte, whether it is paused or not. Linux
// lets the buffer of a connection grow to many megabytes (`tcp_rmem`), and a client that is as fast as we are keeps it
// full: a whole file would come in one tick and lie in memory. Of a buffer that is smaller than one read a tick takes
// one read, whatever the client does, and what was paused stays with the client.
//
// The price is the pace of one connection over a long way, a buffer for each round trip: 2 to 4 MB/s at 100 ms. TLS is
// a front's, which is near.

import { spawn } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';

/**
 * What Linux lets everybody ask for by default (`net.core.rmem_max`). It doubles it to have room for its own headers,
 * and so holds less than 425,984 bytes of what was sent.
 */
const RECEIVE_BUFFER_BYTES = 212_992;

/**
 * Sets SO_RCVBUF of the socket that it is given, and ends with 0 if that was done. Node has this call for UDP alone,
 * but to the system it is the same for every socket. It needs a process of its own: within one, libuv takes no socket
 * twice, and lets go of it only by closing it.
 */
const SET_RECEIVE_BUFFER = `
const { UDP } = process.binding('udp_wrap');
const socket = new UDP();
const isSet = socket.open(3) === 0 && socket.bufferSize(${RECEIVE_BUFFER_BYTES}, true, {}) !== undefined;
process.exit(isSet ? 0 : 1);
`;

/** It takes some 40 ms. */
const TIMEOUT_MS = 10_000;

/**
 * For all connections that come to this port of this process from now on: they get it from the socket that listens
 * (Linux, tcp(7)). False: that could not be done, and they hold as much as the system lets them.
 */
export async function boundReceiveBuffers(port: number): Promise<boolean> {
  const listening = await findListening(port);
  const done = await Promise.all(listening.map(setReceiveBuffer));
  return done.length > 0 && done.every(Boolean);
}

/** The descriptors of this process's sockets that listen on the port. uWebSockets.js does not tell its own. */
async function findListening(port: number): Promise<readonly number[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/self/net/${name}`, 'utf8').catch(() => '')),
  );
  const sockets = new Set(tables.flatMap((table) => listeningIn(table, port)));
  const descriptors = await readdir('/proc/self/fd').catch(() => []);
  // One may be closed meanwhile.
  const links = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return descriptors.filter((_, index) => sockets.has(links[index] ?? '')).map(Number);
}

/** Its rows, behind one of names: number, local address and port in hex, remote ones, state, …, inode as the tenth. */
function listeningIn(table: string, port: number): readonly string[] {
  const localPort = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = table.split('\n').map((row) => row.trim().split(/\s+/));
  const own = rows.filter(([, local, , state]) => state === LISTEN && local?.endsWith(localPort) === true);
  return own.map((columns) => `socket:[${columns[9]}]`);
}

const LISTEN = '0A';

function setReceiveBuffer(descriptor: number): Promise<boolean> {
  const done = new Promise<boolean>((resolve) => {
    const child = spawn(process.execPath, ['-e', SET_RECEIVE_BUFFER], {
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', descriptor],
      timeout: TIMEOUT_MS,
    });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
  // A system that lets no process be made may say so at once.
  return done.catch(() => false);
}
