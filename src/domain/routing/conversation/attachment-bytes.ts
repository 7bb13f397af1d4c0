// How much of a body is encoded attachments (images, files, audio in base64), whose bytes say nothing of their tokens.

/** Shorter runs are keys, hashes and signatures; no text has a word of this length. */
const RUN_BYTES_MIN = 1_024;
/** A small body fits every model, whatever it consists of. */
const BODY_BYTES_MIN = 16_384;

const IS_BASE64 = new Uint8Array(256);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-')
  IS_BASE64[character.charCodeAt(0)] = 1;

/** One pass over the bytes, of which a megabyte takes about a millisecond. */
export function attachmentBytesIn(body: Uint8Array): number {
  if (body.length < BODY_BYTES_MIN) return 0;
  let encoded = 0;
  let runStart = 0;
  for (let at = 0; at <= body.length; at++) {
    if (IS_BASE64[body[at] ?? 0] === 1) continue;
    if (at - runStart >= RUN_BYTES_MIN) encoded += at - runStart;
    runStart = at + 1;
  }
  return encoded;
}
