// Bounds how many bytes of a connection the operating system holds that the client has sent and nobody has read.
//
// uWebSockets.js goes on reading a socket, paused or not, as long as each read fills half a megabyte. Linux lets the
// receive buffer of a connection grow to many megabytes (`tcp_rmem`), and a client that sends as fast as the gateway
// reads keeps it full: a whole file would come in one tick and lie in memory. If the receive buffer is smaller than one
// read, a tick makes only one read, and after a pause the rest stays with the client.
//
// The price is the speed of a connection over a long distance, one buffer for each round trip: 2 to 4 MB/s at 100 ms.
// TLS is terminated by a proxy in front, which is near.

import { spawn } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';

/**
 * The most that Linux lets a process ask for by default (`net.core.rmem_max`). Linux doubles it to have room for its
 * own headers, and so holds less than 425,984 bytes of what was sent.
 */
const RECEIVE_BUFFER_BYTES = 212_992;

/**
 * A program that sets SO_RCVBUF of the socket at descriptor 3, and exits with 0 if it did. Node has this call for UDP
 * only, but to the operating system it is the same for every socket. It runs in a process of its own: within one
 * process, libuv takes no socket twice, and releases a socket only by closing it.
 */
const SET_RECEIVE_BUFFER = `
const { UDP } = process.binding('udp_wrap');
const socket = new UDP();
const isSet = socket.open(3) === 0 && socket.bufferSize(${RECEIVE_BUFFER_BYTES}, true, {}) !== undefined;
process.exit(isSet ? 0 : 1);
`;

/** The program takes some 40 ms. */
const TIMEOUT_MS = 10_000;

/**
 * Bounds the receive buffers of all connections that come to this port of this process from now on: they inherit the
 * size from the listening socket (Linux, tcp(7)). False: it failed, and the buffers grow as far as the system lets
 * them.
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
  // A descriptor may be closed meanwhile.
  const links = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return descriptors.filter((_, index) => sockets.has(links[index] ?? '')).map(Number);
}

/**
 * Reads the rows below the table's head: number, local address and port in hex, remote ones, state, …, inode as the
 * tenth.
 */
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
  // `spawn` throws at once where the system lets no process be made.
  return done.catch(() => false);
}
