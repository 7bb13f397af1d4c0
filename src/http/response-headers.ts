// Response headers as a front takes them, and complete answers of ours.

/** Header names and values, alternating; names in lower case. */
export type HeaderList = readonly string[];
export const NO_HEADERS: HeaderList = [];

/** Whether a value contains nothing that would end its line: it prevents response splitting. */
export function mayStandInHeader(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code === CR || code === LF || code === 0) return false;
  }
  return true;
}

const CR = 0x0d;
const LF = 0x0a;

export interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
  /** Present where the body is not sent: the length that it would have; null: the head states no length. */
  readonly unsentBytes?: number | null;
}
