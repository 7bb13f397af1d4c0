// Makes small PNGs, and checks whether a received image is intact.

import { crc32, deflateSync } from 'node:zlib';

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const SIDE_PIXELS = 16;

/** A PNG of one colour that depends on `seed`; `padding` bytes of comment set its size. */
export function makePng(seed: number, padding: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(SIDE_PIXELS, 0);
  header.writeUInt32BE(SIDE_PIXELS, 4);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, true colour, no interlace
  const pixel = [seed & 0xff, (seed >>> 8) & 0xff, (seed >>> 16) & 0xff];
  const row = [0, ...Array.from({ length: SIDE_PIXELS }, () => pixel).flat()];
  const pixels = Buffer.from(Array.from({ length: SIDE_PIXELS }, () => row).flat());
  const comment =
    padding > 0 ? [chunk('tEXt', Buffer.concat([Buffer.from('Comment\0'), Buffer.alloc(padding, 'x')]))] : [];
  return Buffer.concat([
    PNG_SIGNATURE,
    chunk('IHDR', header),
    ...comment,
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/**
 * The kind of a received image; null when it is not an image, or was changed on the way as far as its format can tell.
 */
export function wholeImageKind(file: Buffer): 'png' | 'jpeg' | 'webp' | null {
  if (file.subarray(0, 8).equals(PNG_SIGNATURE)) return pngIsWhole(file) ? 'png' : null;
  if (file.length > 4 && file.readUInt16BE(0) === 0xffd8 && file.readUInt16BE(file.length - 2) === 0xffd9)
    return 'jpeg';
  const riff =
    file.length > 12 && file.toString('latin1', 0, 4) === 'RIFF' && file.toString('latin1', 8, 12) === 'WEBP';
  return riff && file.readUInt32LE(4) === file.length - 8 ? 'webp' : null;
}

/** Every chunk has a checksum of itself. */
function pngIsWhole(file: Buffer): boolean {
  let position = PNG_SIGNATURE.length;
  for (;;) {
    if (position + 12 > file.length) return false;
    const end = position + 12 + file.readUInt32BE(position);
    if (end > file.length || crc32(file.subarray(position + 4, end - 4)) !== file.readUInt32BE(end - 4)) return false;
    if (file.toString('latin1', position + 4, position + 8) === 'IEND') return end === file.length;
    position = end;
  }
}

function chunk(type: string, content: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type), content]);
  const framed = Buffer.alloc(typed.length + 8);
  framed.writeUInt32BE(content.length, 0);
  framed.set(typed, 4);
  framed.writeUInt32BE(crc32(typed), typed.length + 4);
  return framed;
}
