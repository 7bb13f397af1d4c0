// Chat Completions streams without the chunk that tells their usage, made by splitting their text into events: shares
// no code with the gateway.

/** Every event goes whose data is a chunk without choices but with a usage object. */
export function withoutUsageChunks(stream: Buffer): Buffer {
  // latin1 keeps every byte apart.
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
