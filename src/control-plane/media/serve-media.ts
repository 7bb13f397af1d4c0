// Serves the bytes of an uploaded file (spec 4.7): whole or in a range, under headers with which no browser runs it.

import { askedRange, isUnchanged } from '../../domain/media/byte-range.ts';
import type { MediaObject } from '../../domain/media/media-object.ts';
import type { ByteRange } from '../../domain/media/object-store.ts';
import { etagOf, type MediaAudience, servingHeaders, versionHeaders } from '../../domain/media/serving-headers.ts';
import type { Exchange } from '../../http/exchange.ts';
import { inStorage, type Media, StorageFailed } from './media-parts.ts';

/** How long a client may read nothing. */
const CLIENT_IDLE_MS = 60_000;

export async function serveBytes(
  media: Media,
  exchange: Exchange,
  object: MediaObject,
  audience: MediaAudience,
): Promise<void> {
  const headers = servingHeaders(object, audience);
  const etag = etagOf(object);
  if (isUnchanged(exchange.header('if-none-match'), etag))
    return exchange.send({ status: 304, headers: versionHeaders(object, audience), body: '', unsentBytes: null });
  // RFC 9110, 14.2: the header has a meaning for GET alone.
  const asked = exchange.method === 'head' ? null : exchange.header('range');
  const range = askedRange(asked, exchange.header('if-range'), etag, object.bytes);
  if (range === 'unsatisfiable')
    return exchange.refuse({ kind: 'range_not_satisfiable', bytes: object.bytes }, [
      'content-range',
      `bytes */${object.bytes}`,
    ]);
  const part = range === null ? { status: 200, headers } : partOf(object, range, headers);
  const bytes = range ?? { first: 0, last: object.bytes - 1 };
  const total = bytes.last - bytes.first + 1;
  if (exchange.method === 'head') return exchange.send({ ...part, body: '', unsentBytes: total });
  if (total === 0) return exchange.answer(part.status, headers, '');
  if (!media.downloads.take(object, audience)) return exchange.refuse({ kind: 'overloaded' });
  try {
    await sendObject(media, exchange, object, { ...part, bytes, total });
  } finally {
    media.downloads.giveBack(object, audience);
    media.metrics.servedBytes.increment(exchange.status < 300 ? exchange.responseBytes : 0);
    if (exchange.status < 300) media.countServed(object.organizationId, exchange.responseBytes);
  }
}

function partOf({ bytes }: MediaObject, { first, last }: ByteRange, headers: readonly string[]) {
  return { status: 206, headers: [...headers, 'content-range', `bytes ${first}-${last}/${bytes}`] };
}

interface Part {
  readonly status: number;
  readonly headers: readonly string[];
  readonly bytes: ByteRange;
  readonly total: number;
}

async function sendObject(media: Media, exchange: Exchange, object: MediaObject, part: Part): Promise<void> {
  const pieces = await openObject(media, object, part.bytes);
  if (pieces === 'unavailable') return exchange.refuse({ kind: 'media_storage_unavailable' });
  if (pieces === null) {
    // The file was deleted a moment ago, or its row has lost the object, which nothing of ours does.
    if ((await media.store.find(object.id, object.organizationId)) === null)
      return exchange.refuse({ kind: 'not_found' });
    media.metrics.missingObjects.increment();
    media.log.error({ media_id: object.id }, 'the bytes of an uploaded file are missing');
    return exchange.refuse({ kind: 'media_storage_unavailable' });
  }
  const sending = new Sending(exchange, part);
  try {
    for await (const piece of pieces) if (!(await sending.send(piece))) break;
  } catch (fault) {
    media.log.error({ err: fault, media_id: object.id }, 'an uploaded file could not be read to its end');
  } finally {
    // A file that was not sent to its end must not look complete.
    if (exchange.status === 0) exchange.refuse({ kind: 'media_storage_unavailable' });
    else exchange.cut();
  }
}

async function openObject({ objects, log }: Media, { id }: MediaObject, range: ByteRange) {
  try {
    return await inStorage(objects.read(id, range));
  } catch (fault) {
    if (!(fault instanceof StorageFailed)) throw fault;
    log.error({ err: fault.cause, media_id: id }, 'an uploaded file could not be opened');
    return 'unavailable';
  }
}

/** One response of a known length, at the pace at which its client reads. */
class Sending {
  private readonly exchange: Exchange;
  private readonly part: Part;
  private wake: (() => void) | null = null;

  constructor(exchange: Exchange, part: Part) {
    this.exchange = exchange;
    this.part = part;
    exchange.watchClient({ onClientLeft: () => this.wake?.() });
  }

  /** Once this resolves, the caller may overwrite the piece. False: the exchange is closed, and no more can be sent. */
  async send(piece: Uint8Array): Promise<boolean> {
    const { exchange, part } = this;
    let hasRoom = true;
    exchange.cork(() => {
      if (exchange.status === 0) exchange.begin(part.status, part.headers);
      hasRoom = exchange.writeOfTotal(piece, part.total);
    });
    if (!hasRoom && !exchange.closed) await this.untilWritable();
    return !exchange.closed;
  }

  private untilWritable(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.exchange.cut();
        resolve();
      }, CLIENT_IDLE_MS);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.exchange.onWritable(this.wake);
    });
  }
}
