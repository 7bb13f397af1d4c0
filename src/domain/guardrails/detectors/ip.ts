// Finds public IP addresses. Off unless a rule names them, since versions look alike.

import { isPublicAddress } from '../../../platform/egress/public-address.ts';
import { bytesIn, classOf, complementOf, holdByClass, runEnd, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf, textOf } from './detector.ts';

const ADDRESS = classOf('0-9A-Fa-f:.');
const FIRST = classOf('0-9A-Fa-f');
const DOT = 0x2e;
const COLON = 0x3a;
/** RFC 4291 with an IPv4 address inside. */
const BYTES_MAX = 45;
const SEPARATOR = classOf('.:');
const GROUP_BYTES_MAX = 4;
const CONTINUES = classOf('0-9A-Za-z_\u002d');

function findIp(bytes: Uint8Array, at: number, _start: number, end: number, hit: Hit): boolean {
  const before = at > 0 ? bytes[at - 1] : 0x20;
  if (before === DOT || before === COLON) return false;
  // An address begins with at most four digits and a dot or colon, which excludes most words.
  const groupEnd = runEnd(FIRST, bytes, at, end, GROUP_BYTES_MAX);
  const separator = byteAt(bytes, groupEnd, end);
  if (groupEnd === at || SEPARATOR[separator] !== 1) return false;
  // The only public addresses of version 6 are in 2000::/3; their first group has four digits.
  const isGlobal = groupEnd - at === GROUP_BYTES_MAX && (bytes[at] === 0x32 || bytes[at] === 0x33);
  if (separator === COLON && !isGlobal) return false;
  let to = runEnd(ADDRESS, bytes, at, end, BYTES_MAX + 1);
  while (to > at && (bytes[to - 1] === DOT || bytes[to - 1] === COLON)) to -= 1;
  if (to - at < 7 || to - at > BYTES_MAX || CONTINUES[byteAt(bytes, to, end)] === 1) return false;
  const text = textOf(bytes, at, to);
  // `1.2.3.4:80` is an address and a port.
  const port = /^\d+\.\d+\.\d+\.\d+(?=:\d+$)/.exec(text);
  const address = port === null ? text : port[0];
  if (!isPublicAddress(address)) return false;
  hit.start = at;
  hit.end = at + address.length;
  hit.isOpen = false;
  return true;
}

export const ip: Detector = {
  entity: 'ip',
  anchors: bytesIn(FIRST).flatMap((byte) => bytesIn(complementOf(WORD)).map((before) => pairOf(before, byte))),
  find: findIp,
  hold: holdByClass(ADDRESS, FIRST, BYTES_MAX + 1),
};
