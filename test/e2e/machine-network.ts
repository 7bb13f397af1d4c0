// Machines for a test: network namespaces with host names of their own, on one bridge, whose packets can be dropped.
// All of it lies within the namespace of the process, which `inOwnNetwork` gives it, and goes with it.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { pause } from '../support/waiting.ts';

/** Of the machine that has the databases and the provider. */
export const HUB_ADDRESS = '10.99.0.1';
const INSIDE = 'TOLLGATE_TEST_OWN_NETWORK';

/** Why machines cannot be had here; null: they can. */
export function missingForMachines(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux’s';
  if (process.getuid?.() !== 0) return 'making network namespaces wants root';
  for (const [program, question] of [
    ['ip', '-V'],
    ['iptables', '-V'],
    ['unshare', '--version'],
    ['nsenter', '--version'],
  ] as const)
    if (spawnSync(program, [question]).status !== 0) return `the program ${program} is missing`;
  const made = spawnSync('unshare', ['--net', '--uts', 'iptables', '-L', '-n']);
  return made.status === 0 ? null : `a network namespace cannot be made: ${made.stderr.toString().trim()}`;
}

/** Runs this process's own command line again in a network of its own, and gives its exit code; null: it is the one. */
export async function inOwnNetwork(): Promise<number | null> {
  if (process.env[INSIDE] !== undefined) {
    run('ip', 'link', 'set', 'lo', 'up');
    run('ip', 'link', 'add', 'hub', 'type', 'bridge');
    run('ip', 'addr', 'add', `${HUB_ADDRESS}/24`, 'dev', 'hub');
    run('ip', 'link', 'set', 'hub', 'up');
    return null;
  }
  const child = spawn('unshare', ['--net', process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    env: { ...process.env, [INSIDE]: '1' },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** A server of this machine, which listens on loopback or a socket file, for the others, at the same port. */
export async function openToMachines(port: number, target: { host: string; port: number } | string): Promise<Server> {
  const server = createServer((client) => {
    const inner = typeof target === 'string' ? connect(target) : connect(target);
    client.pipe(inner).pipe(client);
    client.on('error', () => inner.destroy()).on('close', () => inner.destroy());
    inner.on('error', () => client.destroy()).on('close', () => client.destroy());
  });
  server.listen(port, HUB_ADDRESS);
  await once(server, 'listening');
  return server;
}

export class Machine {
  readonly name: string;
  readonly address: string;
  /** Keeps the namespaces when nothing else runs in them. */
  private readonly holder: ChildProcess;
  private drops: (readonly [place: 'hub' | 'machine', rule: readonly string[]])[] = [];

  private constructor(number: number, holder: ChildProcess) {
    this.name = `machine-${number}`;
    this.address = `10.99.0.${10 + number}`;
    this.holder = holder;
  }

  static async boot(number: number): Promise<Machine> {
    const name = `machine-${number}`;
    const holder = spawn(
      'unshare',
      ['--net', '--uts', 'sh', '-c', `hostname ${name} && echo up && exec sleep 1000000`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    await once(holder.stdout, 'data');
    const machine = new Machine(number, holder);
    const link = `to-${number}`;
    run('ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(holder.pid));
    run('ip', 'link', 'set', link, 'master', 'hub', 'up');
    run(...machine.command('ip', 'addr', 'add', `${machine.address}/24`, 'dev', 'eth0'));
    run(...machine.command('ip', 'link', 'set', 'lo', 'up'));
    run(...machine.command('ip', 'link', 'set', 'eth0', 'up'));
    await pause(100);
    return machine;
  }

  /** The command line that runs another one on this machine. */
  command(...words: string[]): [program: string, ...rest: string[]] {
    return ['nsenter', '--target', String(this.holder.pid), '--net', '--uts', ...words];
  }

  /**
   * Drops packets between this machine and the hub, both ways and without a word, as a cable does that is pulled.
   * `ports`: of the hub, alone.
   */
  cut(ports: readonly number[] | null = null): void {
    const protocols = ports === null ? [[]] : ports.map((port) => ['-p', 'tcp', 'PORT', String(port)]);
    for (const protocol of protocols) {
      const to = protocol.map((word) => (word === 'PORT' ? '--dport' : word));
      const from = protocol.map((word) => (word === 'PORT' ? '--sport' : word));
      this.drops.push(['hub', ['INPUT', '-s', this.address, ...to, '-j', 'DROP']]);
      this.drops.push(['machine', ['INPUT', '-i', 'eth0', ...from, '-j', 'DROP']]);
    }
    for (const drop of this.drops) this.rule('-A', drop);
  }

  heal(): void {
    for (const drop of this.drops) this.rule('-D', drop);
    this.drops = [];
  }

  private rule(action: '-A' | '-D', [place, words]: (typeof this.drops)[number]): void {
    if (place === 'hub') run('iptables', action, ...words);
    else run(...this.command('iptables', action, ...words));
  }

  shutDown(): void {
    this.holder.kill('SIGKILL');
  }
}

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
