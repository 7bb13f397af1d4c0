// Measures the scan of a multipart form: an image edit with three photographs, and the worst that an attacker could
// send.

import { randomFillSync } from 'node:crypto';
import { type FormFault, type ScannedForm, scanMultipart } from '../../src/generation/request/multipart-scan.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { median } from '../harness/median.ts';

const ROUNDS = 41;
const MB = 1 << 20;

interface Sample {
  readonly name: string;
  readonly body: Buffer;
  readonly boundary: string;
}

function field(name: string, value: string): Buffer {
  return Buffer.from(`Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`);
}

function file(name: string, content: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(
      `Content-Disposition: form-data; name="${name}"; filename="photo.png"\r\nContent-Type: image/png\r\n\r\n`,
    ),
    content,
  ]);
}

function form(boundary: string, parts: readonly Buffer[]): Buffer {
  const pieces = parts.flatMap((part) => [Buffer.from(`--${boundary}\r\n`), part, Buffer.from('\r\n')]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

function edit(name: string, boundary: string, content: (bytes: number) => Buffer, bytes: number): Sample {
  const images = Array.from({ length: 3 }, () => file('image[]', content(Math.floor(bytes / 3))));
  return {
    name,
    boundary,
    body: form(boundary, [field('model', 'openai/image-x'), field('prompt', 'a cat'), ...images, field('n', '1')]),
  };
}

const random = (bytes: number): Buffer => randomFillSync(Buffer.alloc(bytes));
const repeat = (text: string) => (bytes: number) => Buffer.alloc(bytes, text);
const BROWSER = '----WebKitFormBoundary7MA4YWxkTrZu0gW2';
const LONGEST = 'a'.repeat(69);

const samples: readonly Sample[] = [
  edit('4 MB, 3 images of random bytes, browser boundary', BROWSER, random, 4 * MB),
  edit('32 MB, 3 images of random bytes, browser boundary', BROWSER, random, 32 * MB),
  edit('4 MB, 3 images, hexadecimal boundary', '9051914041544843365972754266', random, 4 * MB),
  edit('4 MB of dashes', BROWSER, repeat('-'), 4 * MB),
  edit('4 MB of almost the boundary', BROWSER, repeat(`\r\n--${BROWSER.slice(0, -1)}`), 4 * MB),
  edit('4 MB of almost the longest boundary', `${LONGEST}b`, repeat(`--${LONGEST}a`), 4 * MB),
  edit('4 MB of almost a boundary of equal letters', `b${LONGEST}`, repeat(`--c${LONGEST}`), 4 * MB),
  {
    name: '256 parts with 500 bytes of headers',
    boundary: 'b',
    body: form('b', Array<Buffer>(256).fill(field(`x${'y'.repeat(450)}`, '1'))),
  },
  {
    name: '16 parts with 8 KB of spaces in a header',
    boundary: 'b',
    body: form('b', Array<Buffer>(16).fill(field('x"; y="z"'.padEnd(8000), '1'))),
  },
];

for (const { name, body, boundary } of samples) {
  let found: ScannedForm | FormFault | null = null;
  const roundsMs = Array.from({ length: ROUNDS }, () => {
    const startMs = systemClock.monotonicMs();
    found = scanMultipart(body, `multipart/form-data; boundary=${boundary}`);
    return systemClock.monotonicMs() - startMs;
  });
  const verdict =
    found !== null && 'fault' in found ? (found as FormFault).fault : `${(found as ScannedForm | null)?.parts} parts`;
  console.log(
    `${name.padEnd(52)} ${median(roundsMs).toFixed(3).padStart(8)} ms   ` +
      `(most ${Math.max(...roundsMs).toFixed(3)})   ${verdict}`,
  );
}
