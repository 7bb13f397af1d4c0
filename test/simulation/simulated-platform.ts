// Replaces the machine for the code under simulation: files, timers, the identity of its process. While a world runs,
// the functions of node:fs and the global timers act on that world, for its running process; at any other time they are
// Node's own.

import fs from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { diskError, type OpenFile, type SimulatedDisk } from './simulated-disk.ts';
import { type SimulatedProcess, World } from './virtual-world.ts';

/** A computer: its disk, its processes, and a boot id that changes with each start. */
export interface Machine {
  readonly disk: SimulatedDisk;
  readonly processes: Map<number, SimulatedProcess>;
  boot: number;
}

let world: World | null = null;
let machine: Machine | null = null;
let openFiles = new Map<number, OpenFile>();
let nextDescriptor = 0;

/** Runs `work` within a world. */
export function within<T>(running: World, on: Machine, work: () => T): T {
  install();
  world = running;
  machine = on;
  openFiles = new Map();
  nextDescriptor = 1_000_000;
  const { stackTraceLimit } = Error;
  // A fault that no promise of a simulated process catches belongs to the world; without this listener the test runner
  // would take it for its own.
  const listeners = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (fault) => running.noteFault(fault));
  // Missing files are looked up all the time, and only a reader of the event log needs stack traces.
  if (running.log === null) Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    process.removeAllListeners('unhandledRejection');
    for (const listener of listeners) process.on('unhandledRejection', listener);
    world = null;
    machine = null;
  }
}

function isSimulated(): boolean {
  return world !== null && world.current !== null;
}

function processHere(): SimulatedProcess {
  return world?.current as SimulatedProcess;
}

/** A system call of the running process, which may die instead. */
function call(what: string, last?: () => void): SimulatedDisk {
  processHere().step(what, last);
  if (running().log !== null) running().note(`${processHere().name}: ${what}`);
  return (machine as Machine).disk;
}

function fileOf(fd: number): OpenFile {
  const file = openFiles.get(fd);
  if (file === undefined) throw diskError('EBADF', `descriptor ${fd}`);
  return file;
}

function openFile(path: string, flags: string): number {
  const file = call(`open ${path}`).open(path, flags);
  nextDescriptor += 1;
  openFiles.set(nextDescriptor, file);
  return nextDescriptor;
}

function appendTo(fd: number, bytes: Uint8Array): number {
  const file = fileOf(fd);
  const disk = call(`write ${file.path}`, () => {
    // The process was killed in the middle of a write: the first part of it may be written.
    if (bytes.length > 1 && running().random.chance(0.5))
      attempt(() => (machine as Machine).disk.append(file, bytes, running().random.below(bytes.length)));
  });
  return disk.append(file, bytes);
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The process is dead, so nobody is told.
  }
}

function running(): World {
  return world as World;
}

/** The second half of a sync, which comes when the disk is done. */
function syncLater(fd: number, done: (error: Error | null) => void): void {
  const { node, path } = fileOf(fd);
  const disk = call(`fdatasync ${path}`);
  const process = processHere();
  disk.beginSync(node);
  const { slowSyncMs } = disk.trouble;
  const tookMs =
    slowSyncMs > 0 && running().random.chance(0.2)
      ? running().random.between(0, slowSyncMs)
      : running().random.between(0.1, 3);
  // A sync that has begun ends, whether or not the process lives to hear of it.
  const boot = (machine as Machine).boot;
  const here = running();
  const disks = machine as Machine;
  here.in(tookMs, 'disk synced', () => {
    if (disks.boot !== boot) return;
    let error: Error | null = null;
    try {
      disk.endSync(node, path);
    } catch (fault) {
      error = fault as Error;
    }
    here.note(`disk: ${path} ${error === null ? 'is synced' : 'could not be synced'}`);
    process.in(0, 'fdatasync', () => done(error));
  });
}

function identityFile(path: string): string | null {
  const { boot, processes } = machine as Machine;
  if (path === '/proc/sys/kernel/random/boot_id') return `boot-${boot}\n`;
  const pid = /^\/proc\/(\d+)\/stat$/.exec(path)?.[1];
  if (pid === undefined) return null;
  if (processes.get(Number(pid))?.alive !== true) throw diskError('ENOENT', path);
  // Field 22 is the start time. No pid is used twice here, so the pid serves as the start time.
  return `${pid} (node) S ${'0 '.repeat(18)}${pid} 0\n`;
}

const SIMULATED = {
  openSync: (path: string, flags: string) => openFile(path, flags),
  closeSync: (fd: number) => {
    call('close');
    openFiles.delete(fd);
  },
  writeSync: (fd: number, bytes: Uint8Array, offset: number, length: number) =>
    appendTo(fd, bytes.subarray(offset, offset + length)),
  readSync: (fd: number, target: Buffer, offset: number, length: number, position: number) => {
    const file = fileOf(fd);
    return call(`read ${file.path}`).read(file, target, offset, length, position);
  },
  fdatasync: syncLater,
  fdatasyncSync: (fd: number) => call(`fdatasync ${fileOf(fd).path}`).sync(fileOf(fd)),
  fsyncSync: (fd: number) => call(`fsync ${fileOf(fd).path}`).sync(fileOf(fd)),
  ftruncateSync: (fd: number, size: number) => call(`ftruncate ${fileOf(fd).path}`).truncate(fileOf(fd), size),
  fstatSync: (fd: number) => ({ size: call('fstat').size(fileOf(fd)) }),
  statSync: (path: string) => {
    const disk = call(`stat ${path}`);
    return { size: disk.size(disk.open(path, 'r')) };
  },
  existsSync: (path: string) => call(`exists ${path}`).exists(path),
  readdirSync: (path: string) => call(`readdir ${path}`).list(path),
  mkdirSync: (path: string) => call(`mkdir ${path}`).makeDirectories(path) ?? undefined,
  renameSync: (from: string, to: string) => call(`rename ${from}`).rename(from, to),
  unlinkSync: (path: string) => call(`unlink ${path}`).remove(path),
  rmSync: (path: string) => {
    const disk = call(`rm ${path}`);
    if (disk.exists(path)) disk.remove(path);
  },
  readFileSync: (path: string, encoding?: BufferEncoding) => {
    const disk = call(`read ${path}`);
    // Identity files are read most often, and always as text.
    if (path.startsWith('/proc/')) return identityFile(path) ?? '';
    return encoding === undefined ? disk.readWhole(path) : disk.readText(path, encoding);
  },
  writeFileSync: (fd: number, content: string | Uint8Array) => {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    for (let written = 0; written < bytes.length; ) written += appendTo(fd, bytes.subarray(written));
  },
  statfs: (_path: string, done: (error: Error | null, found: { bavail: number; bsize: number }) => void) => {
    const disk = call('statfs');
    processHere().in(running().random.between(0.1, 1), 'statfs', () =>
      done(null, { bavail: disk.freeBytes, bsize: 1 }),
    );
  },
};

/** The part of a file handle's interface that filling a reserve needs. */
async function openHandle(path: string, flags: string) {
  await pause(0.2);
  const fd = openFile(path, flags);
  return {
    async write(bytes: Uint8Array, offset: number, length: number) {
      await pause(0.5);
      return { bytesWritten: appendTo(fd, bytes.subarray(offset, offset + length)) };
    },
    datasync: () =>
      new Promise<void>((resolve, reject) => syncLater(fd, (error) => (error === null ? resolve() : reject(error)))),
    async close() {
      SIMULATED.closeSync(fd);
    },
  };
}

function pause(maxMs: number): Promise<void> {
  const process = processHere();
  return new Promise((resolve) => process.in(running().random.between(0, maxMs), 'thread pool', resolve));
}

class SimulatedTimer {
  private readonly process = processHere();
  private readonly delayMs: number;
  private readonly repeats: boolean;
  private readonly ring: () => void;
  /** Counts each time the timer is set or cleared: an earlier setting no longer fires. */
  private set = 0;

  constructor(ring: () => void, delayMs: number, repeats: boolean) {
    this.ring = ring;
    this.delayMs = Math.max(1, delayMs);
    this.repeats = repeats;
    this.refresh();
  }

  refresh(): this {
    this.set += 1;
    const { set } = this;
    // Timers fire a little late.
    this.process.in(this.delayMs + running().random.between(0, 0.5), 'timer', () => {
      if (set !== this.set) return;
      if (this.repeats) this.refresh();
      this.process.step('timer');
      this.ring();
    });
    return this;
  }

  clear(): void {
    this.set += 1;
  }

  unref(): this {
    return this;
  }
}

let installed = false;

/** Replaces the functions once: they check at each call whether a world runs. */
function install(): void {
  if (installed) return;
  installed = true;
  const real = fs as unknown as Record<string, (...args: never[]) => unknown>;
  for (const [name, simulated] of Object.entries(SIMULATED)) {
    const own = real[name] as (...args: never[]) => unknown;
    real[name] = (...args: never[]) =>
      isSimulated() ? (simulated as (...args: never[]) => unknown)(...args) : own(...args);
  }
  const { open } = promises;
  promises.open = ((...args: Parameters<typeof open>) =>
    isSimulated() ? openHandle(String(args[0]), String(args[1])) : open(...args)) as unknown as typeof open;
  syncBuiltinESMExports();
  installTimers();
  const { pid } = process;
  Object.defineProperty(process, 'pid', {
    get: () => (isSimulated() ? processHere().pid : pid),
    configurable: true,
    enumerable: true,
  });
}

function installTimers(): void {
  const timers = globalThis as unknown as Record<string, (...args: never[]) => unknown>;
  const replace = (name: string, simulated: (...args: never[]) => unknown): void => {
    const own = timers[name] as (...args: never[]) => unknown;
    timers[name] = Object.assign((...args: never[]) => (isSimulated() ? simulated(...args) : own(...args)), own);
  };
  replace('setTimeout', (ring: () => void, delayMs: number) => new SimulatedTimer(ring, delayMs, false));
  replace('setInterval', (ring: () => void, delayMs: number) => new SimulatedTimer(ring, delayMs, true));
  replace('setImmediate', (run: () => void) => processHere().in(running().random.between(0.01, 0.3), 'tick', run));
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate'])
    replace(name, (timer: SimulatedTimer | undefined) => timer?.clear());
}
