// A disk with a page cache: what is written survives the death of a process, what is synced survives a power cut, what
// lies between is dropped or torn.
//
// Names are as POSIX has them: an entry of a directory is certain once that directory was synced. A failed sync drops
// what it should have written, and the next one succeeds without it, as Linux does.

import { dirname } from 'node:path';
import type { SeededRandom } from './seeded-random.ts';

const PAGE_BYTES = 512;

type Extent = readonly [from: number, to: number];

interface FileNode {
  readonly kind: 'file';
  /** What a process reads. */
  bytes: Buffer;
  size: number;
  /** What is on the platter. */
  durable: Buffer;
  durableSize: number;
  dirty: Extent[];
  /** The extents that a running sync is writing. */
  syncing: Extent[];
  /** A write to the platter failed, and no process has been told. */
  failed: boolean;
  linked: boolean;
}

interface DirectoryNode {
  readonly kind: 'directory';
  entries: Map<string, Node>;
  durable: Map<string, Node>;
  /** Changes of entries since the last sync of this directory, oldest first. */
  pending: ((entries: Map<string, Node>) => void)[];
}

type Node = FileNode | DirectoryNode;

export interface OpenFile {
  readonly node: Node;
  readonly path: string;
  readonly append: boolean;
}

export function diskError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}

function newDirectory(): DirectoryNode {
  return { kind: 'directory', entries: new Map(), durable: new Map(), pending: [] };
}

export class SimulatedDisk {
  private capacityBytes = 1 << 30;
  /** The chance of each trouble, at each operation. */
  readonly trouble = { syncFails: 0, writeFails: 0, shortWrite: 0, readFails: 0, slowSyncMs: 0 };
  private readonly random: SeededRandom;
  private readonly root = newDirectory();
  private usedBytes = 0;

  constructor(random: SeededRandom) {
    this.random = random;
  }

  get freeBytes(): number {
    return Math.max(0, this.capacityBytes - this.usedBytes);
  }

  /** Leaves only this many free bytes, as if another program used the rest; null: the space is free again. */
  leave(bytes: number | null): void {
    this.capacityBytes = bytes === null ? 1 << 30 : this.usedBytes + bytes;
  }

  exists(path: string): boolean {
    return this.find(path) !== null;
  }

  list(path: string): string[] {
    return [...this.directory(path).entries.keys()].sort();
  }

  open(path: string, flags: string): OpenFile {
    const found = this.find(path);
    if (flags === 'r') {
      if (found === null) throw diskError('ENOENT', path);
      return { node: found, path, append: false };
    }
    if (found !== null && flags.includes('x')) throw diskError('EEXIST', path);
    if (found?.kind === 'directory') throw diskError('EISDIR', path);
    const node = found ?? this.create(path);
    if (flags.startsWith('w')) this.truncate({ node, path, append: false }, 0);
    return { node, path, append: flags.startsWith('a') };
  }

  private create(path: string): FileNode {
    const parent = this.directory(dirname(path));
    if (this.freeBytes === 0) throw diskError('ENOSPC', path);
    const node: FileNode = {
      kind: 'file',
      bytes: Buffer.alloc(1_024),
      size: 0,
      durable: Buffer.alloc(0),
      durableSize: 0,
      dirty: [],
      syncing: [],
      failed: false,
      linked: true,
    };
    this.change(parent, (entries) => entries.set(nameOf(path), node));
    return node;
  }

  /** Returns how many bytes were written: fewer if the disk is full or in trouble. */
  append({ node, path }: OpenFile, bytes: Uint8Array, lengthMax = bytes.length): number {
    if (node.kind !== 'file') throw diskError('EISDIR', path);
    if (this.random.chance(this.trouble.writeFails)) throw diskError('EIO', path);
    let length = Math.min(lengthMax, this.freeBytes);
    if (length === 0 && lengthMax > 0) throw diskError('ENOSPC', path);
    if (length > 1 && this.random.chance(this.trouble.shortWrite)) length = this.random.whole(1, length - 1);
    grow(node, node.size + length);
    node.bytes.set(bytes.subarray(0, length), node.size);
    node.dirty.push([node.size, node.size + length]);
    node.size += length;
    this.usedBytes += length;
    return length;
  }

  truncate({ node, path }: OpenFile, size: number): void {
    if (node.kind !== 'file') throw diskError('EISDIR', path);
    if (this.random.chance(this.trouble.writeFails)) throw diskError('EIO', path);
    this.usedBytes -= Math.max(0, node.size - size);
    node.bytes.fill(0, size, node.size);
    node.size = size;
    const within = (extents: Extent[]): Extent[] =>
      extents.filter(([from]) => from < size).map(([from, to]) => [from, Math.min(to, size)]);
    node.dirty = within(node.dirty);
    node.syncing = within(node.syncing);
    node.durableSize = Math.min(node.durableSize, size);
  }

  read({ node, path }: OpenFile, target: Buffer, at: number, length: number, position: number): number {
    if (node.kind !== 'file') throw diskError('EISDIR', path);
    if (this.random.chance(this.trouble.readFails)) throw diskError('EIO', path);
    const end = Math.min(node.size, position + length);
    if (end <= position) return 0;
    return node.bytes.copy(target, at, position, end);
  }

  size({ node }: OpenFile): number {
    return node.kind === 'file' ? node.size : 0;
  }

  readWhole(path: string): Buffer {
    const { bytes, size } = this.file(path);
    return Buffer.from(bytes.subarray(0, size));
  }

  readText(path: string, encoding: BufferEncoding): string {
    const { bytes, size } = this.file(path);
    return bytes.toString(encoding, 0, size);
  }

  private file(path: string): FileNode {
    const node = this.find(path);
    if (node?.kind !== 'file') throw diskError(node === null ? 'ENOENT' : 'EISDIR', path);
    return node;
  }

  /** Throws if the sync failed, or if an earlier write failed of which no process was told. */
  sync({ node, path }: OpenFile): void {
    if (node.kind === 'directory') {
      this.syncEntries(node);
      return;
    }
    this.beginSync(node);
    this.endSync(node, path);
  }

  /** The first half of a slow sync; the second half is `endSync`. */
  beginSync(node: Node): void {
    if (node.kind !== 'file') return;
    const fails = this.random.chance(this.trouble.syncFails);
    if (fails) {
      node.failed = true;
      // Some of the data may have reached the platter; the rest counts as clean from now on.
      node.dirty = node.dirty.filter(() => this.random.chance(0.3));
    }
    node.syncing.push(...node.dirty);
    node.dirty = [];
  }

  endSync(node: Node, path: string): void {
    if (node.kind !== 'file') return;
    const { syncing } = node;
    node.syncing = [];
    const { failed } = node;
    node.failed = false;
    for (const extent of syncing) store(node, extent);
    if (failed) throw diskError('EIO', path);
    node.durableSize = Math.max(node.durableSize, ...syncing.map(([, to]) => to));
  }

  private syncEntries(directory: DirectoryNode): void {
    directory.durable = new Map(directory.entries);
    directory.pending = [];
  }

  /** Returns the topmost directory that was made; null if all existed. */
  makeDirectories(path: string): string | null {
    if (this.find(path) !== null) return null;
    const above = this.makeDirectories(dirname(path));
    const parent = this.directory(dirname(path));
    if (this.freeBytes === 0) throw diskError('ENOSPC', path);
    const made = newDirectory();
    this.change(parent, (entries) => entries.set(nameOf(path), made));
    return above ?? path;
  }

  /** Renames within one directory, as all of our renames do. */
  rename(from: string, to: string): void {
    const parent = this.directory(dirname(from));
    if (dirname(from) !== dirname(to)) throw diskError('EXDEV', from);
    const node = parent.entries.get(nameOf(from));
    if (node === undefined) throw diskError('ENOENT', from);
    const replaced = parent.entries.get(nameOf(to));
    if (replaced !== undefined) this.unlinked(replaced);
    this.change(parent, (entries) => {
      entries.delete(nameOf(from));
      entries.set(nameOf(to), node);
    });
  }

  remove(path: string): void {
    const parent = this.directory(dirname(path));
    const node = parent.entries.get(nameOf(path));
    if (node === undefined) throw diskError('ENOENT', path);
    this.unlinked(node);
    this.change(parent, (entries) => entries.delete(nameOf(path)));
  }

  private unlinked(node: Node): void {
    if (node.kind === 'directory') for (const below of node.entries.values()) this.unlinked(below);
    else if (node.linked) {
      node.linked = false;
      this.usedBytes -= node.size;
    }
  }

  /** The texts of all files below a directory, as far as they would survive a power cut now. */
  certainTexts(path: string): string[] {
    const texts: string[] = [];
    const walk = (node: Node): void => {
      if (node.kind === 'file') texts.push(node.durable.toString('latin1', 0, node.durableSize));
      else for (const below of node.durable.values()) walk(below);
    };
    const node = this.find(path);
    if (node !== null) walk(node);
    return texts;
  }

  cutPower(): void {
    this.usedBytes = 0;
    this.loseDirectory(this.root, new Set());
  }

  private loseDirectory(directory: DirectoryNode, seen: Set<Node>): void {
    const surviving = this.random.below(directory.pending.length + 1);
    for (const change of directory.pending.slice(0, surviving)) change(directory.durable);
    directory.pending = [];
    directory.entries = new Map(directory.durable);
    for (const node of directory.entries.values()) {
      if (seen.has(node)) continue;
      seen.add(node);
      if (node.kind === 'directory') this.loseDirectory(node, seen);
      else this.loseFile(node);
    }
  }

  /**
   * Each page that was not synced is either written or not. The size may be larger than what was written; the rest then
   * reads as zeros.
   */
  private loseFile(node: FileNode): void {
    let size = node.durableSize;
    const order = this.random.chance(0.7) ? 'prefix' : 'any';
    for (const [from, to] of [...node.syncing, ...node.dirty]) {
      let stopped = false;
      for (let at = from; at < to && !stopped; at = Math.min(to, (Math.floor(at / PAGE_BYTES) + 1) * PAGE_BYTES)) {
        const end = Math.min(to, (Math.floor(at / PAGE_BYTES) + 1) * PAGE_BYTES);
        if (this.random.chance(0.5)) {
          const until = this.random.chance(0.3) ? this.random.whole(at, end) : end;
          store(node, [at, until]);
          size = Math.max(size, until);
        } else if (order === 'prefix') {
          stopped = true;
        }
      }
      if (stopped) break;
    }
    if (size < node.size && this.random.chance(0.2)) size = this.random.whole(size, node.size);
    const durable = Buffer.alloc(Math.max(1_024, size));
    node.durable.copy(durable, 0, 0, Math.min(size, node.durable.length));
    node.durable = durable;
    node.durableSize = size;
    node.bytes = Buffer.from(durable);
    node.size = size;
    node.dirty = [];
    node.syncing = [];
    node.failed = false;
    node.linked = true;
    this.usedBytes += size;
  }

  private change(directory: DirectoryNode, change: (entries: Map<string, Node>) => void): void {
    change(directory.entries);
    directory.pending.push(change);
  }

  private find(path: string): Node | null {
    let node: Node = this.root;
    for (const name of partsOf(path)) {
      if (node.kind !== 'directory') return null;
      const next = node.entries.get(name);
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }

  private directory(path: string): DirectoryNode {
    const node = this.find(path);
    if (node === null) throw diskError('ENOENT', path);
    if (node.kind !== 'directory') throw diskError('ENOTDIR', path);
    return node;
  }
}

const parts = new Map<string, readonly string[]>();

function partsOf(path: string): readonly string[] {
  let found = parts.get(path);
  if (found === undefined) {
    if (parts.size > 10_000) parts.clear();
    found = path.split('/').filter((name) => name !== '');
    parts.set(path, found);
  }
  return found;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function grow(node: FileNode, size: number): void {
  if (node.bytes.length >= size) return;
  const larger = Buffer.alloc(Math.max(size, node.bytes.length * 2));
  node.bytes.copy(larger, 0, 0, node.size);
  node.bytes = larger;
}

/** Writes an extent from the cache to the platter. */
function store(node: FileNode, [from, to]: Extent): void {
  if (node.durable.length < to) {
    const larger = Buffer.alloc(Math.max(to, node.durable.length * 2));
    node.durable.copy(larger);
    node.durable = larger;
  }
  node.bytes.copy(node.durable, from, from, Math.min(to, node.size));
}
