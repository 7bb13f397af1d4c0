// Measures what counting the images of a reply costs per megabyte relayed, compared with parsing the reply.

import { ImageDocumentTally } from '../../src/generation/sse/image-tally.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { median } from '../harness/median.ts';

const ROUNDS = 31;
const CHUNK_BYTES = 65_536;

function medianMs(work: () => void): number {
  const roundsMs = Array.from({ length: ROUNDS }, () => {
    const startMs = systemClock.monotonicMs();
    work();
    return systemClock.monotonicMs() - startMs;
  });
  return median(roundsMs);
}

const image = { b64_json: Buffer.alloc(1_800_000, 7).toString('base64') };
for (const images of [1, 4]) {
  const reply = Buffer.from(
    JSON.stringify({ created: 1, data: Array(images).fill(image), usage: { input_tokens: 10 } }, null, 2),
  );
  const countMs = medianMs(() => {
    const tally = new ImageDocumentTally();
    for (let at = 0; at < reply.length; at += CHUNK_BYTES) tally.feed(reply.subarray(at, at + CHUNK_BYTES));
    if (tally.finished !== images) throw new Error('miscounted');
  });
  const parseMs = medianMs(() => void JSON.parse(reply.toString('utf8')));
  console.log(
    `${images} images, ${(reply.length / 1e6).toFixed(1)} MB: counted in ${countMs.toFixed(3)} ms; ` +
      `parsed in ${parseMs.toFixed(1)} ms`,
  );
}
