// Two Postgres servers: a writer, and its synchronous standby, which takes over when the writer dies. It uses Patroni
// with etcd, and HAProxy as the one address that leads to the writer, all from Debian's packages. Needs root, because
// the programs change to the user `postgres` (Postgres refuses to run as root).

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chownSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { findFreePort } from './free-port.ts';
import { httpCall } from './http-call.ts';
import { listDescendants } from './process-table.ts';
import { needs } from './programs.ts';
import { silentLog } from './silent-log.ts';
import { pause, waitFor } from './waiting.ts';

/** The smallest value that Patroni accepts: this long after its last sign of life a leader counts as dead. */
const LEADER_TTL_SECONDS = 20;
const READY_MS = 120_000;
const LOG_LINES = 40;
const POSTGRES_BINARIES = '/usr/lib/postgresql';

interface Node {
  readonly name: string;
  readonly port: number;
  readonly apiPort: number;
  readonly configurationPath: string;
  process: ChildProcess | null;
}

/** The options of a test: skips it if a program is missing here. */
export function needsPatroni(): { readonly skip?: string } {
  const programs = needs('patroni', 'etcd', 'haproxy', 'pgrep');
  if (programs.skip !== undefined) return programs;
  if (process.getuid?.() !== 0) return { skip: 'needs root, to run Postgres as another user' };
  return existsSync(POSTGRES_BINARIES) ? {} : { skip: `not on this machine: ${POSTGRES_BINARIES}` };
}

export class PatroniCluster {
  /** The address that leads to the present writer. */
  readonly url: string;
  private readonly directory: string;
  private readonly user: { readonly uid: number; readonly gid: number };
  private readonly nodes: readonly Node[];
  private readonly fixed: ChildProcess[] = [];

  private constructor(parts: {
    directory: string;
    user: PatroniCluster['user'];
    nodes: readonly Node[];
    port: number;
  }) {
    this.directory = parts.directory;
    this.user = parts.user;
    this.nodes = parts.nodes;
    this.url = `postgres://postgres:${PASSWORD}@127.0.0.1:${parts.port}/tollgate`;
  }

  static async start(): Promise<PatroniCluster> {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-patroni-'));
    const user = userOfPostgres();
    chownSync(directory, user.uid, user.gid);
    const [etcdPort, peerPort, port] = [await findFreePort(), await findFreePort(), await findFreePort()];
    const nodes: Node[] = [];
    for (const name of ['one', 'two']) {
      const ports = { port: await findFreePort(), apiPort: await findFreePort() };
      const configurationPath = join(directory, `${name}.yaml`);
      writeFileSync(configurationPath, patroniConfiguration({ name, ...ports, etcdPort, directory }));
      nodes.push({ name, ...ports, configurationPath, process: null });
    }
    const cluster = new PatroniCluster({ directory, user, nodes, port });
    try {
      cluster.fixed.push(cluster.run('etcd', 'etcd', etcdArguments({ directory, etcdPort, peerPort })));
      const balancerPath = join(directory, 'haproxy.cfg');
      writeFileSync(balancerPath, balancerConfiguration(port, nodes));
      cluster.fixed.push(cluster.run('haproxy', 'haproxy', ['-db', '-f', balancerPath]));
      for (const node of nodes) {
        cluster.startNode(node);
        await cluster.until(`${node.name} to run`, async () => (await cluster.roleOf(node)) !== null);
      }
      await cluster.untilSynchronous();
      await cluster.createDatabase();
      return cluster;
    } catch (fault) {
      await cluster.stop();
      throw fault;
    }
  }

  /** Kills the writer and its Patroni. Resolves when another server accepts writes, with the time that it took. */
  async killLeader(): Promise<number> {
    const leader = await this.leader();
    const startedMs = performance.now();
    const { pid } = leader.process as ChildProcess;
    // The server is not a child of Patroni, which leaves it running when it ends.
    for (const victim of [
      pid as number,
      ...listDescendants(pid as number).map((entry) => entry.pid),
      ...this.serversOf(leader),
    ])
      killIfThere(victim);
    leader.process = null;
    await this.until('the standby to take over', () => this.hasLeader());
    return performance.now() - startedMs;
  }

  /** Brings the killed server back as the standby, and waits until commits wait for it again. */
  async restoreStandby(): Promise<void> {
    for (const node of this.nodes) if (node.process === null) this.startNode(node);
    await this.untilSynchronous();
  }

  async stop(): Promise<void> {
    const children = [...this.nodes.flatMap((node) => node.process ?? []), ...this.fixed];
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(children.map(exitOf));
    for (const node of this.nodes) for (const pid of this.serversOf(node)) killIfThere(pid);
    rmSync(this.directory, { recursive: true, force: true });
  }

  private async leader(): Promise<Node> {
    for (const node of this.nodes) if ((await this.roleOf(node)) === 'leader') return node;
    throw new Error('no server of the cluster is written to');
  }

  /** null: the node does not answer, or is not ready. */
  private async roleOf(node: Node): Promise<'leader' | 'standby' | null> {
    if (node.process === null) return null;
    if ((await statusOf(node, '/primary')) === 200) return 'leader';
    return (await statusOf(node, '/replica')) === 200 ? 'standby' : null;
  }

  /** A server that just took over still reports for a moment that it is the synchronous standby. */
  private async untilSynchronous(): Promise<void> {
    const isSynchronous = async (node: Node): Promise<boolean> =>
      (await this.roleOf(node)) === 'standby' && (await statusOf(node, '/sync')) === 200;
    await this.until('a synchronous standby', async () => {
      return (await this.hasLeader()) && (await this.countNodes(isSynchronous)) === 1;
    });
  }

  private async hasLeader(): Promise<boolean> {
    return (await this.countNodes(async (node) => (await this.roleOf(node)) === 'leader')) === 1;
  }

  private async countNodes(fits: (node: Node) => Promise<boolean>): Promise<number> {
    return (await Promise.all(this.nodes.map(fits))).filter(Boolean).length;
  }

  /** If the state is not reached, the error contains the last output of every program. */
  private async until(what: string, isThere: () => Promise<boolean>): Promise<void> {
    await waitFor(what, isThere, (there) => there, READY_MS).catch((fault: Error) => {
      const logs = readdirSync(this.directory).filter((name) => name.endsWith('.log'));
      const words = logs.map((name) => {
        const lines = readFileSync(join(this.directory, name), 'utf8').trimEnd().split('\n');
        return [`${name}:`, ...lines.slice(-LOG_LINES)].join('\n  ');
      });
      throw new Error(`${fault.message}\n${words.join('\n')}`);
    });
  }

  private async createDatabase(): Promise<void> {
    const leader = await this.leader();
    const address = `postgres://postgres:${PASSWORD}@127.0.0.1:${leader.port}/postgres`;
    const postgres = createPostgres({ url: address, log: silentLog, max: 1 });
    await postgres.query('CREATE DATABASE tollgate');
    await postgres.close();
    // HAProxy checks once a second.
    await pause(3_000);
  }

  private startNode(node: Node): void {
    node.process = this.run(node.name, 'patroni', [node.configurationPath]);
  }

  private run(name: string, program: string, programArguments: readonly string[]): ChildProcess {
    const child = spawn(program, programArguments, {
      ...this.user,
      cwd: this.directory,
      env: { PATH: process.env['PATH'], HOME: this.directory, ETCD_UNSUPPORTED_ARCH: process.arch },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // If a program does not start, the wait for it fails and names it.
    child.on('error', () => undefined);
    const log = createWriteStream(join(this.directory, `${name}.log`), { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    return child;
  }

  /** The Postgres processes of its data directory. */
  private serversOf({ name }: Node): number[] {
    const dataDirectory = join(this.directory, `data-${name}`);
    const { stdout } = spawnSync('pgrep', ['-f', `^\\S*postgres -D ${dataDirectory} `], { encoding: 'utf8' });
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map(Number)
      .flatMap((pid) => [pid, ...listDescendants(pid).map((entry) => entry.pid)]);
  }
}

/** 0: the node's Patroni does not answer. */
async function statusOf({ apiPort }: Node, path: string): Promise<number> {
  return (await httpCall(`http://127.0.0.1:${apiPort}${path}`).catch(() => ({ status: 0 }))).status;
}

/** The password of the cluster's users. The cluster listens only on loopback, and is removed with the test. */
const PASSWORD = 'of-this-run';

function userOfPostgres(): { readonly uid: number; readonly gid: number } {
  const id = (flag: string): number => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

function etcdArguments(of: { directory: string; etcdPort: number; peerPort: number }): string[] {
  const clients = `http://127.0.0.1:${of.etcdPort}`;
  const peers = `http://127.0.0.1:${of.peerPort}`;
  const flags = {
    name: 'etcd',
    'data-dir': join(of.directory, 'etcd'),
    'listen-client-urls': clients,
    'advertise-client-urls': clients,
    'listen-peer-urls': peers,
    'initial-advertise-peer-urls': peers,
    'initial-cluster': `etcd=${peers}`,
  };
  return Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
}

function patroniConfiguration(of: {
  name: string;
  port: number;
  apiPort: number;
  etcdPort: number;
  directory: string;
}): string {
  const [version] = readdirSync(POSTGRES_BINARIES).toSorted((one, other) => Number(other) - Number(one));
  mkdirSync(join(of.directory, 'run'), { recursive: true, mode: 0o777 });
  return `
scope: tollgate
name: ${of.name}
restapi: { listen: '127.0.0.1:${of.apiPort}', connect_address: '127.0.0.1:${of.apiPort}' }
etcd3: { hosts: ['127.0.0.1:${of.etcdPort}'] }
bootstrap:
  dcs:
    ttl: ${LEADER_TTL_SECONDS}
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: { max_connections: 100, fsync: 'off' }
  initdb: [{ encoding: UTF8 }, { locale: C.UTF-8 }]
  pg_hba: ['host all all 127.0.0.1/32 md5', 'host replication all 127.0.0.1/32 md5']
postgresql:
  listen: 127.0.0.1:${of.port}
  connect_address: 127.0.0.1:${of.port}
  data_dir: ${join(of.directory, `data-${of.name}`)}
  bin_dir: ${join(POSTGRES_BINARIES, version ?? '', 'bin')}
  pgpass: ${join(of.directory, `pgpass-${of.name}`)}
  authentication:
    superuser: { username: postgres, password: ${PASSWORD} }
    replication: { username: replicator, password: ${PASSWORD} }
    rewind: { username: rewinder, password: ${PASSWORD} }
  parameters: { unix_socket_directories: '${of.directory}' }
`;
}

/** As docs/databases.md requires: one address, and nobody keeps talking to a server that is no longer the writer. */
function balancerConfiguration(port: number, nodes: readonly Node[]): string {
  const servers = nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port} check port ${node.apiPort}`);
  return `
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 2s
listen writer
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process ended together with its parent.
  }
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('exit', resolve));
}
