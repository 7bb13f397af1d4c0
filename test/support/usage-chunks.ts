// Removes the chunk with the usage from Chat Completions streams by splitting their text into events. Shares no code
// with the gateway.

/** Removes every event whose data is a chunk with a usage object and without choices. */
export function withoutUsageChunks(stream: Buffer): Buffer {
  // latin1 maps every byte to one character.
  const events = stream.toString('latin1').split(/(?<=\n\r?\n)/);
  return Buffer.from(events.filter((event) => !tellsUsage(event)).join(''), 'latin1');
}

function tellsUsage(event: string): boolean {
  const data = /^data:(.*?)\r?$/m.exec(event)?.[1] ?? '';
  try {
    const { choices, usage } = JSON.parse(data) as { choices?: unknown; usage?: unknown };
    return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null;
  } catch {
    return false;
  }
}
