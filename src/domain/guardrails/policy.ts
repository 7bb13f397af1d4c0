// What a guardrail policy is once it is in force: its rules with their defaults filled in, and how its findings are
// weighed against each other.

import type { ApiName } from '../models/apis.ts';

export type Stage = 'input' | 'output';
/** Strongest first. */
export const ACTIONS = ['block', 'mask', 'cloak', 'flag'] as const;
export type Action = (typeof ACTIONS)[number];
/** What happens to a text that could not be screened. */
export type OnFailure = 'refuse' | 'pass';

/** An external detector as a rule uses it. */
export interface RuleExternal {
  /** The detector's name in its policy. */
  readonly name: string;
  /** The detector's own names of what to find; null: whatever it finds. */
  readonly entities: ReadonlySet<string> | null;
  readonly minScore: number;
}

export interface Pattern {
  readonly regex: string;
  /** In bytes; a longer match is no finding. */
  readonly maxLength: number;
}

/** How a rule's placeholders look, who shares them, and whether replies get the values back. */
export interface Cloak {
  readonly form: 'token' | 'address';
  readonly scope: 'organization' | 'key' | 'conversation';
  readonly restore: boolean;
}

export interface Rule {
  /** The policy's name and version, for records and answers. */
  readonly policy: string;
  readonly version: number;
  readonly id: string;
  readonly action: Action;
  readonly stages: readonly Stage[];
  /** null: every API. */
  readonly apis: ReadonlySet<ApiName> | null;
  /** The text that replaces a masked value; null: the entity's name in brackets. */
  readonly label: string | null;
  readonly cloak: Cloak;
  readonly detect: readonly string[];
  readonly words: readonly string[];
  readonly patterns: readonly Pattern[];
  readonly external: RuleExternal | null;
}

export type ExternalShape = 'webhook' | 'presidio' | 'moderation';

export interface External {
  readonly name: string;
  readonly shape: ExternalShape;
  readonly url: string;
  /** Sent as a bearer token; null: none. */
  readonly secret: string | null;
  readonly deadlineMs: number;
  readonly onFailure: OnFailure;
  /**
   * For streams. `whole`: the stream waits until the detector has answered. `after`: the detector is asked after the
   * stream and only flags.
   */
  readonly output: 'whole' | 'after';
  /** Of the moderation shape: which model to ask; of the Presidio shape: the texts' language. */
  readonly model: string | null;
  readonly language: string;
}

/** One version of a policy, all defaults filled in. Plain data: it can be sent to a worker. */
export interface Policy {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  /** null: the platform's own. */
  readonly organizationId: string | null;
  readonly onFailure: OnFailure;
  readonly rules: readonly Rule[];
  /** Values that this policy never reports as findings, in lower case. */
  readonly allowedValues: readonly string[];
  readonly allowedEmailDomains: readonly string[];
  readonly externals: readonly External[];
}
