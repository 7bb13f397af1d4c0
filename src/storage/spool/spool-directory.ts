// The spools on this machine as a reader finds them: epochs with their owners, segments in order, quarantine, and
// removal after everything was shipped.

import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { RECORD_FORM } from '../../records/fields.ts';
import { makeDirectoryDurably, syncDirectory, writeFileDurably } from './durable-file.ts';
import { isAlive, isOfAnotherBoot, type ProcessIdentity, readProcessIdentity } from './process-identity.ts';

export interface SpoolOwner extends ProcessIdentity {
  readonly epoch: number;
  readonly openedAtMs: number;
  /** Of all its records; absent: 1, which versions wrote that did not name it. */
  readonly recordForm?: number;
}

/** Where a frame of a spool begins, or what is in the place of one. */
export interface SpoolPlace {
  readonly epoch: number;
  readonly segment: number;
  readonly offset: number;
}

/** The spool of one process. `ended`: nothing will be appended to it any more. */
export interface EpochSpool {
  readonly epoch: number;
  readonly directory: string;
  /** When its owner began to write. */
  readonly openedAtMs: number;
  readonly ended: boolean;
  /**
   * Its owner has not said that it ended, and ran before this machine was started, or runs on another one: this may be
   * a copy.
   */
  readonly mayLiveElsewhere: boolean;
  /** In ascending order; all but the last are complete. */
  readonly segments: readonly number[];
}

export const OWNER_FILE = 'owner.json';
export const CLOSED_FILE = 'closed';
const QUARANTINE_DIRECTORY = 'quarantine';
const SEGMENT_NAME = /^(\d{8,})\.spool$/;
const EPOCH_NAME = /^\d+$/;
const QUARANTINE_NAME = /^(\d+)-(\d+)\.spool-(\d+)\.bad$/;
const UNNAMED = /^\d+\.partial-\d+$/;

export function segmentFileName(segment: number): string {
  return `${String(segment).padStart(8, '0')}.spool`;
}

/** This process, which is to write a spool. */
export function ownerNow(epoch: number, openedAtMs: number): SpoolOwner {
  return { epoch, ...readProcessIdentity(), openedAtMs, recordForm: RECORD_FORM };
}

/** The epochs that have a spool here, oldest first. */
export function listEpochs(spoolDirectory: string): number[] {
  return namesIn(spoolDirectory)
    .filter((name) => EPOCH_NAME.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Whether the owner has finished is read before the segments are listed, so that the list includes what it wrote last.
 * Throws where its records are in a form that this version does not read.
 */
export function readEpochSpool(spoolDirectory: string, epoch: number): EpochSpool {
  const directory = join(spoolDirectory, String(epoch));
  const owner = readOwner(directory);
  const { recordForm = 1 } = owner;
  if (recordForm > RECORD_FORM)
    throw new Error(
      `its records have form ${recordForm}, of a newer version, and this one reads them up to form ${RECORD_FORM}: ` +
        'it waits for jobs of that version',
    );
  const isClosed = existsSync(join(directory, CLOSED_FILE));
  const ended = isClosed || !isAlive(owner);
  const mayLiveElsewhere = !isClosed && isOfAnotherBoot(owner);
  const { openedAtMs } = owner;
  return { epoch, directory, openedAtMs, ended, mayLiveElsewhere, segments: listSegments(directory) };
}

export function listSegments(directory: string): number[] {
  return namesIn(directory)
    .flatMap((name) => SEGMENT_NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** How far a spool has been written. */
export interface SpoolEnd {
  readonly segment: number;
  readonly bytes: number;
}

/** The ends of all spools here, by epoch; null: nothing is in it that was not shipped and removed. */
export function readSpoolEnds(spoolDirectory: string): Map<number, SpoolEnd | null> {
  return new Map(listEpochs(spoolDirectory).map((epoch) => [epoch, readEnd(join(spoolDirectory, String(epoch)))]));
}

function readEnd(directory: string): SpoolEnd | null {
  for (const segment of listSegments(directory).reverse()) {
    // A segment that was removed after it was listed has been shipped.
    const bytes = statSync(join(directory, segmentFileName(segment)), { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > 0) return { segment, bytes };
  }
  return null;
}

function readOwner(directory: string): SpoolOwner {
  // The directory got its name when its owner file existed already, so a spool without a readable owner is damaged.
  // That is reported, not guessed at.
  const owner: unknown = JSON.parse(readFileSync(join(directory, OWNER_FILE), 'utf8'));
  if (!isOwner(owner)) throw new Error(`${OWNER_FILE} does not say whose the spool is`);
  return owner;
}

function isOwner(read: unknown): read is SpoolOwner {
  if (typeof read !== 'object' || read === null) return false;
  const { pid, processStart, bootId, openedAtMs, recordForm = 1 } = read as Partial<Record<string, unknown>>;
  const isKnown = [processStart, bootId].every((fact) => fact === null || typeof fact === 'string');
  return isKnown && [pid, openedAtMs, recordForm].every((count) => Number.isInteger(count));
}

/** Says of all spools, which came from a backup, that nobody writes to them: their owners may live on elsewhere. */
export function disownSpools(spoolDirectory: string): void {
  for (const epoch of listEpochs(spoolDirectory)) {
    const path = join(spoolDirectory, String(epoch), OWNER_FILE);
    const owner = JSON.parse(readFileSync(path, 'utf8')) as SpoolOwner;
    writeFileDurably(path, JSON.stringify({ ...owner, bootId: 'before the backup' }));
  }
}

export function removeSegment(directory: string, segment: number): void {
  unlinkSync(join(directory, segmentFileName(segment)));
  syncDirectory(directory);
}

/** To be called only for an ended spool whose records are all posted and whose epoch is closed. */
export function removeEpochSpool(spoolDirectory: string, epoch: number): void {
  // The directory is renamed first, so that an interrupted removal leaves nothing that looks like a spool without an
  // owner.
  const unnamed = join(spoolDirectory, `${epoch}.partial-${process.pid}`);
  renameSync(join(spoolDirectory, String(epoch)), unnamed);
  syncDirectory(spoolDirectory);
  rmSync(unnamed, { recursive: true, force: true });
}

/** Removes what a process left behind that died while it made or removed a spool: nothing in it is needed any more. */
export function removeUnnamedSpools(spoolDirectory: string): void {
  for (const name of namesIn(spoolDirectory)) {
    if (!UNNAMED.test(name)) continue;
    const pid = Number(name.slice(name.lastIndexOf('-') + 1));
    if (!isAlive({ pid, processStart: null, bootId: null }))
      rmSync(join(spoolDirectory, name), { recursive: true, force: true });
  }
}

/**
 * Stores bytes that could not be read as records; they are never thrown away. Doing it twice writes the same file
 * again.
 */
export function quarantine(spoolDirectory: string, place: SpoolPlace, bytes: Uint8Array): string {
  const directory = join(spoolDirectory, QUARANTINE_DIRECTORY);
  makeDirectoryDurably(directory);
  const path = join(directory, `${place.epoch}-${segmentFileName(place.segment)}-${place.offset}.bad`);
  writeFileDurably(path, bytes);
  return path;
}

export function listQuarantine(spoolDirectory: string): string[] {
  return namesIn(join(spoolDirectory, QUARANTINE_DIRECTORY)).filter((name) => name.endsWith('.bad'));
}

/** Where the bytes in quarantine were, of one epoch. */
export function listQuarantinedPlaces(spoolDirectory: string, epoch: number): SpoolPlace[] {
  return listQuarantine(spoolDirectory).flatMap((name) => {
    const [, ofEpoch, segment, offset] = (QUARANTINE_NAME.exec(name) ?? []).map(Number);
    return ofEpoch !== epoch || segment === undefined || offset === undefined ? [] : [{ epoch, segment, offset }];
  });
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
