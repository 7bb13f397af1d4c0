// Reads the spool directory of this machine: epochs with their owners, segments in order, and quarantine. Also removes
// what was shipped.

import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { RECORD_FORM } from '../../records/fields.ts';
import { makeDirectoryDurably, syncDirectory, writeFileDurably } from './durable-file.ts';
import { isAlive, isOfAnotherBoot, type ProcessIdentity, readProcessIdentity } from './process-identity.ts';

export interface SpoolOwner extends ProcessIdentity {
  readonly epoch: number;
  readonly openedAtMs: number;
  /** The form of all records in the spool (RECORD_FORM); absent: 1, in spools of versions that did not write it. */
  readonly recordForm?: number;
}

/** The offset at which a frame, or damage in place of a frame, begins. */
export interface SpoolPlace {
  readonly epoch: number;
  readonly segment: number;
  readonly offset: number;
}

/** The spool of one process. */
export interface EpochSpool {
  readonly epoch: number;
  readonly directory: string;
  /** When its owner began to write. */
  readonly openedAtMs: number;
  /** Nothing will be appended any more. */
  readonly ended: boolean;
  /**
   * The owner did not close the spool, and its boot id is not this machine's: the owner ran before this machine
   * restarted, or runs on another machine. This spool may therefore be a copy.
   */
  readonly mayLiveElsewhere: boolean;
  /** Segment numbers in ascending order. All segments but the last are complete. */
  readonly segments: readonly number[];
}

export const OWNER_FILE = 'owner.json';
export const CLOSED_FILE = 'closed';
const QUARANTINE_DIRECTORY = 'quarantine';
const SEGMENT_NAME = /^(\d{8,})\.spool$/;
const EPOCH_NAME = /^\d+$/;
const QUARANTINE_NAME = /^(\d+)-(\d+)\.spool-(\d+)\.bad$/;
const PARTIAL_NAME = /^\d+\.partial-\d+$/;

export function segmentFileName(segment: number): string {
  return `${String(segment).padStart(8, '0')}.spool`;
}

/** Describes this process as the owner of a spool. */
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
 * Reads whether the owner has finished before it lists the segments, so that the list includes the owner's last one.
 * Throws if the spool has no readable owner, or if its records have a form that this version does not read.
 */
export function readEpochSpool(spoolDirectory: string, epoch: number): EpochSpool {
  const directory = join(spoolDirectory, String(epoch));
  const owner = readOwner(directory);
  const { recordForm = 1 } = owner;
  if (recordForm > RECORD_FORM)
    throw new Error(
      `its records have form ${recordForm} of a newer version, and this version reads up to form ${RECORD_FORM}: ` +
        'the spool waits for jobs of that version',
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

/** The ends of all spools in the directory, by epoch; null: everything in the spool was shipped and removed. */
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
  // The directory gets its name after its owner file exists, so a spool without a readable owner is damaged. The error
  // reports the damage; nothing guesses at an owner.
  const owner: unknown = JSON.parse(readFileSync(join(directory, OWNER_FILE), 'utf8'));
  if (!isOwner(owner)) throw new Error(`${OWNER_FILE} does not name the owner of the spool`);
  return owner;
}

function isOwner(read: unknown): read is SpoolOwner {
  if (typeof read !== 'object' || read === null) return false;
  const { pid, processStart, bootId, openedAtMs, recordForm = 1 } = read as Partial<Record<string, unknown>>;
  const isKnown = [processStart, bootId].every((fact) => fact === null || typeof fact === 'string');
  return isKnown && [pid, openedAtMs, recordForm].every((count) => Number.isInteger(count));
}

/** Marks all spools, which a backup restored, as not written by a process here. Their owners may live on elsewhere. */
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
  const partial = join(spoolDirectory, `${epoch}.partial-${process.pid}`);
  renameSync(join(spoolDirectory, String(epoch)), partial);
  syncDirectory(spoolDirectory);
  rmSync(partial, { recursive: true, force: true });
}

/** Removes directories of processes that died while they made or removed a spool. Nothing in them is needed. */
export function removePartialSpools(spoolDirectory: string): void {
  for (const name of namesIn(spoolDirectory)) {
    if (!PARTIAL_NAME.test(name)) continue;
    const pid = Number(name.slice(name.lastIndexOf('-') + 1));
    if (!isAlive({ pid, processStart: null, bootId: null }))
      rmSync(join(spoolDirectory, name), { recursive: true, force: true });
  }
}

/**
 * Stores bytes that could not be read or posted as records, which are never thrown away. Returns the path. A second
 * call for the same place writes the same file again.
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

/** The places from which bytes of one epoch were put into quarantine. */
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
