// Reads the form of an upload and stages its one file, hashing it and finding its type on the way.

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { ReceivedFile } from '../../domain/media/media-object.ts';
import type { StagedFile } from '../../domain/media/object-store.ts';
import { SNIFFED_BYTES, sniffType } from '../../domain/media/sniff-type.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { readBoundary } from '../../platform/bytes/multipart-headers.ts';
import type { TimeSlices } from '../../platform/event-loop/time-slices.ts';
import { inStorage } from './media-parts.ts';
import type { UploadBody } from './upload-body.ts';

export const FILE_FIELD = 'file';

/** Other fields of the form are read and dropped: OpenAI's client sends a `purpose`. */
const LIMITS = { files: 2, fields: 32, parts: 40, fieldSize: 65_536, headerPairs: 32, headerSize: 8_192 };
const TOO_MANY_PARTS = 'it has too many parts';
const PLAIN_ENCODINGS: readonly string[] = ['7bit', '8bit', 'binary'];

export interface FileRoom {
  readonly bytesMax: number;
  /**
   * The rest of a longer file is hashed and not written: the organization may have the file already, but has no room
   * for it.
   */
  readonly writtenBytesMax: number;
}

interface Parts {
  readonly body: UploadBody;
  readonly contentType: string;
  readonly staged: StagedFile;
  readonly room: FileRoom;
  /**
   * Each piece is read in a slice, and only then may more come. This bounds what all uploads of a process together do
   * to its event loop, however fast their clients and the disk are.
   */
  readonly slices: TimeSlices;
}

type Outcome = ReceivedFile | Refusal | 'left';

/** Rejects with StorageFailed where the file cannot be written. */
export function receiveFile(parts: Parts): Promise<Outcome> {
  return new FormReading(parts).run();
}

class FormReading {
  private readonly body: UploadBody;
  private readonly staged: StagedFile;
  private readonly room: FileRoom;
  private readonly slices: TimeSlices;
  private readonly form: BusboyInstance | null;
  /** The text before each part but the first, and at the end. */
  private readonly delimiter: Buffer;
  private delimiters = 0;
  private file: Promise<ReceivedFile | Refusal> | null = null;
  /** The file's bytes, as the form hands them on. */
  private stream: Readable | null = null;
  /** Why no more of the body is read. */
  private over: { readonly refusal: Refusal } | { readonly fault: unknown } | null = null;
  private wake: (() => void) | null = null;
  private isFinished = false;

  constructor({ body, contentType, staged, room, slices }: Parts) {
    this.body = body;
    this.staged = staged;
    this.room = room;
    this.slices = slices;
    const boundary = readBoundary(contentType);
    this.delimiter = Buffer.from(`\r\n--${boundary}`);
    this.form = this.open(boundary);
  }

  private open(boundary: string | null): BusboyInstance | null {
    if (boundary === null) {
      this.refuse('its Content-Type names no boundary of 1 to 70 characters');
      return null;
    }
    const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` };
    const form = new Busboy({ headers, limits: LIMITS });
    form.on('file', (name, stream, _filename, encoding) => this.takeFile(name, stream, encoding));
    form.on('field', (name) => {
      if (name === FILE_FIELD) this.refuse(`its part "${FILE_FIELD}" is no file: it has no filename`);
    });
    for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
      form.on(limit, () => this.refuse(TOO_MANY_PARTS));
    form.on('error', (error: Error) => this.refuse(describe(error)));
    form.on('finish', () => {
      this.isFinished = true;
      this.awaken();
    });
    return form;
  }

  async run(): Promise<Outcome> {
    while (this.over === null) {
      await this.slices.next();
      const piece = await this.body.next();
      if (piece === 'left') return this.leave();
      if (piece === 'too_long') {
        this.stop({ refusal: this.tooLarge });
        break;
      }
      if (piece === 'ended') {
        await this.end();
        break;
      }
      if (piece === 'stopped') break;
      if (this.hasTooManyParts(piece)) this.refuse(TOO_MANY_PARTS);
      else await this.write(piece);
    }
    const found = this.over === null ? await this.result() : null;
    if (found !== null) return found;
    await this.abandonFile();
    if (this.over === null) return 'left';
    if ('fault' in this.over) throw this.over.fault;
    return this.over.refusal;
  }

  private async result(): Promise<Outcome | null> {
    if (this.file === null) return invalidForm(`it has no file in a part named "${FILE_FIELD}"`);
    const file = await this.file.catch(() => null);
    // A fault of the file has already set `over`.
    return this.over === null ? file : null;
  }

  private async leave(): Promise<'left'> {
    this.form?.destroy();
    await this.abandonFile();
    return 'left';
  }

  /** The file is not written to any more once this resolves. */
  private async abandonFile(): Promise<void> {
    this.stream?.destroy();
    await this.file?.catch(() => null);
  }

  private takeFile(name: string, stream: Readable, encoding: string): void {
    // A stream whose form ends too early emits an error, which the form reports as well.
    stream.on('error', () => undefined);
    if (name !== FILE_FIELD) this.refuse(`it has a file in another part than "${FILE_FIELD}"`);
    else if (this.file !== null) this.refuse(`it has more than one file`);
    else if (!PLAIN_ENCODINGS.includes(encoding)) this.refuse('its file is encoded once more');
    else {
      this.stream = stream;
      this.file = this.keep(stream);
      this.file.then(
        (kept) => ('kind' in kept ? this.stop({ refusal: kept }) : undefined),
        (fault: unknown) => this.stop({ fault }),
      );
      return;
    }
    stream.resume();
  }

  private async keep(stream: Readable): Promise<ReceivedFile | Refusal> {
    const hash = createHash('sha256');
    const head = Buffer.alloc(SNIFFED_BYTES);
    let bytes = 0;
    for await (const piece of stream as AsyncIterable<Buffer>) {
      if (bytes + piece.length > this.room.bytesMax) return this.tooLarge;
      if (bytes < SNIFFED_BYTES) piece.copy(head, bytes);
      bytes += piece.length;
      hash.update(piece);
      if (bytes <= this.room.writtenBytesMax) await inStorage(this.staged.write(piece));
    }
    const isWhole = bytes <= SNIFFED_BYTES;
    return { sha256: hash.digest(), bytes, contentType: sniffType(head.subarray(0, bytes), isWhole) };
  }

  private get tooLarge(): Refusal {
    return { kind: 'file_too_large', limitBytes: this.room.bytesMax };
  }

  private refuse(reason: string): void {
    this.stop({ refusal: invalidForm(reason) });
  }

  private stop(over: NonNullable<FormReading['over']>): void {
    this.over ??= over;
    this.body.stop();
    this.awaken();
  }

  private awaken(): void {
    this.wake?.();
  }

  /**
   * Whether the form has too many parts with this piece, which its parser has not read yet. The parser makes a stream
   * for each part, even beyond its limits. That takes 20 µs, and a piece has room for thousands.
   */
  private hasTooManyParts(piece: Buffer): boolean {
    for (let at = piece.indexOf(this.delimiter); at !== -1; at = piece.indexOf(this.delimiter, at + 1))
      this.delimiters += 1;
    return this.delimiters > LIMITS.parts;
  }

  /** Resolves when the form has taken the piece, or nothing more is read. */
  private write(piece: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
      this.form?.write(piece, () => resolve());
    });
  }

  private async end(): Promise<void> {
    if (this.over !== null || this.form === null) return;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      this.form?.end();
      if (this.isFinished) resolve();
    });
  }
}

/** An error of the form's parser, in the words of the rest of the service. */
function describe({ message }: Error): string {
  if (/unexpected end|terminated early/i.test(message)) return 'it ends before its closing boundary';
  return 'it is not well formed';
}

function invalidForm(reason: string): Refusal {
  return { kind: 'invalid_form', reason };
}
