// Collects the texts of one body that external detectors are asked about, and later turns their verdicts into findings:
// a body is screened once to collect the texts, and once more with the verdicts.

import { type CompiledExternal, isAllowedValue } from './compile-policy.ts';
import type { ExternalHit } from './external-shapes.ts';
import type { Finding } from './finding.ts';
import type { CompiledRule } from './prepared-policy.ts';

/** For each text, what each external detector found in it, in the order of the compiled policy. Plain data. */
export type ExternalVerdicts = ReadonlyMap<string, readonly (readonly ExternalHit[])[]>;

/** Longer texts are not sent anywhere. */
const TEXT_BYTES_MAX = 65_536;
const TEXTS_MAX = 1_000;
/** The most bytes of all texts together: about a million tokens. */
const ALL_BYTES_MAX = 4_194_304;

export class ExternalTexts {
  private readonly verdicts: ExternalVerdicts | null;
  private readonly texts = new Set<string>();
  private bytes = 0;
  /** Some text is not asked about, since it is too long or there are too many. */
  isIncomplete = false;

  /** null: the texts are to be collected. */
  constructor(verdicts: ExternalVerdicts | null) {
    this.verdicts = verdicts;
  }

  get collected(): readonly string[] {
    return [...this.texts];
  }

  visit(externals: readonly CompiledExternal[], bytes: Buffer, start: number, end: number, findings: Finding[]): void {
    if (end - start > TEXT_BYTES_MAX) {
      this.isIncomplete = true;
      return;
    }
    const text = bytes.toString('utf8', start, end);
    if (this.verdicts === null) this.collect(text);
    else this.addFindings(externals, this.verdicts.get(text) ?? [], text, start, findings);
  }

  /** Adds a text that is complete. */
  collect(text: string): void {
    // A text without a letter or digit says nothing.
    if (!/[\p{L}\p{N}]/u.test(text)) return;
    if (this.texts.has(text)) return;
    const bytes = Buffer.byteLength(text);
    if (this.texts.size >= TEXTS_MAX || this.bytes + bytes > ALL_BYTES_MAX) {
      this.isIncomplete = true;
      return;
    }
    this.texts.add(text);
    this.bytes += bytes;
  }

  private addFindings(
    externals: readonly CompiledExternal[],
    verdicts: readonly (readonly ExternalHit[])[],
    text: string,
    offset: number,
    findings: Finding[],
  ): void {
    const bytes = Buffer.from(text);
    verdicts.forEach((hits, index) => {
      const rules = externals[index]?.rules ?? [];
      for (const hit of hits) {
        const value = bytes.toString('utf8', hit.start, hit.end);
        const found = rules.find((one) => isWanted(one, hit) && !isAllowedValue(one, hit.entity, value));
        if (found === undefined) continue;
        const { entity, start, end } = hit;
        findings.push({ rule: found.rule, entity, start: offset + start, end: offset + end, isOpen: false });
      }
    });
  }
}

function isWanted({ rule: { external } }: CompiledRule, { entity, score }: ExternalHit): boolean {
  if (external === null || score < external.minScore) return false;
  return external.entities === null || external.entities.has(entity);
}
