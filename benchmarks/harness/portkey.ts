// Portkey's gateway from the npm registry as a peer: installed on demand, patched in one place, started in front of the
// stub, on the Node that its makers ship it with and on ours.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../test/support/free-port.ts';
import { endWithThis, stopChild } from './child-server.ts';
import { onCore, PROXY_CORE } from './cores.ts';
import { CLIENT_HEADERS, modelOf, type Proxy, untilListening } from './proxies.ts';

const PEERS = fileURLToPath(new URL('../peers/', import.meta.url));
const SERVER = join(PEERS, 'node_modules/@portkey-ai/gateway/build/start-server.js');
const PATCHED_SERVER = join(dirname(SERVER), 'start-server.patched.js');
/** Its image is `node:20-alpine`, so `peers/package.json` pins Node 20; ours runs it with two thirds of the CPU. */
const ITS_NODE = join(PEERS, `node_modules/node-${process.platform}-${process.arch}/bin/node`);

/**
 * The end of Portkey's stream handler: its reply shares the immutable headers of the fetched reply, and current Node
 * refuses to append to them.
 */
const UNPATCHED = ':new Response(p,e)}const Ad';
const PATCHED = ':new Response(p,{status:e.status,headers:new Headers(e.headers)})}const Ad';

/** Whether a proxy is Portkey, on whichever Node. */
export function isPortkey({ name }: Proxy): boolean {
  return name.startsWith('portkey');
}

/** Starts Portkey in front of the stub, on the Node of its own image; null if that cannot be installed here. */
export async function startPortkey(stubPort: number): Promise<Proxy | null> {
  return install() && existsSync(ITS_NODE) ? await start('portkey', ITS_NODE, stubPort) : null;
}

/** The same on the Node that runs the gateway. */
export async function startPortkeyOnOurNode(stubPort: number): Promise<Proxy | null> {
  return install() ? await start('portkey22', process.execPath, stubPort) : null;
}

async function start(name: string, node: string, stubPort: number): Promise<Proxy> {
  const port = await findFreePort();
  const [command, args] = onCore(PROXY_CORE, node, [PATCHED_SERVER, `--port=${port}`, '--headless']);
  const child = spawn(command, args, {
    cwd: PEERS,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  endWithThis(child);
  await untilListening(port);
  return {
    name,
    port,
    pids: [child.pid as number],
    address: (reply) => ({
      path: '/v1/chat/completions',
      headers: {
        ...CLIENT_HEADERS,
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `http://127.0.0.1:${stubPort}/${reply}/v1`,
      },
      model: modelOf(reply),
    }),
    exactBytes: false,
    stop: () => stopChild(child),
  };
}

function install(): boolean {
  if (!existsSync(SERVER) || !existsSync(ITS_NODE)) {
    console.log('installing peers (npm ci in benchmarks/peers) ...');
    const npm = spawnSync('npm', ['ci', '--prefix', PEERS, '--ignore-scripts', '--no-audit', '--no-fund'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (npm.status !== 0) return false;
  }
  const source = readFileSync(SERVER, 'utf8');
  if (!source.includes(UNPATCHED)) throw new Error('Portkey has changed: the patch for streams no longer fits');
  writeFileSync(PATCHED_SERVER, source.replace(UNPATCHED, PATCHED));
  return true;
}
