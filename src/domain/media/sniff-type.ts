// Finds the type of a file in its first bytes. The type that the uploader declared is ignored: it could make a browser
// run a file that is called an image.

/** How many first bytes of a file decide its type. */
export const SNIFFED_BYTES = 4_096;

interface Signature {
  readonly type: string;
  readonly matches: (head: Buffer) => boolean;
}

const at = (offset: number, text: string) => {
  const bytes = Buffer.from(text, 'latin1');
  return (head: Buffer): boolean => head.subarray(offset, offset + bytes.length).equals(bytes);
};
const both = (...tests: readonly ((head: Buffer) => boolean)[]) => {
  return (head: Buffer): boolean => tests.every((test) => test(head));
};
/** The major brand of an ISO base media file. */
const brand = (...brands: readonly string[]) => {
  return (head: Buffer): boolean => at(4, 'ftyp')(head) && brands.includes(head.toString('latin1', 8, 12));
};

const SIGNATURES: readonly Signature[] = [
  { type: 'image/png', matches: at(0, '\x89PNG\r\n\x1a\n') },
  { type: 'image/jpeg', matches: at(0, '\xff\xd8\xff') },
  { type: 'image/gif', matches: (head) => at(0, 'GIF87a')(head) || at(0, 'GIF89a')(head) },
  { type: 'image/webp', matches: both(at(0, 'RIFF'), at(8, 'WEBP')) },
  { type: 'audio/wav', matches: both(at(0, 'RIFF'), at(8, 'WAVE')) },
  { type: 'image/avif', matches: brand('avif', 'avis') },
  { type: 'image/heic', matches: brand('heic', 'heix', 'hevc', 'mif1', 'msf1') },
  { type: 'audio/mp4', matches: brand('M4A ', 'M4B ') },
  {
    type: 'video/mp4',
    matches: brand('isom', 'iso2', 'iso4', 'iso5', 'iso6', 'mp41', 'mp42', 'avc1', 'dash', 'M4V ', 'MSNV'),
  },
  { type: 'video/quicktime', matches: brand('qt  ') },
  { type: 'video/webm', matches: (head) => at(0, '\x1a\x45\xdf\xa3')(head) && head.subarray(0, 64).includes('webm') },
  { type: 'audio/ogg', matches: at(0, 'OggS') },
  { type: 'audio/flac', matches: at(0, 'fLaC') },
  { type: 'audio/mpeg', matches: (head) => at(0, 'ID3')(head) || isMpegFrame(head) },
  { type: 'application/pdf', matches: at(0, '%PDF-') },
  { type: 'application/zip', matches: at(0, 'PK\x03\x04') },
  { type: 'application/gzip', matches: at(0, '\x1f\x8b\x08') },
];

const UNKNOWN = 'application/octet-stream';
const TEXT = 'text/plain';
const MARKUP: readonly (readonly [RegExp, string])[] = [
  [/<svg[\s>/:]/i, 'image/svg+xml'],
  [/^\s*<\?xml\s/i, 'application/xml'],
];

/** `head`: the first SNIFFED_BYTES of the file, or all of a shorter one (`isWhole`). */
export function sniffType(head: Buffer, isWhole: boolean): string {
  const found = SIGNATURES.find(({ matches }) => matches(head));
  if (found !== undefined) return found.type;
  const text = readText(head, isWhole);
  if (text === null || text === '') return UNKNOWN;
  return isMarkup(text) ? (MARKUP.find(([pattern]) => pattern.test(text))?.[1] ?? 'text/html') : TEXT;
}

/** A text with an element's name anywhere in it is markup to some browser. */
function isMarkup(text: string): boolean {
  return /^\s*</.test(text) || /<(!doctype|[a-z][a-z0-9:-]*[\s/>]|\?xml|script)/i.test(text);
}

/** null: the bytes are not a UTF-8 text. */
function readText(head: Buffer, isWhole: boolean): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: !isWhole });
    return CONTROLS.test(text) ? null : text;
  } catch {
    return null;
  }
}

// oxlint-disable-next-line no-control-regex -- text has none of these
const CONTROLS = /[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]/;

/** An MPEG audio frame of layer 3 (ISO 11172-3): sync word, version, layer, bitrate and sampling rate that exist. */
function isMpegFrame(head: Buffer): boolean {
  const [sync = 0, version = 0, rates = 0] = head;
  if (sync !== 0xff || (version & 0xe0) !== 0xe0) return false;
  const isLayer3 = (version & 0x06) === 0x02;
  const isKnownVersion = (version & 0x18) !== 0x08;
  return isLayer3 && isKnownVersion && (rates & 0xf0) !== 0xf0 && (rates & 0xf0) !== 0 && (rates & 0x0c) !== 0x0c;
}
